"""Records a few steps of a loop with torch.profiler, and answers at its end."""

from __future__ import annotations

import os
import tempfile

from . import _native
from ._options import checked
from ._profiler import _Handler, _print, _steps_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from ._trace import Path
    from .results import Diagnosis


@checked
def profile(
    *,
    steps: int = 5,
    wait: int = 10,
    warmup: int = 2,
    directory: Path | None = None,
    machine: Path | None = None,
    quiet: bool = False,
) -> Profile:
    """Is the GPU of this loop waiting for the bus? Records a few of its steps and prints the answer at the end.

    >>> with busbound.profile(steps=5) as p:
    ...     for batch in loader:
    ...         train(batch)
    ...         p.step()
    ...         if p.done:
    ...             break

    First ``wait`` steps run without the profiler and are timed, then ``warmup`` steps run with it and are dropped, then
    ``steps`` are recorded. All others run without it. Errors of recording and diagnosing are printed; they never stop the
    loop.

    Args:
        steps: Number of steps to record.
        wait: Number of steps before them, without the profiler: they show what recording costs.
        warmup: Number of steps that the profiler needs to start.
        directory: Where to write the trace; by default a new temporary directory.
        machine: As in ``Trace.diagnose``.
        quiet: Print nothing; the answer is in ``diagnosis``.

    Returns:
        A context manager for the loop.

    Raises:
        OptionError: A number makes no sense. Also a ``ValueError``.
        ImportError: torch is not installed.
    """
    for name, number, least in (("steps", steps, 1), ("wait", wait, 0), ("warmup", warmup, 0)):
        if not isinstance(number, int) or number < least:
            raise _native.OptionError(f"{name}={number!r}: must be a number of steps, {least} or more")
    return Profile(steps, wait, warmup, directory, machine, quiet)


class Profile:
    """A loop that is being profiled; ``busbound.profile`` makes one."""

    def __init__(
        self, steps: int, wait: int, warmup: int, directory: Path | None, machine: Path | None, quiet: bool
    ) -> None:
        self._directory = tempfile.mkdtemp(prefix="busbound-") if directory is None else os.fspath(directory)
        self._handler = _Handler(self._directory, machine, quiet=True)
        self._machine, self._quiet = machine, quiet
        self._needed = wait + warmup + steps
        self._profiler = _profiler(self._handler, steps, wait, warmup)
        #: Number of steps so far.
        self.steps = 0
        #: The answer, after the end of the ``with`` block; None before it, or if nothing was recorded.
        self.diagnosis: Diagnosis | None = None

    @property
    def path(self) -> str | None:
        """The trace, once it is written."""
        return self._handler.path

    @property
    def done(self) -> bool:
        """Whether all steps are recorded: the loop may end."""
        return self.steps >= self._needed

    def step(self) -> None:
        """Says that a step ends here. Call it once per iteration, at its end."""
        self.steps += 1
        self._profiler.step()

    def __enter__(self) -> Profile:
        self._profiler.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._profiler.__exit__(kind, error, trace)
        try:
            self._answer()
        except Exception as problem:  # noqa: BLE001 — an error here must not hide one of the loop
            _print(f"busbound: cannot diagnose the trace: {problem}")

    def _answer(self) -> None:
        from ._trace import open as open_trace

        path = self.path
        if path is None:
            if self._handler.error is None:
                _print(
                    f"busbound: nothing was recorded: the loop ended after {self.steps} step{'' if self.steps == 1 else 's'}, and recording ends with"
                    f" step {self._needed}. Call step() in each iteration; wait and warmup make it begin earlier."
                )
            return
        self._handler.steps.finish()
        self.diagnosis = open_trace(path).diagnose(machine=self._machine)
        if not self._quiet:
            _show(self.diagnosis)


def _show(diagnosis: Diagnosis) -> None:
    from . import _show

    if _show.is_in_notebook():
        _show.display(diagnosis)
    else:
        print(diagnosis, flush=True)


def _profiler(handler: _Handler, steps: int, wait: int, warmup: int) -> Any:
    try:
        from torch.profiler import profile as torch_profile
        from torch.profiler import schedule
    except ImportError as error:
        raise ImportError("busbound.profile needs PyTorch") from error
    from ._unprofiled import watch

    watch(_steps_of, _print)
    return torch_profile(schedule=schedule(wait=wait, warmup=warmup, active=steps, repeat=1), on_trace_ready=handler)
