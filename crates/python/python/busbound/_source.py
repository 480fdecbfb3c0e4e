"""What a diagnosis was made from, to ask the trace again: it is in memory, or its file is read once more."""

from __future__ import annotations

import weakref

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._trace import Trace
    from .results import Diagnosis

    #: machine, steps, warmup, wall_ms.
    Options = tuple[str | None, str | None, int | None, float | None]


class Source:
    """The trace of a diagnosis. Does not keep it in memory."""

    __slots__ = ("events", "options", "path", "storage_options", "trace")

    def __init__(self, trace: Trace | None, path: str, events: int, options: Options) -> None:
        self.trace = None if trace is None else weakref.ref(trace)
        self.storage_options = None if trace is None else trace._storage_options
        self.path, self.events, self.options = path, events, options

    def page(self) -> str | None:
        """The page with its timeline, if the trace is still there."""
        trace = self.opened()
        return None if trace is None else trace._native.page(*self.options)

    def diagnosis(self) -> Diagnosis:
        """The diagnosis once more, of a result that was pickled."""
        trace = self.opened()
        if trace is None:
            raise _native.NotFoundError(f"{self.path}: not the trace that was diagnosed, or not there any more")
        machine, steps, warmup, wall_ms = self.options
        return trace.diagnose(machine=machine, steps=steps, warmup=warmup, wall_ms=wall_ms)

    def opened(self) -> Trace | None:
        """The trace; None if the file is gone or has changed."""
        from ._trace import open as open_trace

        trace = None if self.trace is None else self.trace()
        if trace is not None:
            return trace
        try:
            trace = open_trace(self.path, storage_options=self.storage_options)
        except _native.BusboundError:
            return None
        return trace if len(trace) == self.events else None

    def __reduce__(self) -> tuple[Any, ...]:
        # Without storage options: they may contain secrets.
        return (Source, (None, self.path, self.events, self.options))
