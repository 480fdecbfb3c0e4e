"""CUDA's runtime, as torch uses it, called without torch's objects around it.

Torch's events, streams and copies take several microseconds each: they look for the device, make it current and back, and
need the stream to be changed for a copy. The native part makes the calls of one use of a block in one call from Python.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import torch

#: What the native part calls.
_FUNCTIONS = ("cudaMemcpyAsync", "cudaStreamWaitEvent", "cudaEventRecord", "cudaStreamIsCapturing", "cudaGetLastError")


def runtime() -> Any:
    """The runtime that torch has loaded; ``None`` if it is not found."""
    try:
        from .._native import CudaRuntime

        name = f"libcudart.so.{str(torch.version.cuda).partition('.')[0]}"
        library = ctypes.CDLL(name, mode=getattr(os, "RTLD_NOLOAD", 0))
        addresses = [ctypes.cast(getattr(library, each), ctypes.c_void_p).value for each in _FUNCTIONS]
        return CudaRuntime(*addresses)  # type: ignore[arg-type]
    except (ImportError, OSError, AttributeError):
        return None
