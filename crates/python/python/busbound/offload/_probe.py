"""What does a pass take without waiting for copies? Measured once, while every block is streamed."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch

from ._engine import Engine
from ._store import Store

#: Passes before the measured ones: kernels are loaded and chosen, memory is allocated.
_WARMUP = 2
_MEASURED = 3


class Measured(NamedTuple):
    """What the planner needs to know about a model and a machine."""

    #: Per block.
    compute_ms: list[float]
    #: Compute outside of the blocks.
    outside_ms: float
    #: Host time to launch a pass.
    host_ms: float
    #: Memory that a pass needs in addition to weights.
    activation_bytes: int
    #: The rate of a pinned copy of the largest block; ``None`` without a GPU.
    gbps: float | None


class Probe:
    """Marks on the compute stream: where a block arrives, begins after its copy, and ends."""

    def __init__(self) -> None:
        self._marks: list[tuple[str, int, Any]] = []
        self._begun = 0.0
        #: Host time inside of blocks.
        self.host_ms = 0.0

    def arrives(self, index: int, lanes: Any) -> None:
        self._marks.append(("arrives", index, lanes.mark()))

    def begins(self, index: int, lanes: Any) -> None:
        self._marks.append(("begins", index, lanes.mark()))
        self._begun = perf_counter()

    def ends(self, index: int, lanes: Any) -> None:
        self.host_ms += (perf_counter() - self._begun) * 1e3
        self._marks.append(("ends", index, lanes.mark()))

    def take(self, begin: Any, end: Any, lanes: Any) -> tuple[dict[int, float], float]:
        """Milliseconds in each block and outside of them, between two marks; forgets the marks."""
        inside: dict[int, float] = {}
        outside, last = 0.0, begin
        begun: Any = None
        for what, index, mark in self._marks:
            if what == "arrives":
                outside += lanes.milliseconds(last, mark)
            elif what == "begins":
                begun = mark
            else:
                inside[index] = inside.get(index, 0.0) + lanes.milliseconds(begun, mark)
                last = mark
        outside += lanes.milliseconds(last, end)
        self._marks.clear()
        return inside, outside


def measure(store: Store, run: Callable[[], object], slots: int = 2) -> Measured:
    """Runs some passes with everything streamed."""
    probe = Probe()
    engine = Engine(store, (), slots, probe)
    engine.open()
    try:
        lanes = engine.lanes
        before = _allocated(store.device)
        inside: list[dict[int, float]] = []
        outside: list[float] = []
        host: list[float] = []
        for number in range(_WARMUP + _MEASURED):
            probe.host_ms, began = 0.0, perf_counter()
            begin = lanes.mark()
            run()
            end = lanes.mark()
            wall = (perf_counter() - began) * 1e3
            blocks, rest = probe.take(begin, end, lanes)
            if number >= _WARMUP:
                inside.append(blocks)
                outside.append(rest)
                # A pass that waits for its result takes as long for the host as for the device.
                host.append(wall if wall < 0.7 * lanes.milliseconds(begin, end) else probe.host_ms)
        compute = [median([each.get(index, 0.0) for each in inside]) for index in range(len(store.blocks))]
        activations = max(0, _peak(store.device) - before)
        return Measured(compute, median(outside), min(host), activations, engine.measure_rate())
    finally:
        engine.close()


def _allocated(device: Any) -> int:
    if device.type != "cuda":
        return 0
    torch.cuda.reset_peak_memory_stats(device)
    return int(torch.cuda.memory_allocated(device))


def _peak(device: Any) -> int:
    return int(torch.cuda.max_memory_allocated(device)) if device.type == "cuda" else 0
