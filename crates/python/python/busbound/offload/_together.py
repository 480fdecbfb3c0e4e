"""Several models that run one after another share the memory of a GPU: a text encoder once per image, a denoiser fifty times."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from .._native import BusboundError, plan_together
from ._blocks import SMALLEST_BLOCK
from ._plan import MARGIN, Plan, caller, device_of, free_memory, stored
from ._probe import measure
from ._sizes import OffloadError, bytes_of, text_of


class _Component(NamedTuple):
    """What the planner needs to know about one of them."""

    bytes: list[int]
    compute_ms: list[float]
    outside_ms: float
    host_ms: float
    outside_bytes: int
    activation_bytes: int
    gbps: float | None
    slots: int | None
    uses: float


class Together:
    """The plans of several models. Printing it says what each takes."""

    def __init__(self, plans: dict[str, Plan], uses: dict[str, float], budget: int, total_ms: float) -> None:
        #: By the names of the models; each is for ``busbound.offload(model, plan)``.
        self.plans = plans
        self.uses, self.budget = uses, budget
        #: The expected time of all passes of all models.
        self.total_ms = total_ms

    def __getitem__(self, name: str) -> Plan:
        return self.plans[name]

    def __str__(self) -> str:
        lines = [f"offload: {self.total_ms:.1f} ms for all passes, with {text_of(self.budget)} of GPU memory"]
        for name, plan in self.plans.items():
            passes = f"{self.uses[name]:g} x {plan.step_ms:.1f} ms" if plan.step_ms is not None else f"{self.uses[name]:g} passes"
            blocks, resident = len(plan.store.blocks), len(plan.resident)
            lines.append(f"{name}: {passes}, {resident} of {blocks} blocks resident, {plan.slots} slots, {text_of(plan.budget)}")
        return "\n".join(lines)


def make_plans(
    models: Mapping[str, tuple[Any, Any, float]],
    gpu_memory: int | float | str | None = None,
    machine: str | None = None,
    *,
    slots: int | None = None,
    device: Any = None,
    smallest_block: int = SMALLEST_BLOCK,
) -> Together:
    """Measures each model alone, and shares the memory out."""
    where = device_of(device)
    budget = bytes_of(gpu_memory) if gpu_memory is not None else free_memory(where)
    stores, runs, measured, components = {}, {}, {}, []
    for name, (model, inputs, uses) in models.items():
        stores[name] = store = stored(model, None, where, smallest_block=smallest_block)
        runs[name] = run = caller(model, inputs)
        measured[name] = found = measure(store, run)
        if found.training is not None:
            raise OffloadError(f"{name} runs backward: plan_together plans inference; plan a model that is trained alone")
        components.append(
            _Component(
                [block.nbytes for block in store.blocks],
                found.compute_ms,
                found.outside_ms,
                found.host_ms,
                store.outside_bytes + MARGIN,
                found.activation_bytes,
                found.gbps,
                slots,
                float(uses),
            )
        )
    try:
        answer = json.loads(plan_together(components, budget, machine))
    except BusboundError as error:
        raise OffloadError(str(error)) from error
    plans = {
        name: Plan(stores[name], given, measured[name], plan, runs[name])
        for name, plan, given in zip(models, answer["plans"], answer["gpu_bytes"], strict=True)
    }
    return Together(plans, {name: uses for name, (_, _, uses) in models.items()}, budget, answer["total_ms"])
