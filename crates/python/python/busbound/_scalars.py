"""Figures of a diagnosis as curves of TensorBoard."""

from __future__ import annotations

from ._options import checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .results import Diagnosis


@checked
def log_scalars(writer: Any, diagnosis: Diagnosis, step: int, *, prefix: str = "busbound/") -> dict[str, float]:
    """Write the figures of a diagnosis to TensorBoard, one curve each, in milliseconds per step.

    >>> writer = torch.utils.tensorboard.SummaryWriter("runs/")
    >>> busbound.log_scalars(writer, busbound.open("run.json.gz").diagnose(), step=1000)

    ``profiler_handler(..., writer=writer)`` does so for each recording of a training.

    Args:
        writer: Anything with ``add_scalar(tag, value, step)``: the ``SummaryWriter`` of torch or tensorboardX, or
            ``tensorboard.summary.Writer``.
        diagnosis: What ``Trace.diagnose`` returns.
        step: The step of the training, on the horizontal axis.
        prefix: Before the name of each curve.

    Returns:
        The figures, by the names of their curves.
    """
    figures = {prefix + name: value for name, value in _figures(diagnosis).items()}
    for name, value in figures.items():
        writer.add_scalar(name, value, step)
    return figures


def _figures(diagnosis: Diagnosis) -> dict[str, float]:
    time, count = diagnosis.time, diagnosis.window.step_count
    parts = {
        "compute_ms": time.compute_ms,
        "copying_only_ms": time.exposed_bus_copy_ms,
        "communication_only_ms": time.exposed_comm_ms,
        "idle_ms": time.idle_ms,
    }
    figures = {name: ms / count for name, ms in parts.items()}
    figures["step_ms"] = diagnosis.window.baseline_ms
    if diagnosis.verdict.headroom is not None:
        figures["step_without_its_bound_ms"] = diagnosis.verdict.headroom.step_if_free_ms
    if diagnosis.prize is not None:
        figures["step_if_fixed_ms"] = diagnosis.prize.fixed_ms
    return figures
