"""Streams and events of a ring, with fakes that note who waits for whom."""

import pytest

torch = pytest.importorskip("torch", reason="torch is too large to install")
from busbound.offload import _lanes  # noqa: E402
from busbound.offload._lanes import DirectLanes, lanes_of  # noqa: E402
from busbound.offload._runtime import Runtime  # noqa: E402


class FakeStreams:
    """Streams that note what they are given, and events that note what was recorded before."""

    def __init__(self, monkeypatch):
        fakes = self
        self.log, self.streams, self.events = [], [], []

        class Stream:
            def __init__(self, device=None):
                self.id = self.cuda_stream = len(fakes.streams)
                self.number = 0
                fakes.streams.append(self)

            def wait_stream(self, other):
                pass

        class Event:
            def __init__(self, enable_timing=False):
                self.at, self.cuda_event = None, 0

            def record(self, stream):
                if not self.cuda_event:
                    fakes.events.append(self)
                    self.cuda_event = len(fakes.events)
                self.at = (stream.id, stream.number)

            def wait(self, stream):
                # An event that was never recorded is not waited for, nor one before which nothing happened.
                if self.at is not None and self.at[1]:
                    fakes.log.append((stream.id, "wait", self.at))

        self.compute = self.current = Stream()
        monkeypatch.setattr(torch.cuda, "Stream", Stream)
        monkeypatch.setattr(torch.cuda, "Event", Event)
        monkeypatch.setattr(torch.cuda, "ExternalStream", lambda number, device: self.streams[number])
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: self.current)
        monkeypatch.setattr(torch.cuda, "set_stream", lambda stream: setattr(self, "current", stream))
        monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: self.current.id, raising=False)

    def work(self, what):
        self.current.number += 1
        self.log.append((self.current.id, what, self.current.number))

    def copy_(self, source, non_blocking):
        assert non_blocking
        self.work(f"copy {source.name}")

    def data_ptr(self):
        return 1

    def calls(self, fails=()):
        """CUDA's runtime; some calls fail."""

        def number(given):
            return (given.value or 0) if hasattr(given, "value") else given

        def copy_async(target, source, nbytes, direction, stream):
            assert (number(target), number(nbytes), number(direction)) == (1, 10, 1)
            before, self.current = self.current, self.streams[number(stream)]
            self.work(f"copy {chr(number(source))}")
            self.current = before
            return 0

        def wait_event(stream, event, flags):
            self.events[number(event) - 1].wait(self.streams[number(stream)])
            return number(flags)

        def record_event(event, stream):
            self.events[number(event) - 1].record(self.streams[number(stream)])
            return 0

        def forget_error():
            self.forgotten += 1
            return 0

        self.forgotten = 0
        working = Runtime(copy_async, wait_event, record_event, forget_error)
        return working._replace(**dict.fromkeys(fails, lambda *_: 1))


class FakeSource:
    def __init__(self, name):
        self.name, self.nbytes = name, 10

    def data_ptr(self):
        return ord(self.name)


def check_order(log, copies):
    """No copy before the last use has ended, no use before its copy has ended. One slot."""
    known, used, copied = {}, {}, ("", 0)
    for stream, what, number in log:
        if what == "wait":
            known[stream, number[0]] = max(number[1], known.get((stream, number[0]), 0))
            # Waiting for a stream is waiting for what it has waited for.
            for (waiting, other), at in list(known.items()):
                if waiting == number[0]:
                    known[stream, other] = max(at, known.get((stream, other), 0))
        elif what.startswith("copy"):
            assert all(known.get((copies, user), 0) >= at for user, at in used.items())
            copied = (what.split()[1], number)
        else:
            assert what.split()[1] == copied[0] and known.get((stream, copies), 0) >= copied[1]
            used[stream] = number


WAYS = {
    "by torch": None,
    "by the runtime": (),
    "copies fail": ("copy_async",),
    "waits fail": ("wait_event",),
    "records fail": ("record_event",),
    "all fail": ("copy_async", "wait_event", "record_event"),
}


@pytest.fixture(params=WAYS)
def fakes(request, monkeypatch):
    found, fails = FakeStreams(monkeypatch), WAYS[request.param]
    monkeypatch.setattr(_lanes, "runtime", lambda: None if fails is None else found.calls(fails))
    found.fails = fails
    return found


def test_copies_wait_for_the_last_use_and_uses_for_their_copy(fakes):
    lanes = lanes_of(torch.device("cuda", 0), 1)
    assert isinstance(lanes, DirectLanes) == (fakes.fails is not None)
    compute, copies = 0, 1
    for block in ("a", "b", "c"):
        lanes.filler(0, fakes, FakeSource(block))()
        assert fakes.current is fakes.compute
        lanes.use(0)
        fakes.work(f"compute {block}")
        lanes.release(0)
    check_order(fakes.log, copies)
    if fakes.fails in (None, (), ("copy_async",), ("wait_event",)):
        waits = {entry for entry in fakes.log if entry[1] == "wait"}
        assert waits == {(compute, "wait", (copies, n)) for n in (1, 2, 3)} | {(copies, "wait", (compute, n)) for n in (1, 2)}
        assert [entry for entry in fakes.log if entry[1] != "wait"] == [
            (copies, "copy a", 1), (compute, "compute a", 1), (copies, "copy b", 2),
            (compute, "compute b", 2), (copies, "copy c", 3), (compute, "compute c", 3),
        ]  # fmt: skip
    # Errors are not left for the next launch.
    assert fakes.fails is None or bool(fakes.forgotten) == bool(fakes.fails)


def test_a_slot_used_by_two_streams_is_not_overwritten_before_both_have_ended(fakes):
    lanes = lanes_of(torch.device("cuda", 0), 1)
    streams = [fakes.compute, torch.cuda.Stream()]
    for number in range(5):
        lanes.filler(0, fakes, FakeSource(chr(ord("a") + number)))()
        for stream in (streams, streams[::-1], streams[:1], streams, streams)[number]:
            fakes.current = stream
            lanes.use(0)
            fakes.work(f"compute {chr(ord('a') + number)}")
            lanes.release(0)
    check_order(fakes.log, 1)


def test_calls_of_the_runtime_are_for_the_current_device_only(monkeypatch):
    fakes = FakeStreams(monkeypatch)
    waits = []
    calls = fakes.calls()._replace(wait_event=lambda *given: waits.append(given) or 0)
    monkeypatch.setattr(_lanes, "runtime", lambda: calls)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    current = []
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: current[0], raising=False)
    lanes = lanes_of(torch.device("cuda", 1), 1)
    for current[:], expected in (([1], True), ([0], False)):
        waits.clear()
        lanes.use(0)
        assert bool(waits) == expected
        lanes.release(0)
