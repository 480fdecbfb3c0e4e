"""Streams and events of a ring: who waits for whom on the device. The host never waits.

On a device without streams everything happens in order, and there is nothing to wait for.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import torch


class CudaLanes:
    """A copy stream, and two events for each slot: filled, and no longer in use."""

    def __init__(self, device: Any, slots: int) -> None:
        self._device = device
        # Copies are never late because of priorities; they only must not queue behind compute.
        self._copies = torch.cuda.Stream(device)
        self._filled = [torch.cuda.Event() for _ in range(slots)]
        self._released = [torch.cuda.Event() for _ in range(slots)]
        #: The stream that uses the slot.
        self._user: list[Any] = [None] * slots
        #: By what identifies a stream: making a stream object for each call takes longer than the call.
        self._streams: dict[tuple[int, int, int], Any] = {}
        self._current_id = getattr(torch._C, "_cuda_getCurrentStream", None)
        self._copy = _runtime_copy()
        # What was enqueued before the ring's memory was allocated may still use that memory.
        self._copies.wait_stream(torch.cuda.current_stream(device))

    def fill(self, slot: int, target: Any, source: Any) -> None:
        """Copies after the last use of the slot."""
        copies = self._copies
        self._released[slot].wait(copies)
        if self._copy is None or self._copy(target.data_ptr(), source.data_ptr(), source.nbytes, copies.cuda_stream):
            self._copy_by_torch(target, source)
        self._filled[slot].record(copies)

    def _copy_by_torch(self, target: Any, source: Any) -> None:
        """Slower, and says what is wrong if the copy does not work."""
        before = self._current()
        torch.cuda.set_stream(self._copies)
        try:
            target.copy_(source, non_blocking=True)
        finally:
            torch.cuda.set_stream(before)

    def use(self, slot: int) -> None:
        """Lets the current stream wait until the slot is filled."""
        stream = self._user[slot] = self._current()
        self._filled[slot].wait(stream)

    def release(self, slot: int) -> None:
        """What the stream has been given so far is the last use of the slot."""
        self._released[slot].record(self._user[slot])

    def _current(self) -> Any:
        if self._current_id is None:
            return torch.cuda.current_stream(self._device)
        key = self._current_id(self._device.index)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = torch.cuda.current_stream(self._device)
        return stream

    def is_capturing(self) -> bool:
        """Whether a CUDA graph is being captured: its copies would have to be part of it."""
        return bool(torch.cuda.is_current_stream_capturing())

    def mark(self) -> Any:
        """A point in time on the current stream."""
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self._device))
        return event

    def rate(self, fill: Callable[[], None], times: int) -> float | None:
        """How often per second the copy stream can do this; ``None`` without one."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        fill()
        begin.record(self._copies)
        for _ in range(times):
            fill()
        end.record(self._copies)
        return 1e3 * times / self.milliseconds(begin, end)

    def milliseconds(self, begin: Any, end: Any) -> float:
        """The time between two marks; the host waits for the second."""
        end.synchronize()
        return float(begin.elapsed_time(end))

    def synchronize(self) -> None:
        torch.cuda.synchronize(self._device)


def _runtime_copy() -> Callable[[int, int, int, int], int] | None:
    """CUDA's copy into device memory, which returns 0 if it worked. ``None`` if the runtime that torch uses is not found.

    ``Tensor.copy_`` needs the stream to be changed and back for it, which takes longer than the copy's call.
    """
    try:
        copy = ctypes.CDLL(f"libcudart.so.{str(torch.version.cuda).partition('.')[0]}").cudaMemcpyAsync
    except (OSError, AttributeError):
        return None
    pointer = ctypes.c_void_p
    copy.argtypes, copy.restype = (pointer, pointer, ctypes.c_size_t, ctypes.c_int, pointer), ctypes.c_int
    return lambda target, source, nbytes, stream: copy(target, source, nbytes, _HOST_TO_DEVICE, stream)


#: As CUDA numbers the directions of copies.
_HOST_TO_DEVICE = 1


class HostLanes:
    """The same where copies are synchronous."""

    def fill(self, slot: int, target: Any, source: Any) -> None:
        target.copy_(source)

    def use(self, slot: int) -> None:
        pass

    def release(self, slot: int) -> None:
        pass

    def is_capturing(self) -> bool:
        return False

    def mark(self) -> Any:
        return time.perf_counter()

    def rate(self, fill: Callable[[], None], times: int) -> float | None:
        return None

    def milliseconds(self, begin: Any, end: Any) -> float:
        return float(end - begin) * 1e3

    def synchronize(self) -> None:
        pass


def lanes_of(device: Any, slots: int) -> CudaLanes | HostLanes:
    return CudaLanes(device, slots) if device.type == "cuda" else HostLanes()
