"""Which tensors share memory, and how do they keep sharing it when they move?"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch

from ._sizes import OffloadError

_PLAIN = {torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.Tensor)}


class Piece(NamedTuple):
    """A range of memory and the tensors that are views of parts of it."""

    begin: int
    end: int
    tensors: list[Any]


def is_plain(tensor: Any) -> bool:
    """Whether a tensor's data is one range of memory that views can be made of."""
    return type(tensor) in _PLAIN and tensor.layout == torch.strided and not tensor.is_meta


def nbytes_of(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def tensors_of(module: Any) -> Iterator[Any]:
    """The parameters and buffers of a module, each once."""
    seen: set[int] = set()
    for tensor in (*module.parameters(), *module.buffers()):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield tensor


def tensors_of_one(module: Any) -> Iterator[Any]:
    """The parameters and buffers of a module itself, without those of its children."""
    for tensor in (*module._parameters.values(), *module._buffers.values()):
        if tensor is not None:
            yield tensor


def pieces(tensors: Iterable[Any]) -> list[Piece]:
    """The memory of plain tensors, cut where no tensor crosses the cut."""
    ranges = [(*_range(tensor), tensor) for tensor in tensors if is_plain(tensor) and tensor.numel()]
    ranges.sort(key=lambda each: each[:2])
    found: list[Piece] = []
    for begin, end, tensor in ranges:
        # Addresses of different devices are different.
        if found and begin < found[-1].end:
            last = found.pop()
            found.append(Piece(last.begin, max(end, last.end), [*last.tensors, tensor]))
        else:
            found.append(Piece(begin, end, [tensor]))
    return found


def move(tensors: Iterable[Any], device_of: Callable[[Any], Any]) -> None:
    """Moves tensors in place; those that share memory still do afterwards."""
    away = [tensor for tensor in tensors if tensor.device != device_of(tensor)]
    with torch.inference_mode(False), torch.no_grad():
        for piece in pieces(away):
            first = piece.tensors[0]
            storage = first.untyped_storage()
            whole = torch.empty(0, dtype=torch.uint8, device=first.device)
            whole.set_(storage, piece.begin - storage.data_ptr(), (piece.end - piece.begin,))
            there = torch.empty_like(whole, device=device_of(first)).copy_(whole)
            for tensor in piece.tensors:
                view = torch.empty(0, dtype=tensor.dtype, device=there.device)
                offset = (tensor.data_ptr() - piece.begin) // tensor.element_size()
                tensor.data = view.set_(there.untyped_storage(), offset, tensor.shape, tensor.stride())
        for tensor in away:
            if tensor.device != device_of(tensor):
                _move_other(tensor, device_of(tensor))
            if tensor.grad is not None:
                tensor.grad = tensor.grad.to(tensor.device)


def _move_other(tensor: Any, device: Any) -> None:
    try:
        tensor.data = tensor.data.to(device)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        raise OffloadError(
            f"cannot move a {type(tensor).__name__} of shape {tuple(tensor.shape)} to {device}: {error}; "
            "move the model there before it is offloaded"
        ) from error


def _range(tensor: Any) -> tuple[int, int]:
    begin = int(tensor.data_ptr())
    extent = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return begin, begin + extent * int(tensor.element_size())


@contextlib.contextmanager
def undisturbed(model: Any, device: Any) -> Iterator[Callable[[], None]]:
    """Passes inside leave gradients, buffers (running statistics) and torch's random numbers as they were. Yields what forgets the
    gradients of a pass.
    """
    before = [(each, each.grad) for each in model.parameters() if each.requires_grad]
    buffers = [(each, each.detach().cpu().clone()) for each in model.buffers() if is_plain(each)]
    random = torch.get_rng_state()
    random_of_gpu = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def forget() -> None:
        for each, _ in before:
            each.grad = None

    forget()
    try:
        yield forget
    finally:
        for each, gradient in before:
            each.grad = gradient
        for each, value in buffers:
            if not torch.equal(each.detach().cpu(), value):
                with torch.inference_mode(each.is_inference()), torch.no_grad():
                    each.copy_(value)
        torch.set_rng_state(random)
        if random_of_gpu is not None:
            torch.cuda.set_rng_state(random_of_gpu, device)


def allocated(device: Any) -> int:
    """Bytes that torch has given out on the GPU. The peak begins here."""
    if device.type != "cuda":
        return 0
    torch.cuda.reset_peak_memory_stats(device)
    return int(torch.cuda.memory_allocated(device))


def peak(device: Any) -> int:
    """The most bytes since ``allocated``."""
    return int(torch.cuda.max_memory_allocated(device)) if device.type == "cuda" else 0
