"""What does torch.profiler cost on this host? Loops of tiny operations, with and without it.

Runs in a process of its own, with TEARDOWN_CUPTI=1: otherwise CUPTI stays attached after the first recording, and loops
without the profiler would be too slow.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from ._options import checked
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ._trace import Path

    #: A loop body and how often it runs.
    Body = Callable[[], Any]

#: The categories of torch.profiler's events that are counted, by what they cost.
CATEGORIES = {
    "cpu_op": "operator",
    "cuda_runtime": "call",
    "cuda_driver": "call",
    "kernel": "work",
    "gpu_memcpy": "work",
    "gpu_memset": "work",
    "python_function": "frame",
}
#: Fewer than the queue of a stream holds: the host must not wait for the GPU.
CALLS = 500
#: Calls of the run that counts events, and of the warm-up before each timed loop.
FEW_CALLS = 100


class ProfilerCost(Record):
    """Host time that recording adds, in microseconds: an entry of a machine profile's ``profiler``."""

    tool: str
    #: Per CPU operator.
    operator_us: float
    #: Per call of the CUDA runtime or driver.
    call_us: float
    #: Per kernel, copy or memset, in addition to its call.
    work_us: float
    #: Per operator, in addition, with record_shapes.
    shapes_us: float
    #: Per Python frame, with with_stack.
    frame_us: float
    measured: str

    def save(self, path: Path) -> None:
        """Adds it to a machine profile that ``busbound bench`` wrote, in place of an earlier one.

        Args:
            path: The machine profile.

        Raises:
            ValueError: The file is not a machine profile.
        """
        path = os.fspath(path)
        with open(path, encoding="utf-8") as file:
            profile = json.load(file)
        if not isinstance(profile, dict) or not str(profile.get("schema", "")).startswith("busbound.machine/"):
            raise ValueError(f"{path} is not a machine profile: busbound bench writes one")
        others = [cost for cost in profile.get("profiler", []) if cost.get("tool") != self.tool]
        profile["profiler"] = [*others, self.to_dict()]
        temporary = f"{path}.tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(json.dumps(profile, indent=2, ensure_ascii=False) + "\n")
        os.replace(temporary, path)


@checked
def measure_profiler(*, repetitions: int = 11, save: Path | None = None) -> ProfilerCost:
    """Measures in some seconds what torch.profiler costs on this host, in a process of its own.

    Args:
        repetitions: How often each loop runs in each state; the median counts.
        save: A machine profile from ``busbound bench`` to add the result to.

    Returns:
        What each kind of event costs.

    Raises:
        RuntimeError: There is no CUDA device.
    """
    _torch()
    command = [sys.executable, "-m", __name__, str(max(1, repetitions))]
    environment = os.environ | {"TEARDOWN_CUPTI": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"measure_profiler failed: {done.stderr.strip() or done.returncode}")
    cost = ProfilerCost(json.loads(done.stdout.splitlines()[-1])["cost"])
    if save is not None:
        cost.save(save)
    return cost


def measure(repetitions: int) -> dict[str, Any]:
    """The cost, and every time and count that it is computed from."""
    torch = _torch()
    bodies = _bodies(torch)
    times = _interleaved(torch, bodies, repetitions)
    counts = {name: _events_per_call(torch, body) for name, body in bodies.items()}
    recorded = [name for name in bodies if name != "frames"]
    operator_us, call_us, work_us = _costs(
        [[counts[name].get(kind, 0) for kind in ("operator", "call", "work")] for name in recorded],
        [_extra(times, "on", "off", name) for name in recorded],
    )
    cost = {
        "tool": "torch_profiler",
        "operator_us": operator_us,
        "call_us": call_us,
        "work_us": work_us,
        "shapes_us": _rounded(_extra(times, "shapes", "on", "launch") / max(1, counts["launch"].get("operator", 0))),
        "frame_us": _rounded(_extra(times, "stack", "on", "frames") / max(1, counts["frames"].get("frame", 0))),
        "measured": _measured(torch, repetitions),
    }
    us_per_call = {f"{state} {name}": [round(us, 4) for us in series] for (state, name), series in times.items()}
    return {"cost": cost, "events_per_call": counts, "us_per_call": us_per_call}


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise RuntimeError("measure_profiler needs PyTorch with CUDA") from error
    if not torch.cuda.is_available():
        raise RuntimeError("measure_profiler needs a CUDA device: torch.cuda.is_available() is False")
    return torch


def _bodies(torch: Any) -> dict[str, Body]:
    """Loop bodies that differ in what the profiler records of them."""
    device = torch.zeros(16, device="cuda")
    pinned = torch.zeros(16, pin_memory=True)
    stream = torch.cuda.current_stream()

    def frame() -> None:
        pass

    return {
        "operator": lambda: device.view(4, 4),
        "call": stream.query,
        "launch": lambda: device.add_(1.0),
        "copy": lambda: device.copy_(pinned, non_blocking=True),
        "memset": device.zero_,
        "frames": frame,
    }


#: The states in which loops run, with the arguments of torch.profiler.profile; None: without it.
STATES: dict[str, dict[str, bool] | None] = {
    "off": None,
    "on": {},
    "shapes": {"record_shapes": True},
    "stack": {"with_stack": True},
}


def _interleaved(torch: Any, bodies: dict[str, Body], repetitions: int) -> dict[tuple[str, str], list[float]]:
    """Microseconds per call, by state and body. The first repetition warms up and does not count."""
    times: dict[tuple[str, str], list[float]] = {}
    for repetition in range(repetitions + 1):
        for state, options in STATES.items():
            if options is None:
                timed = {name: _time(torch, body) for name, body in bodies.items()}
            else:
                with _profile(torch, **options):
                    timed = {name: _time(torch, body) for name, body in bodies.items()}
            for name, us in timed.items():
                if repetition > 0:
                    times.setdefault((state, name), []).append(us)
    return times


def _profile(torch: Any, **options: bool) -> Any:
    activity = torch.profiler.ProfilerActivity
    return torch.profiler.profile(activities=[activity.CPU, activity.CUDA], **options)


def _time(torch: Any, body: Body) -> float:
    """Host time of one call in microseconds."""
    for _ in range(FEW_CALLS):
        body()
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(CALLS):
        body()
    ended = time.perf_counter()
    torch.cuda.synchronize()
    return (ended - began) / CALLS * 1e6


def _events_per_call(torch: Any, body: Body) -> dict[str, int]:
    """What torch.profiler records of one call, by what it costs."""
    torch.cuda.synchronize()
    with _profile(torch, with_stack=True) as profiler:
        for _ in range(FEW_CALLS):
            body()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path, encoding="utf-8", errors="replace") as file:
            events = json.load(file)["traceEvents"]
    return _counted(events)


def _counted(events: Sequence[dict[str, Any]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for event in events:
        kind = CATEGORIES.get(event.get("cat", ""))
        if kind is not None and event.get("ph") == "X":
            counts[kind] = counts.get(kind, 0) + 1
    # Rounded: a few events belong to the profiler itself.
    return {kind: round(count / FEW_CALLS) for kind, count in counts.items()}


def _extra(times: dict[tuple[str, str], list[float]], with_it: str, without: str, body: str) -> float:
    """Median over repetitions of what one call takes longer, in microseconds."""
    from statistics import median

    pairs = zip(times[with_it, body], times[without, body])  # noqa: B905 — the same length
    return median(slower - faster for slower, faster in pairs)


def _costs(counts: list[list[int]], extra_us: list[float]) -> list[float]:
    """Least squares without negative costs: ``counts`` times the costs is ``extra_us``."""
    size = len(counts[0])
    free = [index for index in range(size) if any(row[index] for row in counts)]
    while free:
        solution = _least_squares([[row[index] for index in free] for row in counts], extra_us)
        negative = [index for index, us in zip(free, solution) if us < 0]  # noqa: B905 — the same length
        if not negative:
            found = dict(zip(free, solution))  # noqa: B905 — the same length
            return [_rounded(found.get(index, 0.0)) for index in range(size)]
        free.remove(negative[0])
    return [0.0] * size


def _least_squares(rows: list[list[int]], values: list[float]) -> list[float]:
    """The normal equations, by Gaussian elimination; zero for what the rows do not determine."""
    size = len(rows[0])
    matrix = [
        [float(sum(row[i] * row[j] for row in rows)) for j in range(size)]
        + [sum(row[i] * value for row, value in zip(rows, values))]  # noqa: B905 — the same length
        for i in range(size)
    ]
    for column in range(size):
        best = max(range(column, size), key=lambda row: abs(matrix[row][column]))
        matrix[column], matrix[best] = matrix[best], matrix[column]
        pivot = matrix[column][column]
        if abs(pivot) < 1e-9:
            matrix[column] = [0.0] * (size + 1)
            continue
        matrix[column] = [value / pivot for value in matrix[column]]
        for row in range(size):
            if row != column:
                factor = matrix[row][column]
                matrix[row] = [a - factor * b for a, b in zip(matrix[row], matrix[column])]  # noqa: B905 — the same length
    return [row[size] for row in matrix]


def _rounded(us: float) -> float:
    return max(0.0, round(us, 4))


def _measured(torch: Any, repetitions: int) -> str:
    import datetime
    import platform

    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    host = _cpu_name() or platform.machine()
    return (
        f"busbound.measure_profiler(repetitions={repetitions}), torch {torch.__version__}, Python"
        f" {platform.python_version()}, {torch.cuda.get_device_name()}, host {host}, {date}"
    )


def _cpu_name() -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), None)
    except OSError:
        return None


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
