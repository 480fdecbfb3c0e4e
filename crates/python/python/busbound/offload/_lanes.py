"""Streams and events of a ring: who waits for whom on the device. The host never waits.

On a device without streams everything happens in order, and there is nothing to wait for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from .._native import Fill, Lane
from ._runtime import runtime

#: Copies a block into a slot.
Filler = Callable[[], None]


def mark_on(stream: Any) -> Any:
    """A point in time on a stream."""
    event = torch.cuda.Event(enable_timing=True)
    event.record(stream)
    return event


def milliseconds(begin: Any, end: Any) -> float:
    """The time between two points on a stream; the host waits for the second."""
    end.synchronize()
    return float(begin.elapsed_time(end))


def rate_on(stream: Any, enqueue: Callable[[], object], times: int) -> float:
    """How often per second a stream can do what this gives it."""
    enqueue()
    begin = mark_on(stream)
    for _ in range(times):
        enqueue()
    return 1e3 * times / milliseconds(begin, mark_on(stream))


def synchronize(device: Any) -> None:
    """Waits until a device has nothing to do."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


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
        # What was enqueued before the ring's memory was allocated may still use that memory.
        self._copies.wait_stream(torch.cuda.current_stream(device))

    def is_capturing(self) -> bool:
        """Whether a CUDA graph is being captured: its copies would have to be part of it."""
        return bool(torch.cuda.is_current_stream_capturing())

    def filler(self, slot: int, target: Any, source: Any) -> Filler:
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

    def turn(self, slot: int, fill: Filler) -> None:
        """Releases a slot, then fills one."""
        self.release(slot)
        fill()

    def mark(self) -> Any:
        """A point in time on the current stream."""
        return mark_on(torch.cuda.current_stream(self._device))

    def rate(self, fill: Filler, times: int) -> float | None:
        """How often per second the copy stream can do this; ``None`` without one."""
        return rate_on(self._copies, fill, times)

    def milliseconds(self, begin: Any, end: Any) -> float:
        """The time between two marks; the host waits for the second."""
        return milliseconds(begin, end)


class DirectLanes(CudaLanes):
    """The same by CUDA's own calls. What does not work is done again by torch, which says what is wrong."""

    def __init__(self, device: Any, slots: int, calls: Any) -> None:
        super().__init__(device, slots)
        self._calls = calls
        self._current = torch._C._cuda_getCurrentRawStream
        self._index = device.index
        # On several devices, the number of the default stream means that of the current one.
        self._is_alone = torch.cuda.device_count() == 1
        for event in (*self._filled, *self._released):
            # Torch creates events when they are recorded first.
            event.record(self._copies)
        self._slots = [
            Lane(calls, self._copies.cuda_stream, filled.cuda_event, released.cuda_event)
            for filled, released in zip(self._filled, self._released, strict=True)
        ]

    def _is_current(self) -> bool:
        return self._is_alone or bool(torch._C._cuda_getDevice() == self._index)

    def is_capturing(self) -> bool:
        answer = self._calls.is_capturing(self._current(self._index)) if self._is_current() else None
        return super().is_capturing() if answer is None else bool(answer)

    def filler(self, slot: int, target: Any, source: Any) -> Filler:
        native = Fill(self._slots[slot], target.data_ptr(), source.data_ptr(), source.nbytes)
        return _DirectFill(native, super().filler(slot, target, source))

    def use(self, slot: int) -> None:
        lane = self._slots[slot]
        if not (self._is_current() and lane.use(self._current(self._index))):
            self._give_to_torch(slot)
            super().use(slot)

    def release(self, slot: int) -> None:
        if not self._slots[slot].release():
            self._give_to_torch(slot)
            super().release(slot)

    def turn(self, slot: int, fill: Any) -> None:
        if not self._slots[slot].turn(fill.native):
            # From the beginning: what worked has no effect when it is done twice.
            super().turn(slot, fill)

    def _give_to_torch(self, slot: int) -> None:
        user = self._slots[slot].take_user()
        if user is not None:
            self._user[slot] = torch.cuda.ExternalStream(user, self._device)


class _DirectFill:
    """A copy that torch does if CUDA's own calls fail."""

    __slots__ = ("_by_torch", "native")

    def __init__(self, native: Fill, by_torch: Filler) -> None:
        self.native, self._by_torch = native, by_torch

    def __call__(self) -> None:
        if not self.native():
            self._by_torch()


class HostLanes:
    """The same where copies are synchronous."""

    def filler(self, slot: int, target: Any, source: Any) -> Filler:
        return lambda: target.copy_(source)

    def use(self, slot: int) -> None:
        pass

    def release(self, slot: int) -> None:
        pass

    def turn(self, slot: int, fill: Filler) -> None:
        fill()

    def is_capturing(self) -> bool:
        return False

    def mark(self) -> Any:
        return time.perf_counter()

    def rate(self, fill: Filler, times: int) -> float | None:
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
