"""What autograd saves inside a block: weights by their place, everything else as without offload."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch


class _Place(NamedTuple):
    place: Any
    unpack: Callable[[Any], Any]


class _Outer(NamedTuple):
    packed: Any
    unpack: Callable[[Any], Any]


def saved_tensors(pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> Any:
    """Hooks for what ``pack`` gives a place to. The rest goes to the hooks outside: checkpointing, save_on_cpu.

    Torch calls only the innermost hooks.
    """
    outer = _outer_hooks()

    def packed(tensor: Any) -> Any:
        place = pack(tensor)
        if place is not None:
            return _Place(place, unpack)
        return tensor if outer is None else _Outer(outer[0](tensor), outer[1])

    return torch.autograd.graph.saved_tensors_hooks(packed, _unpacked)


def _unpacked(packed: Any) -> Any:
    if type(packed) is _Place:
        return packed.unpack(packed.place)
    if type(packed) is _Outer:
        return packed.unpack(packed.packed)
    return packed


def _outer_hooks() -> Any:
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return None if top is None else top(False)
