"""Options as types, for programs that pass them on: ``def run(**options: Unpack[DiagnoseOptions])``."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["ActivationOptions", "DiagnoseOptions", "LoadOptions", "OffloadOptions", "PlanOptions", "StepOptions", "TogetherOptions"]


class StepOptions(TypedDict, total=False):
    """Which steps are analyzed: for the tables of a ``Trace``."""

    steps: str | None
    """A regular expression for the annotations that mark steps."""
    warmup: int | None
    """Number of warm-up steps to skip."""


class DiagnoseOptions(StepOptions, total=False):
    """For ``Trace.diagnose`` and ``Trace.whatif``."""

    machine: str | PathLike[str] | None
    """A profile from ``busbound bench``, a link, a GPU or a rate in GB/s."""
    wall_ms: float | None
    """Milliseconds of a step without the profiler, if you timed it."""


class PlanOptions(TypedDict, total=False):
    """For ``busbound.offload.plan``."""

    blocks: Sequence[Any] | str | None
    """The modules to stream, their names, or the name of their list."""
    slots: int | None
    """How many blocks have a place on the GPU while they are streamed."""
    resident: Sequence[int] | None
    """The blocks that stay on the GPU, by their index."""
    device: Any
    """The device to run on; the current GPU if it is not given."""
    trainable: Literal["auto", "resident", "stream"]
    """Where weights that require gradients are; ``"auto"`` keeps them on the GPU if others are frozen."""
    smallest_block: int
    """Bytes below which a module is not a block."""
    optimizer: Callable[[list[Any]], Any] | None
    """Makes an optimizer of a list of parameters, for training all weights: ``lambda params: torch.optim.AdamW(params, fused=True)``. It
    is called once for each block."""
    max_norm: float | None
    """Clips the norm of all gradients. Weights are then updated in ``step``, not during backward."""
    compare: bool | Callable[[], object]
    """With example inputs, a few passes are timed with and without offload, and offload steps aside if it is not faster: ``True`` compares
    with the model as it came, if that is on the GPU and within ``gpu_memory``; a function runs a pass of what offload replaces."""


class TogetherOptions(TypedDict, total=False):
    """For ``busbound.offload.plan_together``."""

    slots: int | None
    """How many blocks of each model have a place on the GPU while they are streamed."""
    device: Any
    """The device to run on; the current GPU if it is not given."""
    smallest_block: int
    """Bytes below which a module is not a block."""


class OffloadOptions(PlanOptions, total=False):
    """For ``busbound.offload``."""

    example_inputs: Any
    """As in ``busbound.offload.plan``."""
    machine: str | None
    """As in ``busbound.offload.plan``."""

class LoadOptions(OffloadOptions, total=False):
    """For ``busbound.offload.load``."""

    progress: Callable[[int, int], None] | None
    """Called with the bytes that are read and those of all files."""


class ActivationOptions(TypedDict, total=False):
    """For ``busbound.offload.activations``."""

    model: Any
    """Its weights stay where they are."""
    device: Any
    """The device to run on; the current GPU if it is not given."""
    smallest: int
    """Bytes below which a tensor stays on the GPU."""
    in_flight: int | None
    """Bytes that may be copied to the host at the same time."""
