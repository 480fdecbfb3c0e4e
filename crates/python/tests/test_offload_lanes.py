"""Streams and events of a ring, with fakes that note who waits for whom."""

import ctypes
import os
import threading

import pytest

torch = pytest.importorskip("torch", reason="torch is too large to install")
from busbound._native import CudaRuntime, Fill, Lane  # noqa: E402
from busbound.offload import _lanes  # noqa: E402
from busbound.offload._lanes import DirectLanes, lanes_of  # noqa: E402


class FakeStreams:
    """Streams that note what they are given, and events that note what was recorded before."""

    def __init__(self, monkeypatch):
        fakes = self
        self.log, self.streams, self.events = [], [], []
        self.kept, self.wrong = [], 0

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
        """CUDA's runtime; some calls fail. What is wrong in a call from the native part is kept for ``check``."""

        def copy_async(target, source, nbytes, direction, stream):
            self.expect((target, nbytes, direction) == (1, 10, 1))
            before, self.current = self.current, self.streams[stream or 0]
            self.work(f"copy {chr(source)}")
            self.current = before
            return 0

        def wait_event(stream, event, flags):
            self.expect(flags == 0)
            self.events[event - 1].wait(self.streams[stream or 0])
            return 0

        def record_event(event, stream):
            self.events[event - 1].record(self.streams[stream or 0])
            return 0

        def is_capturing(stream, status):
            status[0] = int(self.streams[stream or 0] in self.captured)
            return 0

        def last_error():
            self.forgotten += 1
            return 0

        self.forgotten, self.captured = 0, []
        return runtime_of(self.kept, fails, copy_async, wait_event, record_event, is_capturing, last_error)

    def expect(self, is_right):
        self.wrong += not is_right


POINTER, INT = ctypes.c_void_p, ctypes.c_int
SIGNATURES = (
    (POINTER, POINTER, ctypes.c_size_t, INT, POINTER), (POINTER, POINTER, ctypes.c_uint), (POINTER, POINTER),
    (POINTER, ctypes.POINTER(INT)), (),
)  # fmt: skip


def runtime_of(kept, fails, *functions):
    """A runtime of functions of this test. ``kept`` holds what CUDA's library would."""
    addresses = []
    for function, signature in zip(functions, SIGNATURES, strict=True):
        called = (lambda *_: 1) if function.__name__ in fails else function
        kept.append(ctypes.CFUNCTYPE(INT, *signature)(called))
        addresses.append(ctypes.cast(kept[-1], POINTER).value)
    return CudaRuntime(*addresses)


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
    "captures fail": ("is_capturing",),
    "all fail": ("copy_async", "wait_event", "record_event", "is_capturing"),
}


@pytest.fixture(params=WAYS)
def fakes(request, monkeypatch):
    found, fails = FakeStreams(monkeypatch), WAYS[request.param]
    monkeypatch.setattr(_lanes, "runtime", lambda: None if fails is None else found.calls(fails))
    found.fails = fails
    yield found
    assert found.wrong == 0


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
    if fakes.fails in (None, (), ("copy_async",), ("wait_event",), ("is_capturing",)):
        waits = {entry for entry in fakes.log if entry[1] == "wait"}
        assert waits == {(compute, "wait", (copies, n)) for n in (1, 2, 3)} | {(copies, "wait", (compute, n)) for n in (1, 2)}
        assert [entry for entry in fakes.log if entry[1] != "wait"] == [
            (copies, "copy a", 1), (compute, "compute a", 1), (copies, "copy b", 2),
            (compute, "compute b", 2), (copies, "copy c", 3), (compute, "compute c", 3),
        ]  # fmt: skip
    # Errors are not left for the next launch.
    assert fakes.fails is None or bool(fakes.forgotten) == bool(set(fakes.fails) - {"is_capturing"})


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


def test_a_slot_is_released_before_another_block_is_copied_into_it(fakes):
    lanes = lanes_of(torch.device("cuda", 0), 1)
    fills = [lanes.filler(0, fakes, FakeSource(block)) for block in "abc"]
    fills[0]()
    for block, fill in zip("abc", (*fills[1:], fills[0]), strict=True):
        lanes.use(0)
        fakes.work(f"compute {block}")
        lanes.turn(0, fill)
    check_order(fakes.log, 1)
    # What failed is done again.
    copied = dict.fromkeys((what, used_before(fakes.log, at)) for at, (_, what, _) in enumerate(fakes.log) if what.startswith("copy"))
    assert list(copied) == [("copy a", 0), ("copy b", 1), ("copy c", 2), ("copy a", 3)]


def used_before(log, at):
    return sum(what.startswith("compute") for _, what, _ in log[:at])


def test_a_capture_is_seen(fakes, monkeypatch):
    asked = []
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: asked.append(1) or False)
    lanes = lanes_of(torch.device("cuda", 0), 1)
    assert not lanes.is_capturing()
    if fakes.fails is None or "is_capturing" in fakes.fails:
        # Torch says it, or what is wrong.
        assert asked
        return
    fakes.captured.append(fakes.compute)
    assert lanes.is_capturing() and not asked


def test_calls_of_cuda_let_other_threads_run():
    """Where the driver's queue is full, a call waits for the GPU, and that perhaps for another thread of Python."""
    reads, writes = os.pipe()
    poll = ctypes.cast(ctypes.CDLL(None).poll, POINTER).value
    fine = ctypes.CFUNCTYPE(INT)(lambda: 0)
    nothing = ctypes.cast(fine, POINTER).value
    # A copy is a call of poll: its target is what to wait for, its source how many of them, its size the milliseconds.
    waited = (ctypes.c_int * 2)(reads, 1)
    lane = Lane(CudaRuntime(poll, nothing, nothing, nothing, nothing), 1, 1, 1)
    fill = Fill(lane, ctypes.addressof(waited), 1, 10_000)
    other = threading.Timer(0.05, os.write, (writes, b"x"))
    other.start()
    # What poll found, not the end of its time, which would be 0: no error.
    assert fill() is False
    other.join()
    os.close(reads), os.close(writes)


def test_calls_of_the_runtime_are_for_the_current_device_only(monkeypatch):
    fakes = FakeStreams(monkeypatch)
    calls = fakes.calls()
    monkeypatch.setattr(_lanes, "runtime", lambda: calls)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    by_torch, used = [], _lanes.CudaLanes.use
    monkeypatch.setattr(_lanes.CudaLanes, "use", lambda self, slot: by_torch.append(slot) or used(self, slot))
    current = []
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: current[0], raising=False)
    lanes = lanes_of(torch.device("cuda", 1), 1)
    for current[:], is_direct in (([1], True), ([0], False), ([1], True)):
        by_torch.clear()
        lanes.use(0)
        assert bool(by_torch) != is_direct
        lanes.release(0)
