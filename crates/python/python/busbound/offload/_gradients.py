"""The gradients of one block: they leave the GPU as soon as backward has them, for one buffer in host memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ._host import HostMemory
from ._lanes import rate_on
from ._sizes import OffloadError
from ._store import StoredBlock


class CudaDownloads:
    """Copies to the host on a stream of their own, after what the current stream has been given so far."""

    def __init__(self, device: Any) -> None:
        self._device, self._stream = device, torch.cuda.Stream(device)

    def copy(self, target: Any, source: Any) -> None:
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            target.copy_(source, non_blocking=True)
        # Its memory is not used again before the copy has ended.
        source.record_stream(self._stream)

    def mark(self) -> Callable[[], object]:
        """Waits until everything copied so far has arrived; without keeping a core busy."""
        event = torch.cuda.Event(blocking=True)
        event.record(self._stream)
        return lambda: event.synchronize()

    def pinned(self, like: Any) -> Any:
        return torch.empty(like.shape, dtype=like.dtype, pin_memory=True)

    def rate(self, target: Any, times: int = 4) -> float | None:
        """GB/s of copies into this buffer, one after another."""
        source = torch.empty_like(target, device=self._device)
        return float(target.nbytes / 1e9 * rate_on(self._stream, lambda: self.copy(target, source), times))


class HostDownloads:
    """The same where copies are synchronous."""

    def copy(self, target: Any, source: Any) -> None:
        target.copy_(source)

    def mark(self) -> Callable[[], object]:
        return lambda: None

    def pinned(self, like: Any) -> Any:
        return torch.empty(like.shape, dtype=like.dtype)

    def rate(self, target: Any, times: int = 4) -> float | None:
        return None


Downloads = CudaDownloads | HostDownloads


def downloads_of(device: Any) -> Downloads:
    return CudaDownloads(device) if device.type == "cuda" else HostDownloads()


class BlockGradients:
    """Which gradients of a block are in host memory, and which backward still owes."""

    def __init__(self, block: StoredBlock, device: Any) -> None:
        self.name = block.name
        _refuse_shared(block)
        #: The model's own parameters, by their number in the block.
        self.parameters = {number: each for number, each in enumerate(block.tensors) if each.requires_grad}
        # As in the block, without what is frozen.
        of_tensors = [segment for segment in block.segments for _ in segment.tensors]
        segments, size = {}, 0
        for number in self.parameters:
            segments[number] = of_tensors[number]._replace(offset=size)
            size += of_tensors[number].room
        self._memory = HostMemory(size, device)
        #: Where the gradient of each is.
        self.views = {number: segment.of(self._memory.tensor) for number, segment in segments.items()}
        #: Parameters whose gradient no update has used yet.
        self.held: set[int] = set()
        #: By slot that a forward pass used: parameters whose gradient has not come.
        self._owed: dict[int, set[int]] = {}
        #: Whether this step's update has been given away.
        self.is_updated = False
        #: Whether the norm of all that has come so far is being measured.
        self.is_measured = False

    @property
    def buffer(self) -> Any:
        """The host memory of all of them."""
        return self._memory.tensor

    @property
    def nbytes(self) -> int:
        return int(self.buffer.nbytes)

    def used(self, slot: int, *, in_backward: bool) -> None:
        """A forward pass with gradients uses the block."""
        # Checkpointing computes again what it did not save. Gradients still go the first way, if there was one.
        if not (in_backward and self._owed):
            self._owed[slot] = set(self.parameters)

    def came(self, slot: int, number: int) -> bool:
        """Backward has the gradient of a parameter. Whether it was the last one for all uses of the block."""
        self.held.add(number)
        owed = self._owed.get(slot)
        if owed is None:
            # Of a use that nobody announced: there may be more.
            return False
        owed.discard(number)
        if not owed:
            del self._owed[slot]
        return not self._owed

    def give(self) -> None:
        """The parameters have these gradients."""
        for number in self.held:
            self.parameters[number].grad = self.views[number]

    def take(self) -> None:
        """They were used, or nobody will."""
        for each in self.parameters.values():
            each.grad = None
        self.held.clear()

    def end_step(self) -> None:
        """Weights are new: no backward pass follows for what was computed with the old ones."""
        self._owed.clear()


def _refuse_shared(block: StoredBlock) -> None:
    for segment in block.segments:
        if len(segment.tensors) > 1 and any(each.requires_grad for each in segment.tensors):
            raise OffloadError(
                f"{block.name}.{segment.name} shares its memory with another parameter of its block, and both are trained: "
                "freeze the block, or pass trainable='resident'"
            )
