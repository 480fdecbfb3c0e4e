"""Which blocks stay on the GPU, what will a pass take, and what bounds it?

The Rust part of the package chooses and predicts; this file measures what it needs and words the answer.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from .._native import BusboundError, plan_stream
from ._blocks import SMALLEST_BLOCK, find_blocks
from ._compare import Rival, as_it_came
from ._memory import nbytes_of
from ._probe import Measured, measure
from ._rehearsal import Rehearsal
from ._sizes import OffloadError, bytes_of, text_of
from ._store import Store

LOG = logging.getLogger("busbound.offload")
#: Share of the free GPU memory that is used if no budget is given.
_SHARE_OF_FREE = 0.9
#: Share of the budget kept for activations if there are no example inputs to measure them with.
_UNKNOWN_ACTIVATIONS = 0.1
#: Memory that torch and cuBLAS take besides tensors that a pass allocates.
MARGIN = 32 << 20
#: What training a weight takes on the GPU beside the weight itself: its gradient, and two states of Adam.
_STATES = 3


#: How a bound is worded.
BOUNDS = {
    "bus": "the bus",
    "compute": "compute",
    "host": "the host, which launches the kernels",
    "updates": "the CPU, which updates the weights",
}


class Training(NamedTuple):
    """How weights are trained."""

    #: Makes the optimizer of some parameters.
    make: Callable[[list[Any]], Any]
    #: The norm that gradients are clipped to.
    max_norm: float | None


class Plan:
    """What ``busbound.offload`` will do with a model. Printing it says what it takes and why."""

    def __init__(
        self,
        store: Store,
        budget: int,
        measured: Measured | None,
        answer: dict[str, Any],
        run: Callable[[], object] | None = None,
        training: Training | None = None,
        rival: Rival | None = None,
    ) -> None:
        #: What offload is compared with when it begins.
        self.rival = rival
        self.store, self.budget, self.measured = store, budget, measured
        #: How streamed weights are trained; ``None`` if they are not.
        self.training = training
        #: Runs a pass with the example inputs.
        self.run = run
        self._answer = answer
        self.resident: list[int] = [index for index, stays in enumerate(answer["resident"]) if stays]
        self.slots: int = answer["slots"]

    @property
    def model(self) -> Any:
        return self.store.model

    @property
    def step_ms(self) -> float | None:
        """The expected time of a pass."""
        return self._number("expected_ms")

    @property
    def range_ms(self) -> tuple[float, float] | None:
        """The range that the time of a pass falls in."""
        known = self._answer.get("step_ms")
        return None if known is None or self.step_ms is None else (known["low"], known["high"])

    @property
    def limit_ms(self) -> float | None:
        """The largest of compute, copies and launches: no schedule is faster with these residents."""
        return self._number("limit_ms")

    @property
    def unit(self) -> str:
        """What is timed: a pass, or a step of a forward and a backward pass."""
        return "pass" if self.measured is None or self.measured.training is None else "step"

    @property
    def bound(self) -> str | None:
        """``bus``, ``compute`` or ``host``."""
        bound = self._answer.get("bound")
        return None if bound is None else str(bound)

    @property
    def aside(self) -> str | None:
        """Why nothing is streamed, in one line; ``None`` if something is."""
        blocks = len(self.store.blocks)
        if len(self.resident) < blocks:
            return None
        return f"offload steps aside: all {blocks} blocks stay on the GPU, and a pass runs as without it"

    def to_dict(self) -> dict[str, Any]:
        """Everything the planner says.

        Returns:
            A new dictionary.
        """
        return dict(self._answer)

    def _number(self, name: str) -> float | None:
        # Without compute times only the copies are known.
        if self.measured is None:
            return None
        number = self._answer.get(name)
        return None if number is None else float(number)

    def __str__(self) -> str:
        blocks, resident = len(self.store.blocks), len(self.resident)
        answer = self._answer
        lines = [
            self.aside
            or f"offload: {blocks - resident} of {blocks} blocks streamed ({text_of(answer.get('streamed_bytes', 0))} per pass), "
            f"{resident} resident, {self.slots} slots"
        ]
        lines.append(f"GPU memory: {text_of(answer['used_bytes'])} of {text_of(self.budget)}")
        if self.step_ms is not None and self.range_ms is not None:
            low, high = self.range_ms
            lines.append(f"expected: {self.step_ms:.1f} ms per {self.unit} ({low:.1f}\u2013{high:.1f})")
        if self.measured is not None and self.limit_ms is not None:
            rate = f", copies {answer['copy_ms']:.1f} ms at {answer['copy_gbps']:.1f} GB/s" if answer.get("copy_ms") else ""
            cpu = f", updates on the CPU {answer['cpu_ms']:.1f} ms" if answer.get("cpu_ms") else ""
            lines.append(
                f"bound by {BOUNDS[str(self.bound)]}: limit {self.limit_ms:.1f} ms (compute {answer['compute_ms']:.1f} ms{rate}{cpu})"
            )
        if answer.get("one_gb_more_ms") is not None and self.step_ms is not None and answer["one_gb_more_ms"] < self.step_ms:
            lines.append(f"1 GB more GPU memory: {answer['one_gb_more_ms']:.1f} ms")
        if answer.get("hides_all_bytes") is not None and self.measured is not None:
            lines.append(f"{text_of(answer['hides_all_bytes'])} would hide all copies behind compute")
        if self.training is not None and self.aside is None:
            lines.append("weights are trained: the CPU updates each block while backward goes on")
        if self.training is not None and self.measured is None:
            lines.append("the time of a step is unknown: give example_inputs as a function that runs forward and backward to predict it")
        elif self.measured is None:
            copies = f"copies take {answer['copy_ms']:.1f} ms; " if answer.get("copy_ms") else ""
            lines.append(f"{copies}compute is unknown: give example_inputs to predict the time of a pass")
        lines.extend(f"note: {note}" for note in _summary(self.store.notes))
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<busbound.offload.Plan: {len(self.resident)} of {len(self.store.blocks)} blocks resident, {self.slots} slots>"


def make_plan(
    model: Any,
    example_inputs: Any = None,
    gpu_memory: int | float | str | None = None,
    machine: str | None = None,
    *,
    blocks: Sequence[Any] | str | None = None,
    slots: int | None = None,
    resident: Sequence[int] | None = None,
    device: Any = None,
    trainable: str = "auto",
    smallest_block: int = SMALLEST_BLOCK,
    optimizer: Callable[[list[Any]], Any] | None = None,
    max_norm: float | None = None,
    compare: bool | Callable[[], object] = True,
    store: Store | None = None,
) -> Plan:
    """Plans; with example inputs, runs a few passes to measure compute and activations."""
    if optimizer is None and max_norm is not None:
        raise OffloadError("max_norm= clips the gradients that optimizer= uses: give both")
    training = None if optimizer is None else Training(optimizer, max_norm)
    where = device_of(device)
    run = None if example_inputs is None else caller(model, example_inputs)
    rival = _rival(model, run, where, gpu_memory, compare) if training is None and store is None else None
    store = stored(model, blocks, where, trainable, smallest_block) if store is None else _usable(store)
    budget = bytes_of(gpu_memory) if gpu_memory is not None else free_memory(where)
    fixed = store.outside_bytes + MARGIN
    if training is None:
        measured = None if run is None else measure(store, run)
    else:
        if resident is None:
            resident = _residents_in_training(store, budget, fixed + _bytes_to_train(store))
        # Only a function can run backward too.
        is_rehearsed = run is example_inputs is not None and len(set(resident)) < len(store.blocks)
        measured = _rehearsed(store, run, training) if run is not None and is_rehearsed else None
        fixed += _bytes_to_train(store, measured is not None)
    answer = _answer(store, budget, fixed, measured, machine, slots, resident)
    if training is not None and answer.get("used_bytes", 0) > budget:
        raise OffloadError(f"gpu_memory must be at least {text_of(answer['used_bytes'])}, not {text_of(budget)}")
    return Plan(store, budget, measured, answer, run, training, rival)


def _rival(
    model: Any, run: Callable[[], object] | None, device: Any, gpu_memory: int | float | str | None, compare: bool | Callable[[], object]
) -> Rival | None:
    """What offload is compared with: a function that was given, or the model as it came."""
    if callable(compare):
        if run is None:
            raise OffloadError("compare= is timed beside passes with offload: give example_inputs too")
        return Rival(compare, [])
    if not compare or run is None:
        return None
    return as_it_came(model, run, device, None if gpu_memory is None else bytes_of(gpu_memory))


def _rehearsed(store: Store, run: Callable[[], object], training: Training) -> Measured | None:
    """A step with the CPU's updates; ``None`` if the function runs no backward pass, or if such a step fails."""
    try:
        measured = measure(store, run, rehearsal=Rehearsal(store, training.make, training.max_norm))
    except BaseException as error:
        # The model is as before.
        store.move_home()
        if not isinstance(error, Exception):
            raise
        # The rehearsal is not the training: what fails in it may work there.
        LOG.warning("offload: the step is not predicted, because a rehearsal of it failed: %s: %s", type(error).__name__, error)
        return None
    return None if measured.training is None else measured


def stored(
    model: Any, blocks: Sequence[Any] | str | None, device: Any, trainable: str = "auto", smallest_block: int = SMALLEST_BLOCK
) -> Store:
    """The blocks of a model in host memory."""
    found = find_blocks(model, blocks, smallest_block)
    if not found:
        raise OffloadError("the model has no list of modules to stream: give the modules as blocks=")
    return _usable(Store(model, found, device, keeps_trainable(found, trainable)))


def _usable(store: Store) -> Store:
    if not store.blocks:
        raise OffloadError("nothing in the blocks can be streamed:\n" + "\n".join(_summary(store.notes)))
    return store


def _bytes_to_train(store: Store, is_measured: bool = False) -> int:
    """Gradients and states of what is on the GPU anyway, and gradients of blocks that are being copied to the host.

    What a step was measured to need has the gradients already.
    """
    trained = sum(nbytes_of(each) for each in store.outside if each.requires_grad)
    if is_measured:
        return (_STATES - 1) * trained
    return _STATES * trained + 3 * max(block.nbytes for block in store.blocks)


def _residents_in_training(store: Store, budget: int, fixed: int) -> list[int]:
    """All blocks if there is room for their gradients and states too; otherwise none."""
    whole = sum(block.nbytes * (1 + (_STATES if block.trainable else 0)) for block in store.blocks)
    return list(range(len(store.blocks))) if fixed + whole + _activations(budget, None) <= budget else []


def _answer(
    store: Store,
    budget: int,
    fixed: int,
    measured: Measured | None,
    machine: str | None,
    slots: int | None,
    resident: Sequence[int] | None,
) -> dict[str, Any]:
    stays = None if resident is None else [index in set(resident) for index in range(len(store.blocks))]
    compute = [0.0] * len(store.blocks) if measured is None else measured.compute_ms
    try:
        answer = plan_stream(
            [block.nbytes for block in store.blocks],
            compute,
            0.0 if measured is None else measured.outside_ms,
            0.0 if measured is None else measured.host_ms,
            budget,
            fixed,
            _activations(budget, measured),
            None if measured is None else measured.gbps,
            machine,
            slots,
            stays,
            None if measured is None else measured.training,
        )
    except BusboundError as error:
        raise OffloadError(str(error)) from error
    read: dict[str, Any] = json.loads(answer)
    return read


def _activations(budget: int, measured: Measured | None) -> int:
    return int(budget * _UNKNOWN_ACTIVATIONS) if measured is None else measured.activation_bytes


def caller(model: Any, inputs: Any) -> Callable[[], object]:
    """Runs one pass: the inputs are a tensor, a tuple, a dict of keywords, or a function that runs it itself, with backward or without."""
    if callable(inputs) and not isinstance(inputs, torch.Tensor):
        return inputs  # type: ignore[no-any-return]

    def run() -> object:
        with torch.no_grad():
            if isinstance(inputs, dict):
                return model(**inputs)
            return model(*inputs) if isinstance(inputs, (tuple, list)) else model(inputs)

    return run


def keeps_trainable(blocks: Sequence[Any], trainable: str) -> bool:
    """Whether parameters that require gradients stay on the GPU: if that is asked for, or if others are frozen."""
    if trainable not in ("auto", "resident", "stream"):
        raise OffloadError(f"trainable={trainable!r}: write 'auto', 'resident' or 'stream'")
    if trainable != "auto":
        return trainable == "resident"
    return any(not each.requires_grad for block in blocks for each in block.module.parameters())


def device_of(device: Any) -> Any:
    """The device to run on: the given one, or the current GPU."""
    if device is None:
        if not torch.cuda.is_available():
            raise OffloadError("no GPU: torch.cuda.is_available() is False (device='cpu' runs without one, for tests)")
        device = "cuda"
    found = torch.device(device)
    if found.type == "cuda" and found.index is None:
        found = torch.device("cuda", torch.cuda.current_device())
    return found


def free_memory(device: Any) -> int:
    if device.type != "cuda":
        raise OffloadError("give gpu_memory=")
    free, _ = torch.cuda.mem_get_info(device)
    # Torch keeps what it has freed, such as weights that are in host memory now.
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int((free + kept) * _SHARE_OF_FREE)


def _summary(notes: Sequence[str]) -> list[str]:
    """Long lists are the same note for every block."""
    shown = list(notes[:4])
    return [*shown, f"{len(notes) - 4} more like these"] if len(notes) > 4 else shown
