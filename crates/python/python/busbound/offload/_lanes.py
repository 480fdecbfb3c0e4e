"""Streams and events of a ring: who waits for whom on the device. The host never waits.

On a device without streams everything happens in order, and there is nothing to wait for.
"""

from __future__ import annotations

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
        # What was enqueued before the ring's memory was allocated may still use that memory.
        self._copies.wait_stream(torch.cuda.current_stream(device))

    def fill(self, slot: int, target: Any, source: Any) -> None:
        """Copies after the last use of the slot."""
        copies, before = self._copies, self._current()
        self._released[slot].wait(copies)
        torch.cuda.set_stream(copies)
        try:
            target.copy_(source, non_blocking=True)
        finally:
            torch.cuda.set_stream(before)
        self._filled[slot].record(copies)

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
