"""The weights of each block as one flat buffer in host memory.

Parameters become views of it. Some tensors cannot be part of it and stay on the GPU: tensors that something outside of
the block shares, trainable ones, small buffers, and tensor subclasses, whose data is not one plain tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import torch

from ._blocks import Block
from ._host import HostMemory
from ._memory import is_plain, move, nbytes_of, pieces, tensors_of, tensors_of_one

#: Alignment of each tensor in a block: what the CUDA allocator guarantees, and vectorized kernels rely on.
ALIGNMENT = 256
#: Smaller buffers stay on the GPU: they are often written to in the forward pass, and save little.
_SMALL_BUFFER = 1 << 20


#: The attribute of a parameter whose values are still in a file: a function that reads them into a tensor.
READ_INTO = "_busbound_read_into"


_VERSION = attrgetter("_version")


class Segment(NamedTuple):
    """One tensor inside the buffer of a block."""

    name: str
    #: The parameters or buffers that are views of it; more than one if they share memory.
    tensors: tuple[Any, ...]
    offset: int
    nbytes: int
    dtype: Any
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def room(self) -> int:
        """Bytes until the next tensor."""
        return -(-self.nbytes // ALIGNMENT) * ALIGNMENT

    def of(self, flat: Any) -> Any:
        """This tensor in a flat buffer with the layout of the block."""
        values = flat[self.offset : self.offset + self.nbytes].view(self.dtype)
        return values.as_strided(self.shape, self.stride, values.storage_offset())


class StoredBlock:
    """A block whose weights are in host memory."""

    def __init__(self, block: Block, segments: list[Segment], device: Any) -> None:
        self.name, self.module, self.segments = block.name, block.module, segments
        last = segments[-1]
        self.nbytes = last.offset + last.nbytes
        self.memory = HostMemory(self.nbytes, device)
        self.flat = self.memory.tensor
        self.tensors = tuple(tensor for segment in segments for tensor in segment.tensors)
        self.host_views = self.views_in(self.flat)
        self.names = tuple(segment.name for segment in segments for _ in segment.tensors)
        self.trainable = any(tensor.requires_grad for tensor in self.tensors)
        #: ``versions()`` when the weights were copied to the GPU last.
        self.copied = 0

    def drop(self, numbers: list[int]) -> None:
        """These tensors are no longer streamed. The layout stays."""
        gone = {id(self.tensors[number]) for number in numbers}
        left = [segment._replace(tensors=tuple(t for t in segment.tensors if id(t) not in gone)) for segment in self.segments]
        self.segments = left
        self.tensors = tuple(tensor for segment in left for tensor in segment.tensors)
        self.names = tuple(segment.name for segment in left for _ in segment.tensors)
        self.host_views = self.views_in(self.flat)

    def views_in(self, flat: Any) -> tuple[Any, ...]:
        """A view of ``flat`` for each of ``tensors``."""
        # Inference tensors could not be assigned to parameters outside of inference mode.
        with torch.inference_mode(False), torch.no_grad():
            return tuple(segment.of(flat) for segment in self.segments for _ in segment.tensors)

    def take(self) -> None:
        """Copies the weights into the buffer and lets the parameters be views of it."""
        with torch.no_grad():
            for tensor, view in zip(self.tensors, self.host_views, strict=True):
                source = getattr(tensor, READ_INTO, None)
                if source is None:
                    view.copy_(tensor.detach())
                else:
                    source(view)
                    delattr(tensor, READ_INTO)
                tensor.data = view

    def take_again(self) -> None:
        """The same if the parameters have other memory meanwhile: they were on the GPU, for example, and trained there."""
        if any(tensor.data_ptr() != view.data_ptr() for tensor, view in zip(self.tensors, self.host_views, strict=True)):
            self.take()

    def write_back(self) -> None:
        """The buffer gets the values that the tensors have now."""
        with torch.no_grad():
            for tensor, view in zip(self.tensors, self.host_views, strict=True):
                view.copy_(tensor.detach())

    def versions(self) -> int:
        """Changes whenever somebody writes to one of the tensors."""
        return sum(map(_VERSION, self.tensors))


class Store:
    """Where the tensors of a model are: in the buffers of its blocks, or on the GPU all the time."""

    def __init__(
        self,
        model: Any,
        blocks: list[Block],
        device: Any,
        keep_trainable: bool,
    ) -> None:
        self.model, self.device = model, device
        #: One line for each thing that stays on the GPU for a reason users may not expect.
        self.notes: list[str] = []
        self._home = {id(tensor): (tensor, tensor.device) for tensor in tensors_of(model)}
        shared = _shared(model, blocks)
        self.blocks: list[StoredBlock] = []
        for block in blocks:
            segments = self._segments(block, shared, keep_trainable)
            if segments:
                stored = StoredBlock(block, segments, device)
                stored.take()
                self.blocks.append(stored)
        streamed = {id(tensor) for block in self.blocks for tensor in block.tensors}
        #: Tensors that are on the GPU all the time.
        self.outside = [tensor for tensor in tensors_of(model) if id(tensor) not in streamed]
        self.outside_bytes = sum(piece.end - piece.begin for piece in pieces(self.outside)) + sum(
            nbytes_of(tensor) for tensor in self.outside if not is_plain(tensor)
        )

    @property
    def kinds(self) -> set[str]:
        """How the memory of the blocks is pinned."""
        return {block.memory.kind for block in self.blocks}

    def move_outside(self) -> None:
        """Moves everything that is not in a block to the GPU."""
        move(self.outside, lambda tensor: self.device)

    def move_home(self) -> None:
        """Moves everything to where it was. Weights of blocks that were in host memory stay in their buffers."""
        for block in self.blocks:
            for tensor, view in zip(block.tensors, block.host_views, strict=True):
                tensor.data = view
        move([tensor for tensor, _ in self._home.values()], lambda tensor: self._home[id(tensor)][1])

    def _segments(self, block: Block, shared: set[int], keep_trainable: bool) -> list[Segment]:
        segments: list[Segment] = []
        offset = 0
        for name, same in _groups(block.module):
            why = _why_not(same, shared, keep_trainable)
            if why is not None:
                if why:
                    self.notes.append(f"{block.name}.{name} stays on the GPU: {why}")
                continue
            tensor = same[0]
            segment = Segment(
                name, tuple(same), offset, nbytes_of(tensor), tensor.dtype, tuple(tensor.shape), _dense_stride(tensor)
            )
            segments.append(segment)
            offset += segment.room
        return segments


def _why_not(same: list[Any], shared: set[int], keep_trainable: bool) -> str | None:
    """Why these tensors cannot be streamed; empty if that needs no explanation, ``None`` if they can."""
    tensor = same[0]
    if not all(is_plain(each) for each in same):
        return f"a {type(tensor).__name__} is not one plain tensor"
    if not tensor.numel():
        return ""
    if id(tensor) in shared:
        return "it shares memory with a tensor outside of the block"
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    if keep_trainable and any(each.requires_grad for each in same):
        return ""
    if not is_parameter and nbytes_of(tensor) < _SMALL_BUFFER:
        return ""
    return None


def _groups(module: Any) -> Iterator[tuple[str, list[Any]]]:
    """Tensors of a module with their names; those that are the same memory together."""
    groups: dict[Any, tuple[str, list[Any]]] = {}
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        key: Any = id(tensor)
        if is_plain(tensor) and tensor.numel():
            key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype)
        groups.setdefault(key, (name, []))[1].append(tensor)
    yield from groups.values()


def _shared(model: Any, blocks: list[Block]) -> set[int]:
    """Tensors whose memory is used in more than one place: in two blocks, outside of them, or by different views."""
    places: dict[int, set[Any]] = {}
    for block in blocks:
        for name, same in _groups(block.module):
            for tensor in same:
                places.setdefault(id(tensor), set()).add((block.name, name))
    found: set[int] = set()
    for piece in pieces(tensors_of(model)):
        used = set().union(*(places.get(id(tensor), {"outside"}) for tensor in piece.tensors))
        if len(used) > 1:
            found.update(id(tensor) for tensor in piece.tensors)
    # A parameter that is in a block and outside of it is one tensor.
    inside = {id(module) for block in blocks for module in block.module.modules()}
    for module in model.modules():
        if id(module) not in inside:
            found.update(id(tensor) for tensor in tensors_of_one(module))
    return found


def _dense_stride(tensor: Any) -> tuple[int, ...]:
    """The strides of a tensor without gaps: its own if it has none. Kernels are chosen by strides."""
    extent = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    if extent == tensor.numel() and 0 not in tensor.stride():
        return tuple(tensor.stride())
    return tuple(torch.empty(tensor.shape, device="meta").stride())
