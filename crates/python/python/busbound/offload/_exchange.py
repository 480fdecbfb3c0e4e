"""How do the weights of a block change between host memory and a slot? Modules get other tensors in place of their own.

A module finds a weight in its dictionary of parameters or buffers. For each slot there are parameters that are views of
it, made once: an exchange is one assignment to a dictionary per weight, and the model's own parameters never change.
Weights that a module also keeps elsewhere (the list of weights of an LSTM) are moved by ``.data`` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import torch

from .._native import Swap

_VERSION = attrgetter("_version")
#: Where modules keep their weights and children.
_USUAL = ("_parameters", "_buffers", "_modules")


class Exchange:
    """The tensors of one block in one slot. ``views`` are views of ``flat``, and nobody else writes through it."""

    __slots__ = ("_before", "_moved", "_swap", "enter", "leave", "there", "views")

    def __init__(
        self, module: Any, tensors: Sequence[Any], flat: Any, views: Sequence[Any], host_views: Sequence[Any]
    ) -> None:
        self.views = tuple(views)
        kept = _kept_elsewhere(module, {id(tensor) for tensor in tensors})
        there = {
            id(tensor): _like(tensor, view)
            for tensor, view in zip(tensors, views, strict=True)
            if id(tensor) not in kept
        }
        #: The slot's parameter for each tensor; ``None`` for those that are moved.
        self.there = tuple(there.get(id(tensor)) for tensor in tensors)
        # Somebody may assign another one or remove it meanwhile, which stays.
        self._swap = Swap(
            [
                (entries, name, tensor, there[id(tensor)])
                for each in module.modules()
                for entries in (each._parameters, each._buffers)
                for name, tensor in entries.items()
                if id(tensor) in there
            ],
            flat,
        )
        #: The model's own tensor, what it is in the slot, and what it is in host memory.
        self._moved = [each for each in zip(tensors, views, host_views, strict=True) if id(each[0]) in kept]
        #: Versions of the moved ones when the block began.
        self._before = 0
        #: The block uses the slot.
        self.enter: Callable[[], None] = self._enter if self._moved else self._swap.enter
        #: The model's own tensors are back. Whether the block wrote to one of them while it used the slot.
        self.leave: Callable[[], bool] = self._leave if self._moved else self._swap.leave

    def _enter(self) -> None:
        self._swap.enter()
        for tensor, view, _ in self._moved:
            tensor.data = view
        self._before = self._versions()

    def _leave(self) -> bool:
        is_written = self._swap.leave() or self._versions() != self._before
        for tensor, _, view in self._moved:
            tensor.data = view
        return is_written

    def _versions(self) -> int:
        return sum(_VERSION(tensor) for tensor, _, _ in self._moved)


def _like(tensor: Any, view: Any) -> Any:
    """A tensor of the same kind as a parameter or buffer, at another place."""
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    there = torch.nn.Parameter(view, requires_grad=tensor.requires_grad) if is_parameter else view.detach()
    there.__dict__.update(tensor.__dict__)
    return there


def _kept_elsewhere(module: Any, ids: set[int]) -> set[int]:
    """Tensors that a module also has as another attribute, or in a list or dictionary."""
    return {
        id(found)
        for each in module.modules()
        for name, value in vars(each).items()
        if name not in _USUAL
        for found in _inside(value, 2)
        if id(found) in ids
    }


def _inside(value: Any, depth: int) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for each in value:
            yield from _inside(each, depth - 1)
    elif depth and isinstance(value, dict):
        for each in value.values():
            yield from _inside(each, depth - 1)
