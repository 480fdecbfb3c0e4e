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

    def end_step(self, engine: Engine) -> None:
        engine.end_backward()
        self.updates.finish()
        engine.end_step()
        self._busy_ms.append(self.updates.update_ms[-1])

    def close(self) -> None:
        self.updates.close()

    def times(self, blocks: int) -> tuple[list[float], list[float], list[float]]:
        """Per block: milliseconds of the copies of its gradients, of its update, and of their norm."""
        gradients, updates, norms = ([0.0] * blocks for _ in range(3))
        rate = self.updates.measure_rate()
        for index, each in zip(self.updates.indices, self._stand_ins, strict=False):
            updates[index] = median(each.ms[_WARMUP:]) if each.ms[_WARMUP:] else 0.0
            gradients[index] = 0.0 if rate is None else self.updates.gradient_bytes(index) / rate / 1e6
        if not self._clips:
            return gradients, updates, []
        rest = max(0.0, median(self._busy_ms[_WARMUP:]) - sum(updates))
        total = sum(self.updates.gradient_bytes(index) for index in self.updates.indices)
        for index in self.updates.indices:
            norms[index] = rest * self.updates.gradient_bytes(index) / total
        return gradients, updates, norms


class _StandIn:
    """An optimizer in whose place copies of the parameters are updated, with the gradients of the parameters."""

    def __init__(self, parameters: list[Any], make: Callable[[list[Any]], Any], copies: dict[Any, Any]) -> None:
        self.param_groups = [{"params": parameters}]
        alike = tuple((each.shape, each.dtype, each.device) for each in parameters)
        if alike not in copies:
            mine = [torch.nn.Parameter(each.detach().clone()) for each in parameters]
            copies[alike] = (mine, make(mine))
        self._parameters, (self._copies, self._optimizer) = parameters, copies[alike]
        #: Milliseconds of each step.
        self.ms: list[float] = []

    def step(self) -> None:
        for mine, each in zip(self._copies, self._parameters, strict=True):
            mine.grad = each.grad
        begin = perf_counter()
        self._optimizer.step()
        self.ms.append((perf_counter() - begin) * 1e3)
        for mine in self._copies:
            mine.grad = None

    def zero_grad(self) -> None:
        for each in self._parameters:
            each.grad = None
