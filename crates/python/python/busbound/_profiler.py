"""The trace handler for torch.profiler."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._trace import Path
    from .results import Diagnosis


def profiler_handler(
    directory: Path, *, machine: Path | None = None, quiet: bool = False
) -> Callable[[Any], None]:
    """For ``torch.profiler.profile(on_trace_ready=...)``: writes the trace, diagnoses it, and prints the verdict.

    >>> with torch.profiler.profile(schedule=..., on_trace_ready=busbound.profiler_handler("traces/")) as profiler:
    ...     for batch in loader:
    ...         train(batch)
    ...         profiler.step()

    directory: where to write the trace, as HOST_PID.TIME.pt.trace.json.gz; created if it does not exist.
    machine: as in ``Trace.diagnose``.
    quiet: write the trace and print nothing.

    The verdict goes to standard error. So do errors; they never stop the training.
    """

    def handle(profiler: Any) -> None:
        try:
            path = _path_in(directory)
            profiler.export_chrome_trace(path)
            if not quiet:
                _print(_verdict_of(path, machine))
        except Exception as error:  # noqa: BLE001 — an error here must not stop the training
            _print(f"busbound: cannot diagnose the trace: {error}")

    return handle


def _path_in(directory: Path) -> str:
    import socket
    import time

    directory = os.fspath(directory)
    os.makedirs(directory, exist_ok=True)
    # Same names as torch.profiler.tensorboard_trace_handler, so that its readers find these files.
    name = f"{socket.gethostname()}_{os.getpid()}.{time.time_ns()}.pt.trace.json.gz"
    return os.path.join(directory, name)


def _verdict_of(path: str, machine: Path | None) -> str:
    from ._trace import open as open_trace

    diagnosis = open_trace(path).diagnose(machine=machine)
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
