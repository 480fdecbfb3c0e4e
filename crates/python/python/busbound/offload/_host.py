"""Pinned host memory of exactly the size that is needed.

Torch's pinned allocator rounds sizes up to a power of two. An anonymous mapping that is registered with the driver has
the exact size, and its pages are on the GPU's NUMA node. Where the driver refuses that, torch's allocator is used.
"""

from __future__ import annotations

import contextlib
import mmap
import weakref
from typing import Any

import torch

from ._numa import node_of, prefer

REGISTERED, ALLOCATED, PAGEABLE = "registered", "allocated", "pageable"


class HostMemory:
    """Bytes of host memory as a tensor, pinned if the device can copy from it faster then."""

    def __init__(self, size: int, device: Any) -> None:
        self.kind = PAGEABLE
        self._release: Any = None
        if device.type != "cuda":
            self.tensor = torch.empty(size, dtype=torch.uint8)
            return
        mapped = _mapped(size, node_of(torch.cuda.get_device_properties(device)))
        address = mapped.data_ptr()
        if _register(address, mapped.numel()):
            self.kind, self.tensor = REGISTERED, mapped[:size]
            self._release = weakref.finalize(self, _unregister, address)
            # The driver unregisters everything at the end of the process.
            self._release.atexit = False
            return
        try:
            self.tensor = torch.empty(size, dtype=torch.uint8, pin_memory=True)
            self.kind = ALLOCATED
        except RuntimeError:
            self.tensor = mapped[:size]

    def unpin(self) -> None:
        """Leaves the bytes as ordinary memory. Nothing may be copying from them."""
        if self._release is not None:
            self._release()
            self._release, self.kind = None, PAGEABLE


def _mapped(size: int, node: int | None = None) -> Any:
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    private = getattr(mmap, "MAP_PRIVATE", None)
    mapping = mmap.mmap(-1, pages) if private is None else mmap.mmap(-1, pages, flags=private)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        # Without huge pages it only takes longer to register.
        with contextlib.suppress(OSError):
            mapping.madvise(mmap.MADV_HUGEPAGE)
    # The tensor keeps the mapping.
    tensor = torch.frombuffer(mapping, dtype=torch.uint8)
    if node is not None:
        prefer(tensor.data_ptr(), pages, node)
    # Its pages are touched by all threads here; the driver would touch them one by one.
    return tensor.zero_()


def _register(address: int, size: int) -> bool:
    try:
        is_registered = int(torch.cuda.cudart().cudaHostRegister(address, size, 0)) == 0
    except Exception:  # noqa: BLE001 — whatever the driver says, there is another way
        is_registered = False
    if not is_registered:
        # CUDA reports an error again at the next launch, which would look like an error of that kernel.
        with contextlib.suppress(RuntimeError):
            torch.zeros(1, device="cuda")
    return is_registered


def _unregister(address: int) -> None:
    # At the end of the process the driver may be gone.
    with contextlib.suppress(Exception):
        torch.cuda.cudart().cudaHostUnregister(address)
