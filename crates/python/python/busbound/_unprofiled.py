"""How long do steps take while nothing is recorded? Times them around the recorded ones.

After a recording, CUPTI stays attached to the process and steps stay slower, unless TEARDOWN_CUPTI=1 is set
(docs/results/profiler.md has the measurement). Such steps are not counted.
"""

from __future__ import annotations

import functools
import gzip
import json
import os
import shutil
import sys
import threading
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any

#: The member of the trace that has the durations; the reader knows it by this name.
KEY = "busbound_unprofiled_step_ms"
#: The member with what the process runs with.
ENVIRONMENT = "busbound_environment"
#: Steps kept per stretch, the latest ones: enough for a median.
KEPT = 32
#: With fewer steps before the recorded ones, steps after them are timed too.
ENOUGH = 8
#: Steps after the recorded ones that are not counted: the profiler releases its buffers in the first.
SETTLE = 1
#: Steps after the recorded ones that are counted.
AFTER = 10

_COPIED = 1 << 20
#: Compresses twice as fast as the strongest level, for a few percent more bytes.
_LEVEL = 6


class UnprofiledSteps:
    """Times the steps of one profiler while its schedule records nothing.

    A stretch of such steps begins and ends with a device sync; between them, each step only records a CUDA event.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._marks: deque[Any] = deque(maxlen=KEPT + 1)
        self._is_open = False
        self._is_off = False
        #: Durations of the steps before the recorded ones, in milliseconds.
        self.before: list[float] = []
        self._written: tuple[str, list[float]] | None = None
        self._rewriting: threading.Thread | None = None

    def finish(self) -> None:
        """Waits until the trace has the steps that came after it."""
        if self._rewriting is not None:
            self._rewriting.join()

    def trace_written(self, path: str) -> None:
        """A trace was written with ``before``. If these are few, steps after it are added to the file."""
        before, self.before = self.before, []
        if len(before) < ENOUGH and not self._is_off:
            self._written = (path, before)

    def step_ends(self) -> None:
        """``profiler.step`` was called."""
        if self._is_open:
            self._guarded(lambda: self._marks.append(_mark()))

    def step_begins(self, is_recorded: bool) -> None:
        """``profiler.step`` returns."""
        self._guarded(self._close if is_recorded else self._go_on)

    def profiler_stops(self) -> None:
        """``profiler.stop`` returns."""
        self._guarded(self._close)
        # What comes next is another run.
        self.before, self._written = [], None

    def _guarded(self, action: Callable[[], None]) -> None:
        if self._is_off:
            return
        try:
            action()
        except Exception as error:  # noqa: BLE001 — an error here must not stop the training
            self._is_off = True
            self._warn(f"busbound: steps without the profiler are not timed: {error}")

    def _go_on(self) -> None:
        if not self._is_open:
            if not _is_detached():
                return
            _synchronize()
            self._marks.clear()
            self._marks.append(_mark())
            self._is_open = True
        elif self._written is not None and len(self._marks) > SETTLE + AFTER:
            self._add_to_trace()

    def _close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        if self._written is not None:
            self._add_to_trace()
        self.before = self._times()
        self._marks.clear()

    def _add_to_trace(self) -> None:
        written, self._written = self._written, None
        after = self._times()[SETTLE:]
        if written is None or not after:
            return
        path, before = written
        arguments = (path, before + after, self._warn)
        # Not a daemon: the program waits for it before it exits.
        self._rewriting = threading.Thread(target=_rewrite, args=arguments, name="busbound")
        self._rewriting.start()

    def _times(self) -> list[float]:
        _synchronize()
        marks = list(self._marks)
        times = [_milliseconds(*pair) for pair in zip(marks, marks[1:])]  # noqa: B905, RUF007 — pairs of neighbors
        return [round(ms, 4) for ms in times if ms > 0]


#: Whether a profiler has recorded in this process.
_has_recorded = False


def _is_detached() -> bool:
    """Whether no profiler is attached to this process any more."""
    return not _has_recorded or os.environ.get("TEARDOWN_CUPTI") == "1" or _cuda() is None


def watch(handler_of: Callable[[Any], UnprofiledSteps | None], warn: Callable[[str], None]) -> None:
    """Lets torch's profilers report their steps to what ``handler_of`` finds for them; others are not affected."""
    module = sys.modules.get("torch.profiler")
    profile = getattr(module, "profile", None)
    if profile is None or getattr(profile.step, "_busbound", False):
        return
    try:
        nothing = module.ProfilerAction.NONE  # type: ignore[union-attr]
        step, stop, prepare_trace = profile.step, profile.stop, profile.prepare_trace
    except AttributeError as error:
        warn(f"busbound: steps without the profiler are not timed: {error}")
        return

    @functools.wraps(step)
    def watched_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        steps = handler_of(self)
        if steps is None:
            return step(self, *args, **kwargs)
        steps.step_ends()
        result = step(self, *args, **kwargs)
        steps.step_begins(getattr(self, "current_action", None) != nothing)
        return result

    @functools.wraps(stop)
    def watched_stop(self: Any, *args: Any, **kwargs: Any) -> Any:
        steps = handler_of(self)
        result = stop(self, *args, **kwargs)
        if steps is not None:
            steps.profiler_stops()
        return result

    @functools.wraps(prepare_trace)
    def watched_prepare_trace(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _has_recorded
        _has_recorded = True
        return prepare_trace(self, *args, **kwargs)

    watched_step._busbound = True  # type: ignore[attr-defined]
    profile.step, profile.stop, profile.prepare_trace = watched_step, watched_stop, watched_prepare_trace


def compress(plain: str, path: str, step_ms: list[float], environment: dict[str, Any] | None = None) -> None:
    """Writes the exported trace as ``path``, compressed and with these steps and what the process runs with."""
    with _opened(plain) as source:
        _write(source, path, step_ms, environment)


def _rewrite(path: str, step_ms: list[float], warn: Callable[[str], None]) -> None:
    try:
        with _opened(path) as source:
            _write(source, path, step_ms)
    except FileNotFoundError:
        pass  # Moved by the user; it is complete without these steps.
    except Exception as error:  # noqa: BLE001 — an error here must not end the program
        warn(f"busbound: cannot add the steps without the profiler to {path}: {error}")


def _write(
    source: IO[bytes], path: str, step_ms: list[float], environment: dict[str, Any] | None = None
) -> None:
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.tmp")
    try:
        with open(temporary, "wb") as file, gzip.GzipFile(name, "wb", _LEVEL, file) as target:
            target.write(_with_steps(source.read(_COPIED), step_ms, environment))
            shutil.copyfileobj(source, target, _COPIED)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


def _with_steps(head: bytes, step_ms: list[float], environment: dict[str, Any] | None = None) -> bytes:
    """The head of a trace, with these steps as its first member instead of those it has, then the environment."""
    body = head.lstrip()
    if not body.startswith(b"{"):
        return head
    body = body[1:].lstrip()
    if body.startswith(f'"{KEY}"'.encode()):
        # Written here before, as one line.
        body = body[body.index(b"\n") + 1 :].lstrip()
    if environment is not None and body.startswith(b'"'):
        body = f'"{ENVIRONMENT}": {json.dumps(environment)},\n'.encode() + body
    if not step_ms or not body.startswith(b'"'):
        return b"{\n" + body
    return f'{{\n"{KEY}": {json.dumps(step_ms)},\n'.encode() + body


def _opened(path: str) -> Any:
    with open(path, "rb") as file:
        is_gzip = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if is_gzip else open(path, "rb")


def _cuda() -> Any:
    """torch.cuda, if this process uses it."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_available() or not cuda.is_initialized():
        return None
    if cuda.is_current_stream_capturing():
        raise RuntimeError("a CUDA graph is being captured across steps")
    return cuda


def _synchronize() -> None:
    cuda = _cuda()
    if cuda is not None:
        cuda.synchronize()


def _mark() -> Any:
    """A point in time that costs no sync: an event on the current stream, or the clock without a GPU."""
    cuda = _cuda()
    if cuda is None:
        return time.perf_counter()
    event = cuda.Event(enable_timing=True)
    event.record()
    return event


def _milliseconds(start: Any, end: Any) -> float:
    if isinstance(start, float):
        # A program that began to use CUDA in between has no time for this step.
        return (end - start) * 1e3 if isinstance(end, float) else 0.0
    return float(start.elapsed_time(end))
