"""How many traces are done?"""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class Progress:
    """Numbers of traces: done, total, unreadable among those done, and retries."""

    done: int
    total: int
    unread: int
    again: int
    nodes: int
    #: Seconds since the last trace was done.
    idle_s: float = 0.0

    def __str__(self) -> str:
        text = f"{self.done:,} of {self.total:,} ranks on {self.nodes} node{'' if self.nodes == 1 else 's'}"
        if self.unread:
            text += f", {self.unread:,} unread"
        if self.again:
            text += f", {self.again:,} retried"
        if self.idle_s >= _LONG_S:
            text += f"; none done for {self.idle_s:.0f} s: the traces are large, or the cores are busy"
        return text


#: Intervals between updates: a terminal line is overwritten, a log gets new lines.
_ON_TERMINAL_S, _IN_LOG_S = 0.2, 15.0
#: After this long without a finished trace, the text says so.
_LONG_S = 30.0


class Reporter:
    """Reports to standard error or to a function. On a terminal, the line is overwritten and removed at the end."""

    def __init__(self, wanted: bool | Callable[[Progress], None]) -> None:
        self.call = wanted if callable(wanted) else None
        self.out = sys.stderr if wanted is True else None
        self.on_terminal = self.out is not None and self.out.isatty()
        self.last_time = time.monotonic()
        self.last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        if self.call is not None:
            # Also reports regularly while nothing changes.
            waited = time.monotonic() - self.last_time >= _IN_LOG_S
            last = self.last
            if last is None or waited or (last.done, last.again) != (progress.done, progress.again):
                self.call(progress)
                self.last, self.last_time = progress, time.monotonic()
            return
        is_due = time.monotonic() - self.last_time >= (_ON_TERMINAL_S if self.on_terminal else _IN_LOG_S)
        if is_due:
            self.show(str(progress))

    def show(self, text: str) -> None:
        if self.out is None:
            return
        line = f"\r\x1b[Kbusbound: {text}" if self.on_terminal else f"busbound: {text}\n"
        print(line, file=self.out, flush=True, end="")
        self.last_time = time.monotonic()


@contextlib.contextmanager
def reporter(wanted: bool | Callable[[Progress], None]) -> Iterator[Reporter]:
    report = Reporter(wanted)
    try:
        yield report
    finally:
        if report.on_terminal:
            print("\r\x1b[K", file=report.out, flush=True, end="")
