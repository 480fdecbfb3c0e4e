"""What does a pass take without waiting for copies? Measured once, while every block is streamed."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch

from ._engine import Engine
from ._memory import allocated, peak, undisturbed
from ._rehearsal import Rehearsal
from ._store import Store

#: Passes before the measured ones: kernels are loaded and chosen, memory is allocated.
_WARMUP = 2
_MEASURED = 3


class TrainingTimes(NamedTuple):
    """What a training step takes after its forward pass, in milliseconds; lists have one entry per block."""

    backward: list[float]
    #: Compute between the last block's forward and its backward.
    between: float
    #: Host time of the step, with what it may have waited for: the host's time in backward alone is not known.
    most_host: float
    #: Copies of gradients to the host, updates on the CPU, and norms of the gradients. Empty if there are none.
    gradients: list[float]
    updates: list[float]
    norms: list[float]


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
    #: If backward followed each pass.
    training: TrainingTimes | None = None


class _Pass(NamedTuple):
    """Milliseconds of one pass, by block."""

    forward: dict[int, float]
    backward: dict[int, float]
    outside: float
    #: The part of it between forward and backward.
    between: float


class Probe:
    """Marks on the compute stream: where a block arrives, begins after its copy, and ends."""

    def __init__(self) -> None:
        #: What, which block, whether backward is under way, and when.
        self._marks: list[tuple[str, int, bool, Any]] = []
        self._begun = 0.0
        #: Host time inside of blocks.
        self.host_ms = 0.0

    def arrives(self, index: int, lanes: Any) -> None:
        self._note("arrives", index, lanes)

    def begins(self, index: int, lanes: Any) -> None:
        self._note("begins", index, lanes)
        self._begun = perf_counter()

    def ends(self, index: int, lanes: Any) -> None:
        self.host_ms += (perf_counter() - self._begun) * 1e3
        self._note("ends", index, lanes)

    def turns(self, index: int, lanes: Any) -> None:
        """Backward begins with a block, and goes on with it until another one arrives."""
        self._note("turns", index, lanes)

    def _note(self, what: str, index: int, lanes: Any) -> None:
        self._marks.append((what, index, torch._C._current_graph_task_id() != -1, lanes.mark()))

    def take(self, begin: Any, end: Any, lanes: Any) -> _Pass:
        """The times between two marks; forgets the marks."""
        times: tuple[dict[int, float], dict[int, float]] = ({}, {})
        outside, between, last = 0.0, 0.0, begin
        begun: Any = None
        turned: int | None = None
        is_back = False

        def add(index: int, in_backward: bool, first: Any, second: Any) -> None:
            times[in_backward][index] = times[in_backward].get(index, 0.0) + lanes.milliseconds(first, second)

        for what, index, in_backward, mark in self._marks:
            if what == "arrives" and turned is not None:
                add(turned, True, last, mark)
                turned = None
            elif what == "arrives":
                outside += lanes.milliseconds(last, mark)
                between += lanes.milliseconds(last, mark) if in_backward and not is_back else 0.0
            elif what == "begins":
                begun = mark
            elif what == "turns":
                turned, last = index, mark
            else:
                add(index, in_backward, begun, mark)
                last = mark
            is_back |= in_backward
        if turned is None:
            outside += lanes.milliseconds(last, end)
        else:
            add(turned, True, last, end)
        self._marks.clear()
        return _Pass(*times, outside, between)


def measure(store: Store, run: Callable[[], object], slots: int = 2, rehearsal: Rehearsal | None = None) -> Measured:
    """Runs some passes with everything streamed. With a rehearsal, the CPU updates copies of the weights."""
    probe = Probe()
    engine = Engine(store, (), slots, probe, None if rehearsal is None else rehearsal.updates)
    engine.open()
    try:
        return _measured(engine, probe, store, run, rehearsal)
    finally:
        engine.close()
        if rehearsal is not None:
            rehearsal.close()


def _measured(engine: Engine, probe: Probe, store: Store, run: Callable[[], object], rehearsal: Rehearsal | None) -> Measured:
    lanes, blocks = engine.lanes, len(store.blocks)
    passes: list[_Pass] = []
    host: list[float] = []
    walls: list[float] = []
    activations = 0
    with undisturbed(store.model, store.device) as forget_gradients:
        for number in range(_WARMUP + _MEASURED):
            forget_gradients()
            before = allocated(store.device)
            probe.host_ms, began = 0.0, perf_counter()
            begin = lanes.mark()
            run()
            end = lanes.mark()
            wall = (perf_counter() - began) * 1e3
            one = probe.take(begin, end, lanes)
            activations = max(activations, peak(store.device) - before)
            if rehearsal is not None:
                rehearsal.end_step(engine)
            if number >= _WARMUP:
                passes.append(one)
                walls.append(wall)
                # A pass that waits for its result takes as long for the host as for the device.
                host.append(wall if wall < 0.7 * lanes.milliseconds(begin, end) else probe.host_ms)
    compute = _medians([each.forward for each in passes], blocks)
    outside = median(each.outside for each in passes) + (0.0 if rehearsal is None else rehearsal.after_ms())
    return Measured(
        compute, outside, min(host), activations, engine.measure_rate(), _training(passes, blocks, min(walls), rehearsal)
    )


def _training(passes: list[_Pass], blocks: int, most_host: float, rehearsal: Rehearsal | None) -> TrainingTimes | None:
    if not any(each.backward for each in passes):
        return None
    backward = _medians([each.backward for each in passes], blocks)
    of_cpu: tuple[list[float], list[float], list[float]] = ([], [], []) if rehearsal is None else rehearsal.times(blocks)
    # Medians of a part and of the whole may be of different passes.
    between = min(median(each.between for each in passes), median(each.outside for each in passes))
    return TrainingTimes(backward, between, most_host, *of_cpu)


def _medians(passes: list[dict[int, float]], blocks: int) -> list[float]:
    return [median(each.get(index, 0.0) for each in passes) for index in range(blocks)]
