"""Pinned host buffers that are used again in the next step, by their size."""

from __future__ import annotations

from typing import Any

from ._host import HostMemory


class Buffer:
    """A host buffer, and the event after which it may be written to again."""

    __slots__ = ("memory", "read", "tensor")

    def __init__(self, size: int, device: Any) -> None:
        self.memory = HostMemory(size, device)
        self.tensor = self.memory.tensor
        self.read: Any = None


class Pool:
    """Steps are alike: what one gives back has the sizes that the next one asks for."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._free: dict[int, list[Buffer]] = {}
        #: Bytes of host memory in all buffers.
        self.nbytes = 0

    def take(self, size: int) -> Buffer:
        free = self._free.get(size)
        if free:
            return free.pop()
        self.nbytes += size
        return Buffer(size, self._device)

    def give(self, buffer: Buffer) -> None:
        self._free.setdefault(buffer.tensor.numel(), []).append(buffer)
