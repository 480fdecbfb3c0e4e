"""Activations that wait in host memory for backward.

What autograd saves is copied to pinned buffers on a stream of its own, oldest first, and only as much as does not fit
the budget. In backward it comes back on another stream before it is needed, in reverse order. The host waits for
nothing: device memory returns to the allocator only after the compute stream has an order to wait for the copy.
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from time import perf_counter_ns
from types import TracebackType
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ._duplex import duplex_of
from ._plan import device_of
from ._pool import Buffer, Pool
from ._sizes import bytes_of, text_of

#: Smaller tensors stay: a copy of 1 MiB reaches 80% of the link's rate.
_SMALL = 1 << 20
#: Bytes that may be in copies that have not ended, of the budget: enough that compute does not wait for each. A small budget gives half.
_IN_FLIGHT = 512 << 20


class _Saved:
    """One range of device memory that autograd saved views of."""

    __slots__ = ("back", "buffer", "has_left", "key", "nbytes", "original", "out", "storage", "users")

    def __init__(self, key: tuple[int, int], storage: Any) -> None:
        self.key = key
        self.storage = storage
        #: Whether its first device memory was given back; something else may still hold it.
        self.has_left = False
        self.original = StorageWeakRef(storage)
        self.nbytes: int = storage.nbytes()
        #: Copy to the host: its buffer, and the event that ends it.
        self.buffer: Buffer | None = None
        self.out: Any = None
        #: Copy back: the event that ends it.
        self.back: Any = None
        self.users = 0


class _View:
    """One saved tensor: a view of a saved range."""

    __slots__ = ("like", "owner", "saved")

    def __init__(self, owner: Activations, saved: _Saved, tensor: Any) -> None:
        self.owner, self.saved = owner, saved
        self.like = (tensor.dtype, tensor.storage_offset(), tensor.shape, tensor.stride())
        saved.users += 1

    def __del__(self) -> None:
        # Autograd is done with it: after backward, or because the graph was dropped.
        self.owner._drop(self.saved)


class Activations:
    """A context manager for the forward pass. Create it once and enter it in each step."""

    def __init__(
        self,
        budget: int | float | str = 0,
        *,
        model: Any = None,
        device: Any = None,
        smallest: int = _SMALL,
        in_flight: int | None = None,
    ) -> None:
        self._device = device_of(device)
        self.budget = bytes_of(budget) if budget else 0
        if in_flight is None:
            in_flight = min(_IN_FLIGHT, self.budget // 2) if self.budget else _IN_FLIGHT
        self._smallest, self._in_flight = smallest, in_flight
        #: Of the budget, what is left beside copies on their way.
        self._keeps = max(0, self.budget - in_flight)
        self._duplex = duplex_of(self._device)
        self._pool = Pool(self._device)
        self._weights = None if model is None else _addresses(model.parameters())
        self._lock = threading.RLock()
        self._hooks: list[Any] = []
        #: Of the last complete forward pass.
        self.saved_bytes = 0
        self.offloaded_bytes = 0
        self.host_ns = 0
        #: Of this forward pass.
        self._total = 0
        self._offloaded = 0
        #: By address and version.
        self._known: dict[tuple[int, int], _Saved] = {}
        #: On the GPU and not copied, the oldest first.
        self._kept: deque[_Saved] = deque()
        self._kept_bytes = 0
        #: Being copied to the host, the oldest first.
        self._leaving: deque[_Saved] = deque()
        self._leaving_bytes = 0
        #: On the host, the oldest first.
        self._away: list[_Saved] = []
        #: On the GPU again.
        self._back_bytes = 0

    def __enter__(self) -> Activations:
        if self._weights is None:
            # Parameters are not activations, and nothing in a saved tensor tells them apart.
            self._weights = _addresses(each for each in gc.get_objects() if _is_parameter(each))
        self._total = self._offloaded = 0
        hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)
        hooks.__enter__()
        self._hooks.append(hooks)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._hooks.pop().__exit__(kind, error, trace)
        self.saved_bytes, self.offloaded_bytes = self._total, self._offloaded

    # Forward.

    def _pack(self, tensor: Any) -> Any:
        begin = perf_counter_ns()
        try:
            return self._view_of(tensor)
        finally:
            self.host_ns += perf_counter_ns() - begin

    def _view_of(self, tensor: Any) -> Any:
        if tensor.device != self._device or type(tensor) is not torch.Tensor or tensor.layout != torch.strided:
            return tensor
        storage = tensor.untyped_storage()
        size, address = storage.nbytes(), storage.data_ptr()
        used = tensor.numel() * tensor.element_size()
        # A small part of a large tensor would drag all of it along.
        if used < self._smallest or size > 4 * used or address in (self._weights or ()):
            return tensor
        with self._lock:
            key = (address, tensor._version)
            saved = self._known.get(key)
            # Another tensor may have the address of one that has left.
            if saved is None or saved.original.expired():
                saved = self._known[key] = _Saved(key, storage)
                self._total += size
                self._kept.append(saved)
                self._kept_bytes += size
                self._make_room()
            return _View(self, saved, tensor)

    def _make_room(self) -> None:
        # What the last step could not keep is copied at once; later tensors are needed first in backward and stay.
        ahead = self.saved_bytes - self._keeps
        while self._kept and (self._kept_bytes > self._keeps or self._offloaded + self._kept[0].nbytes <= ahead):
            oldest = self._kept.popleft()
            self._kept_bytes -= oldest.nbytes
            oldest.buffer = self._pool.take(oldest.nbytes)
            oldest.out = self._duplex.out(oldest.buffer, oldest.storage)
            self._leaving.append(oldest)
            self._leaving_bytes += oldest.nbytes
            self._offloaded += oldest.nbytes
        while self._leaving and self._leaving_bytes > self._in_flight:
            self._give_back(self._leaving.popleft())

    def _give_back(self, saved: _Saved) -> None:
        """Gives the device memory back; what the compute stream does with it next waits for the copy."""
        self._duplex.wait(saved.out)
        self._leaving_bytes -= saved.nbytes
        saved.has_left, saved.storage = True, None
        self._away.append(saved)

    # Backward.

    def _unpack(self, packed: Any) -> Any:
        if type(packed) is not _View:
            return packed
        begin = perf_counter_ns()
        try:
            with self._lock:
                return self._tensor_of(packed)
        finally:
            self.host_ns += perf_counter_ns() - begin

    def _tensor_of(self, view: _View) -> Any:
        saved = view.saved
        if saved.storage is None:
            self._bring_back(saved)
        if saved.back is not None:
            self._duplex.wait(saved.back)
            saved.back = None
        self._fetch_ahead()
        dtype, offset, shape, stride = view.like
        return torch.empty(0, dtype=dtype, device=self._device).set_(saved.storage, offset, shape, stride)

    def _fetch_ahead(self) -> None:
        """Brings back what is needed next, as far as the budget allows. At least one is always on its way."""
        while self._away:
            following = self._away[-1]
            if following.storage is not None or not following.users:
                self._away.pop()
                continue
            used = self._kept_bytes + self._leaving_bytes + self._back_bytes
            if used + following.nbytes > self._keeps + self._in_flight and self._back_bytes:
                break
            self._away.pop()
            self._bring_back(following)

    def _bring_back(self, saved: _Saved) -> None:
        saved.storage, saved.back = self._duplex.back(saved.buffer, saved.out)
        self._back_bytes += saved.nbytes

    def _drop(self, saved: _Saved) -> None:
        """A saved tensor is not needed any more."""
        with self._lock:
            saved.users -= 1
            if saved.users:
                return
            if self._known.get(saved.key) is saved:
                del self._known[saved.key]
            if saved.buffer is None:
                _remove(self._kept, saved)
                self._kept_bytes -= saved.nbytes
                return
            if not saved.has_left:
                # Still being copied to the host: its memory may be used again when the copy has ended.
                _remove(self._leaving, saved)
                self._leaving_bytes -= saved.nbytes
                self._duplex.wait(saved.out)
                saved.buffer.read = saved.out
            elif saved.storage is not None:
                self._back_bytes -= saved.nbytes
                if saved.back is not None:
                    self._duplex.wait(saved.back)
            self._pool.give(saved.buffer)
            saved.storage = saved.buffer = None

    def __str__(self) -> str:
        return (
            f"activations: {text_of(self.offloaded_bytes)} of {text_of(self.saved_bytes)} saved go to the host "
            f"and back each step; {text_of(self._pool.nbytes)} of pinned memory"
        )


def _remove(line: deque[_Saved], saved: _Saved) -> None:
    # Backward ends with the last first.
    if line[-1] is saved:
        line.pop()
    else:
        line.remove(saved)


def _is_parameter(thing: object) -> bool:
    return type(thing) is torch.nn.Parameter


def _addresses(tensors: Any) -> set[int]:
    return {int(tensor.untyped_storage().data_ptr()) for tensor in tensors if not tensor.is_meta}
