"""Copies to the host and back, each on a stream of its own, so that both directions of the link are used."""

from __future__ import annotations

from typing import Any

import torch

from ._pool import Buffer


def _bytes_of(storage: Any, device: Any) -> Any:
    return torch.empty(0, dtype=torch.uint8, device=device).set_(storage)


class CudaDuplex:
    """Two copy streams beside the current one."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._to_host, self._to_device = torch.cuda.Stream(device), torch.cuda.Stream(device)

    def out(self, buffer: Buffer, storage: Any) -> Any:
        """Copies to the host after what the current stream has been given. The event that ends it."""
        compute = torch.cuda.current_stream(self._device)
        lane = self._to_host
        lane.wait_event(compute.record_event())
        if buffer.read is not None:
            lane.wait_event(buffer.read)
        source = _bytes_of(storage, self._device)
        torch.cuda.set_stream(lane)
        try:
            buffer.tensor.copy_(source, non_blocking=True)
        finally:
            torch.cuda.set_stream(compute)
        return lane.record_event()

    def back(self, buffer: Any, out: Any) -> tuple[Any, Any]:
        """Copies into new device memory. Its storage, and the event that ends the copy."""
        compute = torch.cuda.current_stream(self._device)
        lane = self._to_device
        target = torch.empty(buffer.tensor.numel(), dtype=torch.uint8, device=self._device)
        # The allocator gives memory that the compute stream may still be using.
        lane.wait_event(compute.record_event())
        lane.wait_event(out)
        torch.cuda.set_stream(lane)
        try:
            target.copy_(buffer.tensor, non_blocking=True)
        finally:
            torch.cuda.set_stream(compute)
        buffer.read = lane.record_event()
        return target.untyped_storage(), buffer.read

    def wait(self, event: Any) -> None:
        torch.cuda.current_stream(self._device).wait_event(event)


class HostDuplex:
    """The same where copies are synchronous."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def out(self, buffer: Buffer, storage: Any) -> Any:
        buffer.tensor.copy_(_bytes_of(storage, self._device))
        return None

    def back(self, buffer: Any, out: Any) -> tuple[Any, Any]:
        return buffer.tensor.to(self._device, copy=True).untyped_storage(), None

    def wait(self, event: Any) -> None:
        pass


def duplex_of(device: Any) -> CudaDuplex | HostDuplex:
    return CudaDuplex(device) if device.type == "cuda" else HostDuplex(device)
