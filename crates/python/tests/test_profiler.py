"""What torch.profiler calls when a trace is ready."""

import shutil

import pytest

import busbound


class Profiler:
    """As torch.profiler.profile, but its trace is a real one from elsewhere."""

    def __init__(self, trace):
        self.trace = trace

    def export_chrome_trace(self, path):
        shutil.copy(self.trace, path)


def test_the_trace_is_written_and_its_verdict_said(fixtures, tmp_path, capsys):
    handler = busbound.profiler_handler(tmp_path / "new" / "traces")
    handler(Profiler(fixtures / "off_block_pageable_c4.json.gz"))
    (trace,) = (tmp_path / "new" / "traces").iterdir()
    assert trace.name.endswith(".pt.trace.json.gz")
    said = capsys.readouterr()
    assert said.out == ""
    first, second, last = said.err.splitlines()
    assert first.startswith("busbound: Transfer-bound: 75 % of each 274 ms step waits")
    assert second.startswith("  Copies from pageable memory: saves 161 to 176 ms a step. Pin the buffers once")
    assert last == f"  busbound diagnose {trace}"


def test_savings_are_per_what_was_found(fixtures, tmp_path, capsys):
    """Iterations that were detected in the launches used to be called steps."""
    handler = busbound.profiler_handler(tmp_path)
    handler(Profiler(fixtures / "runs" / "bare_decode.json.gz"))
    assert " ms a round. " in capsys.readouterr().err.splitlines()[1]


def test_quiet_writes_and_says_nothing(fixtures, tmp_path, capsys):
    busbound.profiler_handler(str(tmp_path), quiet=True)(Profiler(fixtures / "graph_replay.json.gz"))
    assert len(list(tmp_path.iterdir())) == 1
    assert capsys.readouterr() == ("", "")


def test_training_goes_on_whatever_happens(fixtures, tmp_path, capsys):
    busbound.profiler_handler(tmp_path)(Profiler(tmp_path / "no-such.json"))
    busbound.profiler_handler(tmp_path, machine="abacus")(Profiler(fixtures / "graph_replay.json.gz"))
    (tmp_path / "taken").write_text("")
    busbound.profiler_handler(tmp_path / "taken")(Profiler(fixtures / "graph_replay.json.gz"))
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3 and all(line.startswith("busbound: the trace was not diagnosed: ") for line in said)


def test_with_torch_itself(tmp_path, capsys):
    torch = pytest.importorskip("torch", reason="torch is not installed: it is too large to install for one test")
    from torch.profiler import ProfilerActivity, profile, schedule

    handler = busbound.profiler_handler(tmp_path)
    with profile(
        activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=3), on_trace_ready=handler
    ) as profiler:
        for _ in range(4):
            torch.ones(256, 256) @ torch.ones(256, 256)
            profiler.step()
    (trace,) = tmp_path.iterdir()
    assert len(busbound.open(trace)) > 10
    assert capsys.readouterr().err.startswith("busbound: ")
