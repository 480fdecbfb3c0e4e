"""Trains weights that are streamed: the CPU updates a block as soon as its gradients are in host memory.

Backward goes on meanwhile. A block that is being updated is copied to the GPU again afterwards, not before.
"""

from __future__ import annotations

import contextlib
import functools
import math
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any

import torch

from ._gradients import BlockGradients, Downloads, downloads_of
from ._sizes import OffloadError
from ._store import Store

#: Makes an optimizer of parameters.
Make = Callable[[list[Any]], Any]

#: Blocks whose gradients may be being copied to the host. Backward waits for the oldest beyond them: gradients would pile up.
_IN_FLIGHT = 2
_KEPT = 64


class Updates:
    """The gradients of the streamed blocks and the thread that uses them."""

    def __init__(self, store: Store, streamed: Iterable[int], make: Make, max_norm: float | None) -> None:
        blocks = {index: store.blocks[index] for index in streamed if store.blocks[index].trainable}
        self._blocks = {index: BlockGradients(block, store.device) for index, block in blocks.items()}
        self._optimizers = {
            index: make(list(gradients.parameters.values())) for index, gradients in self._blocks.items()
        }
        self._downloads: Downloads = downloads_of(store.device)
        self._device, self._max_norm = store.device, max_norm
        self._worker = _Worker(store.device)
        self._is_accumulating = False
        #: Blocks whose update has not ended.
        self._pending: dict[int, threading.Event] = {}
        self._in_flight: deque[Callable[[], object]] = deque()
        self._squares: dict[int, float] = {}
        #: Called with a block that was updated; calls ``ended``.
        self._refill: Callable[[int], None] = self.ended
        #: Milliseconds of CPU time of the updates of a step, and how long the step waited for them after backward.
        self.update_ms: deque[float] = deque(maxlen=_KEPT)
        self.wait_ms: deque[float] = deque(maxlen=_KEPT)
        #: Milliseconds of the last update of each block.
        self.took_ms: dict[int, float] = {}
        streamed_ids = {id(each) for gradients in self._blocks.values() for each in gradients.parameters.values()}
        on_gpu = [each for each in store.model.parameters() if each.requires_grad and id(each) not in streamed_ids]
        self._on_gpu = make(on_gpu) if on_gpu else None
        if not self._optimizers and self._on_gpu is None:
            raise OffloadError("optimizer= was given, but no parameter requires gradients")

    @property
    def optimizers(self) -> list[Any]:
        """One per block, and the one of what is on the GPU."""
        return [*self._optimizers.values(), *([] if self._on_gpu is None else [self._on_gpu])]

    @property
    def indices(self) -> list[int]:
        """The blocks that are trained, in the order of their optimizers."""
        return list(self._blocks)

    def gradient_bytes(self, index: int) -> int:
        return self._blocks[index].nbytes

    def measure_rate(self) -> float | None:
        """GB/s of copies of gradients to the host; ``None`` without a GPU."""
        largest = max(self._blocks.values(), key=lambda each: each.nbytes, default=None)
        return None if largest is None else self._downloads.rate(largest.buffer)

    def begin(self, refill: Callable[[int], None]) -> None:
        self._refill = refill

    def watch(self, index: int, slot: int, there: Sequence[Any]) -> None:
        """Gradients of these parameters, which are those of a block in a slot, go to the host."""
        gradients = self._blocks.get(index)
        if gradients is None:
            return
        for number, own in gradients.parameters.items():
            parameter = there[number]
            if parameter is None:
                raise OffloadError(
                    f"{gradients.name} keeps a weight as another attribute too, and trains it: pass trainable='resident'"
                )
            parameter.grad, own.grad = None, None
            parameter.register_post_accumulate_grad_hook(functools.partial(self._came, index, slot, number))

    def used(self, index: int, slot: int) -> None:
        gradients = self._blocks.get(index)
        if gradients is not None:
            gradients.used(slot, in_backward=torch._C._current_graph_task_id() != -1)

    def is_pending(self, index: int) -> bool:
        return index in self._pending

    def ended(self, index: int) -> None:
        """The update of a block has ended, and the engine knows."""
        self._pending.pop(index, None)

    def wait(self, index: int) -> None:
        """Until the block has its new weights."""
        pending = self._pending.get(index)
        if pending is not None:
            pending.wait()
            self._worker.check()

    @contextlib.contextmanager
    def accumulate(self) -> Iterator[None]:
        before, self._is_accumulating = self._is_accumulating, True
        try:
            yield
        finally:
            self._is_accumulating = before

    def _came(self, index: int, slot: int, number: int, parameter: Any) -> None:
        """Backward has the gradient of a parameter."""
        gradients = self._blocks[index]
        gradient, parameter.grad = parameter.grad, None
        if gradients.is_updated:
            raise OffloadError(_TWICE.format(gradients.name))
        gradients.is_measured = False
        view = gradients.views[number]
        if number in gradients.held:
            more = self._downloads.pinned(view)
            self._downloads.copy(more, gradient)
            self._worker.do(self._downloads.mark(), functools.partial(view.add_, more))
        else:
            self._downloads.copy(view, gradient)
        if gradients.came(slot, number):
            self._bound_memory()
            if not self._is_accumulating:
                self._give(index)

    def _bound_memory(self) -> None:
        self._in_flight.append(self._downloads.mark())
        while len(self._in_flight) > _IN_FLIGHT:
            self._in_flight.popleft()()

    def _give(self, index: int) -> None:
        """The gradients of a block are complete."""
        if self._max_norm is None:
            self._queue(index)
        else:
            self._measure(index)

    def _measure(self, index: int) -> None:
        """The norm of the gradients that the block has so far. What comes later is measured again."""
        self._blocks[index].is_measured = True
        self._worker.do(self._downloads.mark(), functools.partial(self._measured, index))

    def _measured(self, index: int) -> None:
        gradients = self._blocks[index]
        self._squares[index] = _squares(gradients.views[number] for number in sorted(gradients.held))

    def _queue(self, index: int, scale: float = 1.0) -> None:
        self._blocks[index].is_updated = True
        self._pending[index] = threading.Event()
        self._worker.do(self._downloads.mark(), functools.partial(self._update, index, scale))

    def _update(self, index: int, scale: float) -> None:
        gradients = self._blocks[index]
        begin = perf_counter()
        try:
            if scale != 1.0:
                for number in gradients.held:
                    gradients.views[number].mul_(scale)
            gradients.give()
            self._optimizers[index].step()
        finally:
            gradients.take()
            self.took_ms[index] = (perf_counter() - begin) * 1e3
            pending = self._pending[index]
            self._refill(index)
            pending.set()

    def finish(self) -> None:
        """Ends a step: all weights are new when this returns."""
        begin = perf_counter()
        left = [index for index, each in self._blocks.items() if each.held and not each.is_updated]
        scale = 1.0
        if self._max_norm is not None:
            scale = self._clip(left)
        for index in left:
            self._queue(index, scale)
        if self._on_gpu is not None:
            self._on_gpu.step()
        self._worker.finish()
        self.wait_ms.append((perf_counter() - begin) * 1e3)
        self.update_ms.append(self._worker.take_ms())
        self._begin_step()
        for gradients in self._blocks.values():
            gradients.end_step()

    def _clip(self, left: list[int]) -> float:
        """The factor that all gradients get; those on the GPU have it already."""
        for index in left:
            if not self._blocks[index].is_measured:
                self._measure(index)
        groups = [] if self._on_gpu is None else self._on_gpu.param_groups
        on_gpu = [each.grad for group in groups for each in group["params"] if each.grad is not None]
        squares = _squares(on_gpu)
        self._worker.finish()
        norm = math.sqrt(squares + sum(self._squares.values()))
        scale = min(1.0, float(self._max_norm or 0.0) / (norm + 1e-6))
        if on_gpu and scale != 1.0:
            torch._foreach_mul_(on_gpu, scale)
        return scale

    def forget(self) -> None:
        """Gradients that no update has used are gone."""
        self._worker.finish()
        for gradients in self._blocks.values():
            gradients.take()
        self._begin_step()
        if self._on_gpu is not None:
            self._on_gpu.zero_grad()

    def _begin_step(self) -> None:
        self._squares.clear()
        for gradients in self._blocks.values():
            gradients.is_updated = False

    def idle(self) -> None:
        """Waits for the updates that were given away."""
        self._worker.finish()

    def close(self) -> None:
        self._worker.close()


class StreamedOptimizer(torch.optim.Optimizer):  # type: ignore[misc]
    """The optimizers of all blocks as one: schedulers and ``state_dict`` work as with any other.

    Most of the updates are done when backward ends; ``step`` waits for the rest.
    """

    def __init__(self, updates: Updates, before_step: Callable[[], None], after_step: Callable[[], None]) -> None:
        self._updates, self._before, self._after = updates, before_step, after_step
        self._all = updates.optimizers
        groups = [group for each in self._all for group in each.param_groups]
        super().__init__([each for group in groups for each in group["params"]], {})
        #: The same dictionaries as those of the blocks' optimizers: what changes here changes there.
        self.param_groups = groups

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Ends a step. All weights are new when it returns.

        Args:
            closure: Computes the loss and its gradients first.

        Returns:
            What the closure returns.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._before()
        self._updates.finish()
        self._after()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets gradients that no step has used.

        Args:
            set_to_none: Ignored: gradients of streamed weights exist only until their update.
        """
        self._updates.forget()

    def accumulate(self) -> contextlib.AbstractContextManager[None]:
        """A context for all backward passes of a step but the last: their gradients are added up.

        Returns:
            The context.
        """
        return self._updates.accumulate()

    def state_dict(self) -> dict[str, Any]:
        """The states of the optimizers of all blocks.

        Returns:
            A dictionary that ``load_state_dict`` takes.
        """
        self._updates.idle()
        return {"optimizers": [each.state_dict() for each in self._all]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the states of a model with the same blocks.

        Args:
            state_dict: From ``state_dict``.

        Raises:
            OffloadError: They are those of another number of blocks.
        """
        self._updates.idle()
        states = state_dict["optimizers"]
        if len(states) != len(self._all):
            raise OffloadError(f"the state has {len(states)} optimizers, and this model {len(self._all)}")
        for each, state in zip(self._all, states, strict=True):
            each.load_state_dict(state)
        # Optimizers replace their groups.
        self.param_groups = [group for each in self._all for group in each.param_groups]


class _Worker:
    """A thread that does one thing after another. The first error ends it, and is raised where somebody waits."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._busy_ms = 0.0

    def do(self, ready: Callable[[], object], job: Callable[[], object]) -> None:
        """Does this after ``ready`` has returned."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="busbound-updates", daemon=True)
            self._thread.start()
        self._jobs.put((ready, job))

    def finish(self) -> None:
        """Waits until everything given so far is done."""
        if self._thread is not None:
            done = threading.Event()
            self._jobs.put((lambda: None, done.set))
            done.wait()
        self.check()

    def check(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def take_ms(self) -> float:
        """How long jobs took since this was asked last."""
        taken, self._busy_ms = self._busy_ms, 0.0
        return taken

    def close(self) -> None:
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
        while (given := self._jobs.get()) is not None:
            ready, job = given
            try:
                ready()
                begin = perf_counter()
                with torch.no_grad():
                    job()
                self._busy_ms += (perf_counter() - begin) * 1e3
            except BaseException as error:  # noqa: BLE001 — raised by the thread that waits
                self._error = self._error or error


def _squares(tensors: Iterable[Any]) -> float:
    norms = [torch.linalg.vector_norm(each, dtype=torch.float32) for each in tensors]
    return float(torch.stack(norms).square().sum()) if norms else 0.0


_TWICE = (
    "block {} gets gradients a second time before optimizer.step(), and its weights are already new: run all backward "
    "passes of a step but the last inside `with optimizer.accumulate():`"
)
