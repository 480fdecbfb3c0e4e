"""CUDA's runtime, as torch uses it, called without torch's objects around it.

A call by ctypes takes about half a microsecond besides the driver's own time. Torch's events, streams and copies take
several: they look for the device, make it current and back, and need the stream to be changed for a copy.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

#: As CUDA numbers the directions of copies.
_HOST_TO_DEVICE = 1

_POINTER, _SIZE, _INT, _UNSIGNED = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint


class Runtime(NamedTuple):
    """Functions that return 0 if they worked. Streams, events and addresses are numbers."""

    #: To, from, bytes, direction, stream.
    copy_async: Callable[..., int]
    #: Stream, event, flags.
    wait_event: Callable[..., int]
    #: Event, stream.
    record_event: Callable[..., int]
    #: CUDA reports an error again at the next launch, which would look like an error of that kernel.
    forget_error: Callable[[], int]

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> Callable[[], int]:
        """A copy from the host, to be called often."""
        # Numbers that are converted once.
        given = (_POINTER(target), _POINTER(source), _SIZE(nbytes), _INT(_HOST_TO_DEVICE), _POINTER(stream))
        return functools.partial(self.copy_async, *given)


def runtime() -> Runtime | None:
    """The runtime that torch has loaded; ``None`` if it is not found."""
    try:
        name = f"libcudart.so.{str(torch.version.cuda).partition('.')[0]}"
        library = ctypes.CDLL(name, mode=getattr(os, "RTLD_NOLOAD", 0))
        return Runtime(
            _typed(library.cudaMemcpyAsync, _POINTER, _POINTER, _SIZE, _INT, _POINTER),
            _typed(library.cudaStreamWaitEvent, _POINTER, _POINTER, _UNSIGNED),
            _typed(library.cudaEventRecord, _POINTER, _POINTER),
            _typed(library.cudaGetLastError),
        )
    except (OSError, AttributeError):
        return None


def _typed(function: Any, *arguments: Any) -> Any:
    function.argtypes, function.restype = arguments, ctypes.c_int
    return function
