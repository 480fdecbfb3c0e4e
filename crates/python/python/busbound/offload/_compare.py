"""Is a pass faster with offload than without it? A few passes of both are timed before the first real one."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch

from ._lanes import synchronize
from ._memory import allocated, nbytes_of, peak, tensors_of, undisturbed

#: Groups of passes that are timed, and how long a group takes at least if its passes are short.
_GROUPS = 3
_GROUP_MS = 30.0
_MOST_PASSES = 8
#: A smaller difference is no gain.
_LEAST_GAIN = 0.02

Run = Callable[[], object]


class Rival(NamedTuple):
    """What offload replaces."""

    #: Runs a pass of it; ``None`` if it cannot run while offload does.
    run: Run | None
    #: Milliseconds per pass, by group.
    ms: list[float]


class Decision(NamedTuple):
    """Milliseconds per pass with and without offload."""

    offloaded_ms: float
    without_ms: float
    is_faster: bool

    @property
    def line(self) -> str:
        return (
            f"offload steps aside: a pass takes {self.offloaded_ms:.1f} ms with it and {self.without_ms:.1f} ms without; "
            "compare=False offloads anyway"
        )


def as_it_came(model: Any, run: Run, device: Any, budget: int | None) -> Rival | None:
    """Times a model that is on the GPU as a whole; ``None`` if it is not, or needs more memory than it may take."""
    tensors = list(tensors_of(model))
    weights = sum(map(nbytes_of, tensors))
    if any(each.device != device for each in tensors) or (budget is not None and weights > budget):
        return None
    before = allocated(device)
    with undisturbed(model, device):
        try:
            ms = times(run, device)
        except torch.cuda.OutOfMemoryError:
            return None
    needed = weights + peak(device) - before
    return None if budget is not None and needed > budget else Rival(None, ms)


def decide(rival: Rival, run: Run, device: Any, model: Any) -> Decision:
    """Times offload, in turns with what it replaces if that can run now."""
    mine: list[float] = []
    others = list(rival.ms)
    with undisturbed(model, device):
        if rival.run is None:
            mine = times(run, device)
        else:
            for _ in range(_GROUPS):
                others += times(rival.run, device, 1)
                mine += times(run, device, 1)
    with_it, without = median(mine), median(others)
    noise = max(_LEAST_GAIN * without, max(mine) - min(mine), max(others) - min(others))
    # Times that scatter widely still show a gain if they are all apart.
    is_apart = max(mine) < min(others) and with_it < (1 - _LEAST_GAIN) * without
    return Decision(with_it, without, is_apart or with_it < without - noise)


def times(run: Run, device: Any, groups: int = _GROUPS) -> list[float]:
    """Milliseconds per pass, of groups of passes that are not waited for."""
    # The first pass loads kernels and allocates memory.
    run()
    once = _group(run, 1, device)
    passes = max(1, min(_MOST_PASSES, round(_GROUP_MS / max(once, 1e-3))))
    return [_group(run, passes, device) for _ in range(groups)]


def _group(run: Run, passes: int, device: Any) -> float:
    synchronize(device)
    begin = perf_counter()
    for _ in range(passes):
        run()
    synchronize(device)
    return (perf_counter() - begin) * 1e3 / passes
