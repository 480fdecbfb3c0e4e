"""What torch.profiler costs on this host."""

import json
import shutil
import sys
import types

import pytest

import busbound
from busbound._measure import FEW_CALLS, _costs, _counted


def test_known_costs_are_found_again():
    counts = [[1, 0, 0], [0, 1, 0], [1, 1, 1], [1, 2, 1], [2, 1, 1]]
    true = [1.5, 0.75, 2.25]
    extra = [sum(count * us for count, us in zip(row, true, strict=True)) for row in counts]
    assert _costs(counts, extra) == pytest.approx(true)
    # What no loop records costs nothing, and noise makes no cost negative.
    assert _costs([[1, 0, 0], [1, 0, 1]], [1.5, 1.2]) == [1.35, 0.0, 0.0]
    assert _costs([[1, 0, 0]], [-0.5]) == [0.0, 0.0, 0.0]


def test_events_are_counted_by_what_they_cost():
    once = [{"ph": "X", "cat": cat} for cat in ("cpu_op", "cuda_runtime", "cuda_driver", "gpu_memcpy", "overhead")]
    sync = {"ph": "X", "cat": "cuda_runtime"}
    arrow = {"ph": "f", "cat": "cpu_op"}
    assert _counted([*(once * FEW_CALLS), sync, arrow]) == {"operator": 1, "call": 2, "work": 1}


def test_the_cost_is_saved_in_a_machine_profile(fixtures, tmp_path):
    path = tmp_path / "machine.json"
    shutil.copy(fixtures / "machines" / "h200.json", path)
    cost = busbound.ProfilerCost(
        {"tool": "torch_profiler", "operator_us": 2.0, "call_us": 1.0, "work_us": 0.5, "shapes_us": 1.0}
        | {"frame_us": 0.25, "measured": "by hand"}
    )
    cost.save(path)
    cost.save(path)
    assert json.loads(path.read_text())["profiler"] == [cost.to_dict()]
    busbound.open(fixtures / "graph_replay.json.gz").diagnose(machine=path)
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(ValueError, match="is not a machine profile: busbound bench writes one"):
        cost.save(tmp_path / "other.json")


def test_without_cuda_the_error_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RuntimeError, match="needs PyTorch with CUDA"):
        busbound.measure_profiler()
    torch = types.SimpleNamespace(cuda=types.SimpleNamespace(is_available=lambda: False))
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(RuntimeError, match="needs a CUDA device"):
        busbound.measure_profiler()
