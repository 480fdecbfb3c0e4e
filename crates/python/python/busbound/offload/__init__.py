"""Runs models that are larger than the GPU's memory, at the speed of the link. Needs PyTorch.

>>> plan = busbound.offload.plan(model, example_inputs, gpu_memory="4GB")
>>> print(plan)                                     # what a pass will take, and what bounds it
>>> with busbound.offload(model, plan) as run:
...     model(inputs)
...     print(run.report())                         # predicted against measured
...     run.explain()                               # the page with the timeline of a few passes
>>> busbound.offload(model, gpu_memory="4GB")       # plans by itself; stays until .close()
>>> run = busbound.offload(model, gpu_memory="8GB", optimizer=lambda params: torch.optim.AdamW(params, fused=True))
>>> model(inputs).mean().backward()                 # all weights are trained: the CPU updates them block by block
>>> run.optimizer.step()
>>> with busbound.offload.activations(budget="2GB"):
...     loss = model(inputs).mean()                 # saved activations wait in host memory for backward
"""

from __future__ import annotations

import sys
import types

from .._options import check
from ._sizes import OffloadError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from typing import Any

    from typing_extensions import Unpack

    from ..options import (
        ActivationOptions,
        LoadOptions,
        OffloadOptions,
        PlanOptions,
        TogetherOptions,
    )
    from ._activations import Activations
    from ._handle import Handle, Report
    from ._plan import Plan
    from ._together import Together
    from ._updates import StreamedOptimizer

__all__ = [
    "Activations",
    "Handle",
    "OffloadError",
    "Plan",
    "Report",
    "StreamedOptimizer",
    "Together",
    "activations",
    "load",
    "plan",
    "plan_together",
]


def plan(
    model: Any,
    example_inputs: Any = None,
    gpu_memory: int | float | str | None = None,
    machine: str | None = None,
    **options: Unpack[PlanOptions],
) -> Plan:
    """Plans what stays on the GPU and predicts the time of a pass. The weights move to pinned host memory.

    Args:
        model: The model.
        example_inputs: A tensor, a tuple, a dict, or a function that runs a pass. With them, a few passes are run to
            measure compute, activations and the rate of copies.
        gpu_memory: Bytes that the model may take on the GPU, as a number or as ``"4GB"``; by default what is free.
        machine: A GPU, a link or the profile of ``busbound bench``, for the rate of copies without example inputs.
        **options: As in ``busbound.options.PlanOptions``: ``blocks``, ``slots``, ``resident``, ``device``, ``trainable``,
            ``smallest_block``, ``optimizer``, ``max_norm``.

    Returns:
        The plan. Printing it says what a pass takes and why.

    Raises:
        OffloadError: The model cannot be streamed; the message says what to do instead.
    """
    _check(options, "PlanOptions", "plan")
    from ._plan import make_plan

    return make_plan(model, example_inputs, gpu_memory, machine, **options)


def plan_together(
    models: Mapping[str, tuple[Any, Any, float]],
    gpu_memory: int | float | str | None = None,
    machine: str | None = None,
    **options: Unpack[TogetherOptions],
) -> Together:
    """Plans several models that run one after another in the memory of one GPU: each GB goes where it saves most.

    Args:
        models: By name: the model, its example inputs as in ``plan``, and how often it runs compared with the others:
            ``{"text": (encoder, ids, 1), "denoiser": (unet, inputs, 50)}``.
        gpu_memory: Bytes for all of them, as in ``plan``.
        machine: As in ``plan``.
        **options: As in ``busbound.options.TogetherOptions``: ``slots``, ``device``, ``smallest_block``.

    Returns:
        The plan of each model, for ``busbound.offload(model, together[name])``. Printing it says what each takes.

    Raises:
        OffloadError: A model cannot be streamed, or the memory is not enough for all of them.
    """
    _check(options, "TogetherOptions", "plan_together")
    from ._together import make_plans

    return make_plans(models, gpu_memory, machine, **options)


def activations(budget: int | float | str = 0, **options: Unpack[ActivationOptions]) -> Activations:
    """Keeps at most ``budget`` bytes of saved activations on the GPU; the rest waits in pinned host memory.

    A context manager for the forward pass, like ``torch.autograd.graph.save_on_cpu``. Create it once and enter it in each
    step, so that its host memory is reused.

    Args:
        budget: Bytes, as a number or as ``"2GB"``.
        **options: As in ``busbound.options.ActivationOptions``: ``model``, ``device``, ``smallest``, ``in_flight``.

    Returns:
        The context manager.
    """
    _check(options, "ActivationOptions", "activations")
    from ._activations import Activations

    return Activations(budget, **options)


def load(
    model: Any,
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    gpu_memory: int | float | str | None = None,
    **options: Unpack[LoadOptions],
) -> Handle:
    """Loads safetensors files straight into pinned host memory and offloads the model.

    Args:
        model: The model, which may be on the meta device.
        files: The files, or directories of them.
        gpu_memory: As in ``plan``.
        **options: As in ``busbound.options.LoadOptions``: those of ``plan``, and ``progress``.

    Returns:
        The handle that ends it.

    Raises:
        OffloadError: The files do not fit the model, or it cannot be streamed.
    """
    _check(options, "LoadOptions", "load")
    from ._load import load_model

    return load_model(model, files, gpu_memory, **options)


def _offload(
    model: Any,
    plan: Plan | None = None,
    gpu_memory: int | float | str | None = None,
    **options: Unpack[OffloadOptions],
) -> Handle:
    """Offloads a model by a plan, or plans first. The handle ends it: ``close`` or the end of a ``with`` block.

    Args:
        model: The model.
        plan: From ``busbound.offload.plan``.
        gpu_memory: As in ``plan``.
        **options: As in ``plan``.

    Returns:
        The handle that ends it.

    Raises:
        OffloadError: The model cannot be streamed; the message says what to do instead.
    """
    _check(options, "OffloadOptions", "offload")
    from ._handle import Handle
    from ._plan import Plan, make_plan

    if isinstance(plan, (int, float, str)):
        plan, gpu_memory = None, plan
    if plan is None:
        plan = make_plan(model, gpu_memory=gpu_memory, **options)
    elif not isinstance(plan, Plan):
        raise OffloadError(f"plan must come from busbound.offload.plan, not {type(plan).__name__}")
    if plan.model is not model:
        raise OffloadError("this plan is for another model")
    return Handle(plan)


def _check(given: Any, options: str, function: str) -> None:
    """Misspelled options are errors."""
    if given:
        from .. import options as known

        check(given, getattr(known, options).__annotations__, function)


class _Callable(types.ModuleType):
    """``busbound.offload`` is both a module and the function that people call."""

    __call__ = staticmethod(_offload)


#: Imported when they are used: they need torch.
_DEFINED_IN = {
    "Activations": "_activations",
    "Handle": "_handle",
    "Plan": "_plan",
    "Report": "_handle",
    "StreamedOptimizer": "_updates",
    "Together": "_together",
}


def __getattr__(name: str) -> Any:
    import importlib

    module = _DEFINED_IN.get(name)
    if module is not None:
        return getattr(importlib.import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


sys.modules[__name__].__class__ = _Callable
