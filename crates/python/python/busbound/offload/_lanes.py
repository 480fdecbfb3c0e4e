"""Streams and events of a ring: who waits for whom on the device. The host never waits.

On a device without streams everything happens in order, and there is nothing to wait for.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any

import torch

from ._runtime import Runtime, runtime

_NO_FLAGS = ctypes.c_uint(0)


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
        #: Whether a CUDA graph is being captured: its copies would have to be part of it.
        self.is_capturing: Callable[[], bool] = torch.cuda.is_current_stream_capturing
        # What was enqueued before the ring's memory was allocated may still use that memory.
        self._copies.wait_stream(torch.cuda.current_stream(device))

    def filler(self, slot: int, target: Any, source: Any) -> Callable[[], None]:
        """A function that copies after the last use of the slot."""
        copies = self._copies

        def fill() -> None:
            self._released[slot].wait(copies)
            before = torch.cuda.current_stream(self._device)
            torch.cuda.set_stream(copies)
            try:
                target.copy_(source, non_blocking=True)
            finally:
                torch.cuda.set_stream(before)
            self._filled[slot].record(copies)

        return fill

    def use(self, slot: int) -> None:
        """Lets the current stream wait until the slot is filled."""
        stream = torch.cuda.current_stream(self._device)
        if self._user[slot] not in (None, stream):
            # The next release stands for the uses of both streams.
            self._released[slot].wait(stream)
        self._user[slot] = stream
        self._filled[slot].wait(stream)

    def release(self, slot: int) -> None:
        """What the stream has been given so far is the last use of the slot."""
        self._released[slot].record(self._user[slot])

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


class DirectLanes(CudaLanes):
    """The same by CUDA's own calls. What does not work is done again by torch, which says what is wrong."""

    def __init__(self, device: Any, slots: int, calls: Runtime) -> None:
        super().__init__(device, slots)
        self._calls, self._wait, self._record = calls, calls.wait_event, calls.record_event
        self._current = torch._C._cuda_getCurrentRawStream
        self._index = device.index
        # On several devices, the number of the default stream means that of the current one.
        self._is_alone = torch.cuda.device_count() == 1
        for event in (*self._filled, *self._released):
            # Torch creates events when they are recorded first.
            event.record(self._copies)
        self._filled_ids, self._released_ids = (
            [ctypes.c_void_p(event.cuda_event) for event in events] for events in (self._filled, self._released)
        )

    def filler(self, slot: int, target: Any, source: Any) -> Callable[[], None]:
        fill_by_torch, forget_error = super().filler(slot, target, source), self._calls.forget_error
        wait, record = self._wait, self._record
        filled, released = self._filled_ids[slot], self._released_ids[slot]
        stream = ctypes.c_void_p(self._copies.cuda_stream)
        copy = self._calls.copy(target.data_ptr(), source.data_ptr(), source.nbytes, self._copies.cuda_stream)

        def fill() -> None:
            if wait(stream, released, _NO_FLAGS) or copy() or record(filled, stream):
                forget_error()
                # From the beginning: what worked has no effect when it is done twice.
                fill_by_torch()

        return fill

    def use(self, slot: int) -> None:
        if self._is_alone or torch._C._cuda_getDevice() == self._index:
            stream = self._current(self._index)
            is_other = self._user[slot] != stream
            if not (
                (is_other and self._wait(stream, self._released_ids[slot], _NO_FLAGS))
                or self._wait(stream, self._filled_ids[slot], _NO_FLAGS)
            ):
                self._user[slot] = stream
                return
            self._calls.forget_error()
        super().use(slot)

    def release(self, slot: int) -> None:
        stream = self._user[slot]
        if isinstance(stream, int):
            if not self._record(self._released_ids[slot], stream):
                return
            self._calls.forget_error()
            self._user[slot] = torch.cuda.ExternalStream(stream, self._device)
        super().release(slot)


class HostLanes:
    """The same where copies are synchronous."""

    def filler(self, slot: int, target: Any, source: Any) -> Callable[[], None]:
        return lambda: target.copy_(source)

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


def lanes_of(device: Any, slots: int) -> CudaLanes | HostLanes:
    if device.type != "cuda":
        return HostLanes()
    calls = runtime()
    # Not part of torch's promises, and may be absent.
    if calls is not None and hasattr(torch._C, "_cuda_getCurrentRawStream"):
        return DirectLanes(device, slots, calls)
    return CudaLanes(device, slots)
