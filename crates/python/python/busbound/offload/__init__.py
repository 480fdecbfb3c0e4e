"""Runs models that are larger than the GPU's memory, at the speed of the link. Needs PyTorch.

>>> plan = busbound.offload.plan(model, example_inputs, gpu_memory="4GB")
>>> print(plan)                                     # what a pass will take, and what bounds it
>>> with busbound.offload(model, plan) as run:
...     model(inputs)
...     print(run.report())                         # predicted against measured
>>> busbound.offload(model, gpu_memory="4GB")       # plans by itself; stays until .close()
>>> with busbound.offload.activations(budget="2GB"):
...     loss = model(inputs).mean()                 # saved activations wait in host memory for backward
"""

from __future__ import annotations

import sys
import types

from ._sizes import OffloadError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Any

    from ._activations import Activations
    from ._handle import Handle, Report
    from ._plan import Plan

__all__ = ["Activations", "Handle", "OffloadError", "Plan", "Report", "activations", "load", "plan"]


def plan(
    model: Any,
    example_inputs: Any = None,
    gpu_memory: int | float | str | None = None,
    machine: str | None = None,
    **options: Any,
) -> Plan:
    """Plans what stays on the GPU and predicts the time of a pass.

    The weights move to pinned host memory. With ``example_inputs`` (a tensor, a tuple, a dict, or a function that runs a
    pass), a few passes are run to measure compute and activations. ``machine`` is a GPU, a link or the profile of
    ``busbound bench``; with example inputs the rate of copies is measured.

    Options: ``blocks`` (modules, their names, or the name of their list), ``slots``, ``device``, ``trainable``
    (``"resident"`` keeps weights that require gradients on the GPU, which is the default if others are frozen).
    """
    from ._plan import make_plan

    return make_plan(model, example_inputs, gpu_memory, machine, **options)


def activations(budget: int | float | str = 0, **options: Any) -> Activations:
    """Keeps at most ``budget`` bytes of saved activations on the GPU; the rest waits in pinned host memory.

    A context manager for the forward pass, like ``torch.autograd.graph.save_on_cpu``. Create it once and enter it in each
    step, so that its host memory is reused.
    """
    from ._activations import Activations

    return Activations(budget, **options)


def load(
    model: Any,
    files: str | PathLike[str] | Sequence[str | PathLike[str]],
    gpu_memory: int | float | str | None = None,
    **options: Any,
) -> Handle:
    """Loads safetensors files straight into pinned host memory and offloads the model, which may be on the meta device."""
    from ._load import load_model

    return load_model(model, files, gpu_memory, **options)


def _offload(
    model: Any, plan: Plan | None = None, gpu_memory: int | float | str | None = None, **options: Any
) -> Handle:
    """Offloads a model by a plan, or plans first. The handle ends it: ``close`` or the end of a ``with`` block."""
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


class _Callable(types.ModuleType):
    """``busbound.offload`` is both a module and the function that people call."""

    __call__ = staticmethod(_offload)


def __getattr__(name: str) -> Any:
    import importlib

    for module, names in (("_activations", ("Activations",)), ("_handle", ("Handle", "Report")), ("_plan", ("Plan",))):
        if name in names:
            return getattr(importlib.import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


sys.modules[__name__].__class__ = _Callable
