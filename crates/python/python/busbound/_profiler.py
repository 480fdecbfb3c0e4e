"""The trace handler for torch.profiler."""

from __future__ import annotations

import os
import sys

from ._options import checked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._trace import Path
    from ._unprofiled import UnprofiledSteps
    from .results import Diagnosis


@checked
def profiler_handler(
    directory: Path, *, machine: Path | None = None, quiet: bool = False, writer: Any = None
) -> Callable[[Any], None]:
    """For ``torch.profiler.profile(on_trace_ready=...)``: writes the trace, diagnoses it, and prints the verdict.

    >>> with torch.profiler.profile(schedule=..., on_trace_ready=busbound.profiler_handler("traces/")) as profiler:
    ...     for batch in loader:
    ...         train(batch)
    ...         profiler.step()

    Also times the steps before the recorded ones, in which the schedule records nothing, and writes their durations into
    the trace: they show what recording costs. ``schedule(wait=10, ...)`` gives enough of them. With TEARDOWN_CUPTI=1 in
    the environment, steps after the recorded ones count too; without it they stay slower.

    Also writes what the process runs with: versions, the number of CPUs, and the variables NCCL_*, CUDA_*, PYTORCH_*, TORCH_*,
    OMP_NUM_THREADS and MKL_NUM_THREADS, without paths and secrets. ``busbound compare`` and ``merge`` name what differs.

    The verdict goes to standard error. So do errors; they never stop the training. ``busbound.profile`` does all of this
    without a profiler of your own.

    Args:
        directory: Where to write the trace, as HOST_PID.TIME.pt.trace.json.gz; created if it does not exist.
        machine: As in ``Trace.diagnose``.
        quiet: Write the trace and print nothing.
        writer: A ``SummaryWriter``: the figures of each recording become curves of TensorBoard, at the number of the
            profiler's step. See ``log_scalars``.

    Returns:
        The handler.
    """
    from ._unprofiled import watch

    handler = _Handler(directory, machine, quiet, writer)
    try:
        watch(_steps_of, _print)
    except Exception as error:  # noqa: BLE001 — an error here must not stop the training
        _print(f"busbound: steps without the profiler are not timed: {error}")
    return handler


class _Handler:
    def __init__(self, directory: Path, machine: Path | None, quiet: bool, writer: Any = None) -> None:
        from ._unprofiled import UnprofiledSteps

        self.directory, self.machine, self.quiet, self.writer = directory, machine, quiet, writer
        self.steps = UnprofiledSteps(_print)
        #: The last trace that was written, and the error that kept one from being written.
        self.path: str | None = None
        self.error: Exception | None = None

    def __call__(self, profiler: Any) -> None:
        try:
            path = _path_in(self.directory)
            _export(profiler, path, self.steps.before)
            self.path = path
            self.steps.trace_written(path)
            self._report(path, getattr(profiler, "step_num", 0))
        except Exception as error:  # noqa: BLE001 — an error here must not stop the training
            self.error = error
            _print(f"busbound: cannot diagnose the trace: {error}")

    def _report(self, path: str, step: int) -> None:
        from ._scalars import log_scalars
        from ._trace import open as open_trace

        if self.quiet and self.writer is None:
            return
        diagnosis = open_trace(path).diagnose(machine=self.machine)
        if not self.quiet:
            _print(_verdict_of(path, diagnosis))
        if self.writer is not None:
            log_scalars(self.writer, diagnosis, step)


def _steps_of(profiler: Any) -> UnprofiledSteps | None:
    """The steps of a profiler that uses our handler."""
    handler = getattr(profiler, "on_trace_ready", None)
    return handler.steps if isinstance(handler, _Handler) else None


def _export(profiler: Any, path: str, unprofiled_step_ms: list[float]) -> None:
    from ._environment import environment
    from ._unprofiled import compress

    # torch compresses in a second pass too, and a profiler exports only once.
    plain = path.removesuffix(".gz")
    profiler.export_chrome_trace(plain)
    compress(plain, path, unprofiled_step_ms, environment())
    os.remove(plain)


def _path_in(directory: Path) -> str:
    import socket
    import time

    directory = os.fspath(directory)
    os.makedirs(directory, exist_ok=True)
    # Same names as torch.profiler.tensorboard_trace_handler, so that its readers find these files.
    name = f"{socket.gethostname()}_{os.getpid()}.{time.time_ns()}.pt.trace.json.gz"
    return os.path.join(directory, name)


def _verdict_of(path: str, diagnosis: Diagnosis) -> str:
    lines = [f"busbound: {diagnosis.verdict.statement}"]
    unit = _unit(diagnosis)
    for finding in diagnosis.findings[:1]:
        saving = finding.saves_ms_per_step
        lines.append(f"  {finding.title}: saves {saving.low:.3g}\u2013{saving.high:.3g} ms/{unit}. {finding.fix}")
    lines.append(f"  busbound diagnose {path}")
    return "\n".join(lines)


def _unit(diagnosis: Diagnosis) -> str:
    """The unit of figures "per step"."""
    steps = diagnosis.window.steps
    if steps is None:
        return "trace"
    return "iteration" if steps.found == "period" else "step"


def _print(text: str) -> None:
    if sys.stderr is not None:
        print(text, file=sys.stderr, flush=True)
