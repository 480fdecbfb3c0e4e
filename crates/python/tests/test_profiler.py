"""The trace handler for torch.profiler."""

import re
import shutil

import pytest

import busbound


class Profiler:
    """Stands in for torch.profiler.profile and exports a recorded trace."""

    def __init__(self, trace):
        self.trace = trace

    def export_chrome_trace(self, path):
        shutil.copy(self.trace, path)


def test_the_trace_is_written_and_its_verdict_printed(fixtures, tmp_path, capsys):
    handler = busbound.profiler_handler(tmp_path / "new" / "traces")
    handler(Profiler(fixtures / "off_block_pageable_c4.json.gz"))
    (trace,) = (tmp_path / "new" / "traces").iterdir()
    assert trace.name.endswith(".pt.trace.json.gz")
    output = capsys.readouterr()
    assert output.out == ""
    first, second, last = output.err.splitlines()
    assert first.startswith("busbound: Transfer-bound: 75% of each 274 ms step waits")
    assert re.match("  H2D copies from pageable memory: saves 1\\d\\d\u20131\\d\\d ms/step. Pin the buffers once", second), second
    assert last == f"  busbound diagnose {trace}"


def test_savings_have_the_detected_unit(fixtures, tmp_path, capsys):
    """Iterations detected in the launches used to be called steps."""
    handler = busbound.profiler_handler(tmp_path)
    handler(Profiler(fixtures / "runs" / "bare_decode.json.gz"))
    assert " ms/iteration. " in capsys.readouterr().err.splitlines()[1]


def test_quiet_writes_the_trace_and_prints_nothing(fixtures, tmp_path, capsys):
    busbound.profiler_handler(str(tmp_path), quiet=True)(Profiler(fixtures / "graph_replay.json.gz"))
    assert len(list(tmp_path.iterdir())) == 1
    assert capsys.readouterr() == ("", "")


def test_errors_do_not_stop_the_training(fixtures, tmp_path, capsys):
    busbound.profiler_handler(tmp_path)(Profiler(tmp_path / "no-such.json"))
    busbound.profiler_handler(tmp_path, machine="abacus")(Profiler(fixtures / "graph_replay.json.gz"))
    (tmp_path / "taken").write_text("")
    busbound.profiler_handler(tmp_path / "taken")(Profiler(fixtures / "graph_replay.json.gz"))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and all(line.startswith("busbound: cannot diagnose the trace: ") for line in lines)


def test_with_real_torch(tmp_path, capsys):
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
