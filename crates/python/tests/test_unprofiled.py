"""Steps that are timed while torch.profiler records nothing."""

import gzip
import json
import shutil
import sys
import threading
import types

import pytest

import busbound

KEY = "busbound_unprofiled_step_ms"


class Action:
    NONE, WARMUP, RECORD = "none", "warmup", "record"


def torch_with(phases, trace, clock):
    """Stands in for torch with a profiler that follows these phases, one per step, and exports a recorded trace."""

    class Profile:
        def __init__(self, on_trace_ready):
            self.on_trace_ready = on_trace_ready
            self.step_num, self.current_action = 0, phases[0]
            if self.current_action != Action.NONE:
                self.prepare_trace()

        def step(self):
            before = self.current_action
            self.step_num += 1
            self.current_action = phases[min(self.step_num, len(phases) - 1)]
            if before == Action.NONE != self.current_action:
                self.prepare_trace()
            if before == Action.RECORD != self.current_action:
                self.on_trace_ready(self)

        def prepare_trace(self):
            pass

        def stop(self):
            if self.current_action == Action.RECORD:
                self.on_trace_ready(self)

        def export_chrome_trace(self, path):
            shutil.copy(trace, path)

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.at = clock.now

        def elapsed_time(self, end):
            return end.at - self.at

    def synchronize():
        clock.syncs += 1

    cuda = types.SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        is_current_stream_capturing=lambda: clock.is_capturing,
        synchronize=synchronize,
        Event=Event,
    )
    profiler = types.ModuleType("torch.profiler")
    profiler.profile, profiler.ProfilerAction = Profile, Action
    torch = types.ModuleType("torch")
    torch.cuda, torch.profiler = cuda, profiler
    return torch


class Clock:
    def __init__(self):
        self.now, self.syncs, self.is_capturing = 0.0, 0, False


@pytest.fixture(autouse=True)
def new_process(monkeypatch):
    monkeypatch.setattr("busbound._unprofiled._has_recorded", False)
    monkeypatch.setenv("TEARDOWN_CUPTI", "1")


def train(monkeypatch, fixtures, folder, phases, step_ms, *, clock=None, quiet=True):
    clock = clock or Clock()
    torch = torch_with(phases, fixtures / "graph_replay.json.gz", clock)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.profiler", torch.profiler)
    profiler = torch.profiler.profile(busbound.profiler_handler(folder, quiet=quiet))
    for ms in step_ms:
        clock.now += ms
        profiler.step()
    profiler.stop()
    for thread in threading.enumerate():
        if thread.name == "busbound":
            thread.join()
    return clock


def written(folder):
    (path,) = folder.iterdir()
    with gzip.open(path) as file:
        return json.load(file)


NONE, WARMUP, RECORD = Action.NONE, Action.WARMUP, Action.RECORD


def test_steps_before_the_recorded_ones_are_in_the_trace(monkeypatch, fixtures, tmp_path):
    phases = [NONE] * 10 + [WARMUP] + [RECORD] * 2 + [NONE] * 20
    clock = train(monkeypatch, fixtures, tmp_path, phases, [500] + [20 + i for i in range(9)] + [900, 30, 30] + [7] * 20)
    trace = written(tmp_path)
    # The first step begins before the handler sees the profiler.
    assert trace[KEY] == [20 + i for i in range(9)]
    with gzip.open(fixtures / "graph_replay.json.gz") as file:
        original = json.load(file)
    assert trace.pop("busbound_environment")["cpus"] > 0
    assert trace.pop(KEY) and trace == original
    assert next(iter(original)) != KEY
    # At the borders of two stretches: the second one ends with the profiler.
    assert clock.syncs == 4


def test_with_few_steps_before_steps_after_are_added(monkeypatch, fixtures, tmp_path):
    phases = [NONE] * 3 + [WARMUP] + [RECORD] * 2 + [NONE] * 30
    train(monkeypatch, fixtures, tmp_path, phases, [500, 20, 21, 900, 30, 30, 300] + [7] * 12)
    trace = written(tmp_path)
    assert trace[KEY] == [20, 21] + [7] * 10
    assert len(busbound.open(next(tmp_path.iterdir()))) > 10


def test_steps_after_are_added_when_the_profiler_stops_early(monkeypatch, fixtures, tmp_path):
    train(monkeypatch, fixtures, tmp_path, [RECORD, RECORD, NONE], [30, 30, 300, 8, 9])
    assert written(tmp_path)[KEY] == [8, 9]


def test_while_cupti_stays_attached_steps_after_are_not_counted(monkeypatch, fixtures, tmp_path):
    """On an H200, a step of 3.1 ms took 4.1 ms after the recording."""
    monkeypatch.delenv("TEARDOWN_CUPTI")
    phases = [NONE] * 3 + [WARMUP] + [RECORD] * 2 + [NONE] * 10 + [RECORD, NONE]
    clock = train(monkeypatch, fixtures, tmp_path / "1", phases, [500, 20, 21, 900, 30, 30, 300] + [7] * 12)
    first, second = sorted((tmp_path / "1").iterdir(), key=lambda path: path.name)
    assert json.loads(gzip.decompress(first.read_bytes()))[KEY] == [20, 21]
    assert KEY not in json.loads(gzip.decompress(second.read_bytes()))
    assert clock.syncs == 2


def test_without_such_steps_the_trace_is_as_torch_wrote_it(monkeypatch, fixtures, tmp_path):
    train(monkeypatch, fixtures, tmp_path, [RECORD], [30, 30])
    assert KEY not in written(tmp_path)


def test_other_profilers_are_not_timed(monkeypatch, fixtures, tmp_path):
    clock = train(monkeypatch, fixtures, tmp_path / "unused", [NONE], [])
    seen = []
    other = sys.modules["torch.profiler"].profile(seen.append)
    for _ in range(3):
        other.step()
    other.stop()
    assert clock.syncs == 0 and not seen


def test_a_capture_across_steps_is_left_alone(monkeypatch, fixtures, tmp_path, capsys):
    clock = Clock()
    clock.is_capturing = True
    phases = [NONE] * 10 + [RECORD] * 2 + [NONE]
    train(monkeypatch, fixtures, tmp_path, phases, [10] * 14, clock=clock)
    assert clock.syncs == 0 and KEY not in written(tmp_path)
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "busbound: steps without the profiler are not timed: a CUDA graph is being captured across steps"


def test_an_unknown_profiler_is_left_alone(monkeypatch, tmp_path, capsys):
    module = types.ModuleType("torch.profiler")
    module.profile = type("profile", (), {"step": lambda self: "result"})
    monkeypatch.setitem(sys.modules, "torch.profiler", module)
    busbound.profiler_handler(tmp_path)
    assert module.profile().step() == "result"
    assert capsys.readouterr().err.startswith("busbound: steps without the profiler are not timed: ")


def test_with_real_torch_on_the_cpu(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed: it is too large to install for one test")
    from torch.profiler import ProfilerActivity, profile, schedule

    phases = schedule(wait=10, warmup=1, active=2, repeat=1)
    handler = busbound.profiler_handler(tmp_path, quiet=True)
    with profile(activities=[ProfilerActivity.CPU], schedule=phases, on_trace_ready=handler) as profiler:
        for _ in range(14):
            torch.ones(64, 64) @ torch.ones(64, 64)
            profiler.step()
    assert len(written(tmp_path)[KEY]) == 9
