"""A training step that changes no weights: what do the CPU's updates take while copies are under way?

Everything is as in training, except that the optimizers update copies of the weights. Blocks that are alike share them.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import torch

from ._engine import Engine
from ._lanes import mark_on, milliseconds
from ._store import Store
from ._updates import Make, Updates

#: Steps that are not measured: optimizers allocate their states.
_WARMUP = 2


class Rehearsal:
    """The updates of a store, on copies of its weights."""

    def __init__(self, store: Store, make: Make, max_norm: float | None) -> None:
        copies: dict[Any, Any] = {}
        self._stand_ins: list[_StandIn] = []

        def stand_in(parameters: list[Any]) -> _StandIn:
            self._stand_ins.append(_StandIn(parameters, make, copies))
            return self._stand_ins[-1]

        self._store, self._clips = store, max_norm is not None
        self.updates = Updates(store, range(len(store.blocks)), stand_in, max_norm)
        #: Milliseconds of each step in which the CPU worked.
        self._busy_ms: list[float] = []
        #: The same for the update of each block.
        self._took_ms: list[dict[int, float]] = []

    def end_step(self, engine: Engine) -> None:
        engine.end_backward()
        self.updates.finish()
        engine.end_step()
        self._busy_ms.append(self.updates.update_ms[-1])
        self._took_ms.append(dict(self.updates.took_ms))

    def close(self) -> None:
        self.updates.close()

    def after_ms(self) -> float:
        """What the optimizer of the weights on the GPU takes after backward."""
        on_gpu = self._stand_ins[len(self.updates.indices) :]
        return sum(median(each.times()[_WARMUP:]) for each in on_gpu)

    def times(self, blocks: int) -> tuple[list[float], list[float], list[float]]:
        """Per block: milliseconds of the copies of its gradients, of its update, and of their norm."""
        gradients, updates, norms = ([0.0] * blocks for _ in range(3))
        rate, nbytes = self.updates.measure_rate(), self.updates.gradient_bytes
        for index in self.updates.indices:
            updates[index] = median(each.get(index, 0.0) for each in self._took_ms[_WARMUP:])
            gradients[index] = 0.0 if rate is None else nbytes(index) / rate / 1e6
        if not self._clips:
            return gradients, updates, []
        rest = max(0.0, median(self._busy_ms[_WARMUP:]) - sum(updates))
        total = sum(map(nbytes, self.updates.indices))
        for index in self.updates.indices:
            norms[index] = rest * nbytes(index) / total
        return gradients, updates, norms


class _StandIn:
    """An optimizer in whose place copies of the parameters are updated, with the gradients of the parameters."""

    def __init__(self, parameters: list[Any], make: Callable[[list[Any]], Any], copies: dict[Any, Any]) -> None:
        self.param_groups = [{"params": parameters}]
        self._parameters, self._make, self._all = parameters, make, copies
        #: When each step began and ended: for the host, and for the GPU if it does the step.
        self._steps: list[tuple[float, float, Any, Any]] = []

    def step(self) -> None:
        copies, optimizer = self._copied()
        for mine, each in zip(copies, self._parameters, strict=True):
            mine.grad = each.grad
        device = copies[0].device
        begin = (perf_counter(), _mark(device))
        optimizer.step()
        self._steps.append((begin[0], perf_counter(), begin[1], _mark(device)))
        for mine in copies:
            mine.grad = None

    def _copied(self) -> tuple[list[Any], Any]:
        """The copies and their optimizer. Made in the first step: before it, weights outside of blocks are not on the GPU yet."""
        alike = tuple((each.shape, each.dtype, each.device) for each in self._parameters)
        if alike not in self._all:
            mine = [torch.nn.Parameter(each.detach().clone()) for each in self._parameters]
            self._all[alike] = (mine, self._make(mine))
        found: tuple[list[Any], Any] = self._all[alike]
        return found

    def times(self) -> list[float]:
        """Milliseconds of each step."""
        return [
            max((end - begin) * 1e3, 0.0 if first is None else milliseconds(first, last))
            for begin, end, first, last in self._steps
        ]

    def zero_grad(self) -> None:
        for each in self._parameters:
            each.grad = None


def _mark(device: Any) -> Any:
    return mark_on(torch.cuda.current_stream(device)) if device.type == "cuda" else None
