"""The planner of busbound.offload, through the native module."""

import json
import sys

import pytest

import busbound
from busbound._native import plan_stream

LAYER = 405_000_000


def planned(gpu_bytes, compute_ms=1.0, **options):
    answer = plan_stream([LAYER] * 16, [compute_ms] * 16, 0.5, 0.0, gpu_bytes, 525_000_000, 100_000_000, 55.4, **options)
    return json.loads(answer)


def test_all_streamed_is_bound_by_the_bus():
    plan = planned(1_500_000_000)
    assert plan["bound"] == "bus" and plan["slots"] == 2 and not any(plan["resident"])
    assert plan["limit_ms"] == pytest.approx(117, abs=0.5)
    assert plan["expected_ms"] == pytest.approx(plan["limit_ms"], rel=0.001)
    assert plan["step_ms"]["low"] <= plan["expected_ms"] <= plan["step_ms"]["high"]


def test_more_memory_is_never_slower_and_fits():
    last = None
    for gpu_bytes in range(1_500_000_000, 8_000_000_000, 500_000_000):
        plan = planned(gpu_bytes)
        assert plan["used_bytes"] <= gpu_bytes
        assert last is None or plan["expected_ms"] <= last * 1.001
        last = plan["expected_ms"]
    assert all(plan["resident"]) and plan["slots"] == 0


def test_given_residents_are_only_predicted():
    resident = [index % 2 == 0 for index in range(16)]
    plan = planned(1, resident=resident, slots=3)
    assert plan["resident"] == resident and plan["slots"] == 3
    assert plan["expected_ms"] == pytest.approx(117 / 2, abs=0.5)


def test_too_little_memory_says_how_much_is_needed():
    with pytest.raises(busbound.BusboundError, match="at least 1.44 GB"):
        planned(1_000_000_000)


def test_a_machine_replaces_a_measured_rate():
    slow = json.loads(plan_stream([LAYER] * 4, [1.0] * 4, 0.0, 0.0, 10**9, 0, 0, None, "pcie3x16"))
    fast = json.loads(plan_stream([LAYER] * 4, [1.0] * 4, 0.0, 0.0, 10**9, 0, 0, None, "pcie5x16"))
    assert slow["copy_gbps"] < fast["copy_gbps"] / 3


def test_importing_busbound_does_not_import_torch():
    import subprocess

    code = "import sys, busbound; busbound.offload; assert callable(busbound.offload); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
