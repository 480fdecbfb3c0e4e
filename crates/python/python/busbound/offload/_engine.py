"""Runs a model whose blocks are on the GPU only while they are used.

The forward of each block is wrapped: before it, the compute stream waits for the block's copy and its modules get
parameters that are views of the slot; after it, they have their own again, which are in host memory, and the slot is
filled with the block that comes next. The host waits for nothing, except where the driver's queue is full.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Collection, Sequence
from time import perf_counter_ns
from typing import Any

import torch

from .._native import Schedule
from ._exchange import Exchange
from ._lanes import synchronize
from ._ring import Ring
from ._saved import saved_tensors
from ._sizes import OffloadError
from ._store import Store
from ._updates import Updates

#: A block is used in the forward pass, or its weights are needed by the backward pass.
FORWARD, BACKWARD = 0, 1

#: Passes whose times are kept.
_KEPT = 64
#: Uses of blocks whose host times are kept.
_KEPT_USES = 256


class Engine:
    """Streams the blocks of a store, except those that are resident."""

    def __init__(
        self,
        store: Store,
        resident: Collection[int] = (),
        slots: int = 2,
        probe: Any = None,
        updates: Updates | None = None,
    ) -> None:
        self._store, self._probe = store, probe
        #: Of weights that are trained and streamed.
        self._updates = updates
        self._resident = {index: store.blocks[index] for index in sorted(set(resident))}
        self._streamed = [index for index in range(len(store.blocks)) if index not in self._resident]
        self._slots = min(slots, len(self._streamed))
        #: The block that backward uses, and its slot.
        self._held: tuple[int, int] | None = None
        #: Blocks that were updated while backward used them.
        self._stale: set[int] = set()
        self._lock = threading.RLock()
        self._is_open = False
        #: Host time spent here for each use of a block, without the block's own forward.
        self.host_ns: deque[int] = deque(maxlen=_KEPT_USES)
        #: When passes began.
        self.passes: deque[Any] = deque(maxlen=_KEPT + 1)
        self.notes: list[str] = []

    @property
    def ring_bytes(self) -> int:
        return self._ring.nbytes if self._streamed else 0

    @property
    def streamed_bytes(self) -> int:
        return sum(self._store.blocks[index].nbytes for index in self._streamed)

    @property
    def resident_bytes(self) -> int:
        return sum(block.nbytes for block in self._resident.values())

    @property
    def misses(self) -> int:
        """Uses of blocks that had not been copied ahead."""
        return self._schedule.misses if self._streamed else 0

    def open(self) -> None:
        """Moves everything to its place and begins to copy the first blocks."""
        _refuse_compiled(self._store)
        try:
            self._begin()
        except BaseException:
            # Not enough memory, for example: the model is as before.
            self.close()
            self._store.move_home()
            raise

    def _begin(self) -> None:
        self._is_open = True
        self._store.move_outside()
        for block in self._store.blocks:
            block.take_again()
        for block in self._resident.values():
            there = block.flat.to(self._store.device)
            _assign(block.tensors, block.views_in(there))
            block.copied = block.versions()
        if not self._streamed:
            return
        self._schedule = Schedule(self._streamed, self._slots)
        self._ring = Ring(self._store.blocks, self._streamed, self._slots, self._store.device)
        self._lanes = self._ring.lanes
        if self._updates is not None:
            self._updates.begin(self._updated)
        for index in self._streamed:
            block = self._store.blocks[index]
            block.copied = block.versions()
            module = block.module
            module.forward = self._wrapped(index, module.forward)
            if self._updates is not None:
                for slot, exchange in enumerate(self._ring.exchanges(index)):
                    self._updates.watch(index, slot, exchange.there)
        self._fetch_ahead()

    def close(self) -> None:
        """Leaves the model as it was found."""
        if not self._is_open:
            return
        self._is_open = False
        if hasattr(self, "_ring"):
            self.synchronize()
            for index in self._streamed:
                # The class has the original.
                wrapped = self._store.blocks[index].module.__dict__.pop("forward", None)
                before = getattr(wrapped, "_busbound_before", None)
                if before is not None:
                    self._store.blocks[index].module.forward = before
            del self._ring
        for block in self._resident.values():
            # They were trained, or loaded. Not every optimizer counts its writes.
            if block.trainable or block.copied != block.versions():
                block.write_back()
        for block in self._store.blocks:
            _assign(block.tensors, block.host_views)

    @property
    def lanes(self) -> Any:
        return self._lanes

    @property
    def is_open(self) -> bool:
        return self._is_open

    def synchronize(self) -> None:
        """Waits until the device has nothing to do."""
        synchronize(self._store.device)

    def pass_times(self) -> list[float]:
        """Milliseconds from one beginning of a pass to the next. The host waits for the last."""
        marks = list(self.passes)
        return [self._lanes.milliseconds(*pair) for pair in zip(marks, marks[1:])]  # noqa: B905, RUF007 — pairs of neighbors

    def forget_passes(self) -> None:
        """What was timed so far is not part of a report."""
        self.passes.clear()
        self.host_ns.clear()

    def measure_rate(self, times: int = 4) -> float | None:
        """GB/s of copies of the largest block, one after another; ``None`` without a GPU."""
        largest = max(self._streamed, key=lambda index: self._store.blocks[index].nbytes)
        slot, _ = self._schedule.enter(largest)
        rate = self._lanes.rate(self._ring.fillers[largest][slot], times)
        self._schedule.leave(slot)
        return None if rate is None else rate * self._store.blocks[largest].nbytes / 1e9

    def _wrapped(self, index: int, inner: Callable[..., Any]) -> Callable[..., Any]:
        block, probe, lanes, updates = self._store.blocks[index], self._probe, self._lanes, self._updates
        exchanges = self._ring.exchanges(index)
        is_first = index == self._streamed[0]
        is_compiling, is_grad_enabled = torch.compiler.is_compiling, torch.is_grad_enabled
        in_backward = torch._C._current_graph_task_id

        @functools.wraps(inner)
        def forward(*args: Any, **kwargs: Any) -> Any:
            if not self._is_open:
                return inner(*args, **kwargs)
            if is_compiling():
                raise OffloadError(_COMPILED)
            begin = perf_counter_ns()
            is_recorded = is_grad_enabled()
            is_trained = is_recorded and block.trainable
            if is_trained and updates is None:
                raise OffloadError(_TRAINABLE.format(block.name))
            # Checkpointing runs blocks again within backward.
            if is_first and in_backward() == -1:
                self.passes.append(lanes.mark())
            if probe is not None:
                probe.arrives(index, lanes)
            slot = self._enter(index, FORWARD)
            if is_trained and updates is not None:
                updates.used(index, slot)
            exchange = exchanges[slot]
            exchange.enter()
            if probe is not None:
                probe.begins(index, lanes)
            between = after = perf_counter_ns()
            try:
                if is_recorded:
                    with saved_tensors(functools.partial(self._pack, index, slot), self._unpack):
                        result = inner(*args, **kwargs)
                else:
                    result = inner(*args, **kwargs)
                after = perf_counter_ns()
                return self._apart(result, slot)
            finally:
                if probe is not None:
                    probe.ends(index, lanes)
                self._leave(index, slot, exchange)
                if after != between:
                    self.host_ns.append(between - begin + perf_counter_ns() - after)

        forward._busbound_before = block.module.__dict__.get("forward")  # type: ignore[attr-defined]
        return forward

    def _enter(self, index: int, phase: int) -> int:
        lanes = self._lanes
        if lanes.is_capturing():
            raise OffloadError(_CAPTURED)
        if self._updates is not None:
            # Not with the lock, which the update needs at its end.
            self._updates.wait(index)
        with self._lock:
            if self._held is not None:
                self._release_held(index)
            try:
                slot, is_missing = self._schedule.enter(index, phase)
            except IndexError:
                raise OffloadError(_NO_SLOT.format(self._slots)) from None
            block = self._store.blocks[index]
            versions = block.versions()
            # Or written to since its last use, by load_state_dict for example.
            if is_missing or block.copied != versions:
                block.copied = versions
                self._ring.fillers[index][slot]()
            lanes.use(slot)
            return slot

    def _leave(self, index: int, slot: int, exchange: Exchange) -> None:
        with self._lock:
            if exchange.leave():
                self._keep_changed(index, exchange)
            self._schedule.leave(slot)
            fetches = self._schedule.ahead()
            if len(fetches) == 1 and self._updates is None:
                block, free = fetches[0]
                self._lanes.turn(slot, self._ring.fillers[block][free])
            else:
                self._lanes.release(slot)
                self._fetch(fetches)

    def _fetch_ahead(self) -> None:
        self._fetch(self._schedule.ahead())

    def _fetch(self, fetches: Sequence[tuple[int, int]]) -> None:
        fillers, updates = self._ring.fillers, self._updates
        for block, slot in fetches:
            # A block that is being updated is copied afterwards.
            if updates is None or not updates.is_pending(block):
                fillers[block][slot]()

    def _updated(self, index: int) -> None:
        """A block has new weights: from now on it is copied again."""
        with self._lock:
            if self._updates is not None:
                self._updates.ended(index)
            self._refill(index)

    def _refill(self, index: int) -> None:
        """If the block has a slot, that has its old weights, or none."""
        block = self._store.blocks[index]
        with self._lock:
            if self._held is not None and self._held[0] == index:
                # Backward may still use it: it is copied when the step ends.
                self._stale.add(index)
                return
            block.copied = block.versions()
            slot = self._schedule.slot_of(index)
            if slot is not None:
                self._ring.fillers[index][slot]()

    def end_backward(self) -> None:
        """Backward is over: no block is in use."""
        if self._streamed:
            with self._lock:
                self._release_held(-1)

    def end_step(self) -> None:
        """All weights are new."""
        with self._lock:
            stale, self._stale = self._stale, set()
            for index in stale:
                self._refill(index)

    def _release_held(self, index: int) -> None:
        """Backward says when it begins with a block, not when it ends: it ends when another block is used."""
        if self._held is not None and self._held[0] != index:
            slot = self._held[1]
            self._held = None
            self._lanes.release(slot)
            self._schedule.leave(slot)

    def _keep_changed(self, index: int, exchange: Exchange) -> None:
        """A tensor was written to inside of its block: from now on it stays on the GPU, with its new value."""
        block = self._store.blocks[index]
        if self._updates is not None and block.trainable:
            raise OffloadError(f"block {block.name} writes to its weights in the forward pass: pass trainable='resident'")
        views = exchange.views
        kept = [
            number
            for number, (view, host) in enumerate(zip(views, block.host_views, strict=True))
            if not torch.equal(view, host.to(view.device))
        ]
        for number in kept:
            block.tensors[number].data = views[number].clone()
            self.notes.append(f"{block.name}.{block.names[number]} stays on the GPU: the forward pass writes to it")
        block.drop(kept)
        self._ring.renew(index)
        block.copied = block.versions()

    def _pack(self, index: int, slot: int, tensor: Any) -> Any:
        """A weight is saved as its place in the block, because its slot gets other contents before backward."""
        offset = self._ring.offset_in(slot, tensor.data_ptr()) if tensor.device == self._store.device else None
        if offset is None:
            return None
        return index, offset, (tensor.dtype, tensor.shape, tensor.stride())

    def _unpack(self, place: Any) -> Any:
        index, offset, like = place
        if not self._is_open:
            return _tensor_at(self._store.blocks[index].flat.to(self._store.device), offset, like)
        held = self._held
        if held is None or held[0] != index:
            begin = perf_counter_ns()
            if self._updates is not None:
                self._updates.wait(index)
            if self._probe is not None:
                self._probe.arrives(index, self._lanes)
            with self._lock:
                slot = self._enter(index, BACKWARD)
                self._held = held = (index, slot)
                self._fetch_ahead()
            if self._probe is not None:
                self._probe.turns(index, self._lanes)
            self.host_ns.append(perf_counter_ns() - begin)
        return _tensor_at(self._ring.slot(held[1]), offset, like)

    def _apart(self, result: Any, slot: int) -> Any:
        """Results that are weights are copied: their slot gets other contents."""
        if isinstance(result, _TENSOR):
            first, last = self._ring.ranges[slot]
            try:
                # Addresses of host and device memory are never the same.
                is_inside = first <= result.data_ptr() <= last
            except RuntimeError:  # A sparse tensor, for example: never a view of a slot.
                return result
            return result.clone() if is_inside else result
        if type(result) in (tuple, list):
            return type(result)(self._apart(each, slot) for each in result)
        return result


_TENSOR = torch.Tensor

_COMPILED = (
    "torch.compile cannot trace offloaded blocks: their weights change place between calls; "
    "compile the modules inside of the blocks, or use offload without torch.compile"
)
_CAPTURED = (
    "a CUDA graph is being captured: offload decides between the blocks what to copy, which a graph cannot repeat; "
    "capture the model without offload"
)
_NO_SLOT = (
    "{} blocks are in use at the same time, as many as the ring has slots: "
    "a block calls another one; give the outer ones as blocks="
)
_TRAINABLE = (
    "block {} has parameters that require gradients, and streams them: run inference under torch.no_grad(), freeze the "
    "weights (adapters stay trainable on the GPU), pass optimizer= to train them on the CPU, or trainable='resident' to keep "
    "trainable weights on the GPU"
)


def _assign(tensors: tuple[Any, ...], views: tuple[Any, ...]) -> None:
    for tensor, view in zip(tensors, views, strict=True):
        tensor.data = view


def _tensor_at(flat: Any, offset: int, like: Any) -> Any:
    """A tensor at an offset of a buffer with the type, shape and strides of a saved one."""
    dtype, shape, stride = like
    values = torch.empty(0, dtype=dtype, device=flat.device)
    return values.set_(flat.untyped_storage(), offset // values.element_size(), shape, stride)


def _refuse_compiled(store: Store) -> None:
    model = store.model
    if hasattr(model, "_orig_mod") or any(
        getattr(module, "_compiled_call_impl", None) is not None for module in model.modules()
    ):
        raise OffloadError(f"the model is compiled: {_COMPILED}")
