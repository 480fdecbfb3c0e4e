"""How far is it?"""

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
    """Traces: how many are done, of how many, how many of those could not be read, and how often one was tried again."""

    done: int
    total: int
    unread: int
    again: int
    nodes: int

    def __str__(self) -> str:
        text = f"{self.done:,} of {self.total:,} ranks on {self.nodes} node{'' if self.nodes == 1 else 's'}"
        if self.unread:
            text += f", {self.unread:,} unread"
        return text + (f", {self.again:,} tried again" if self.again else "")


#: A terminal's line is written over; a log gets one now and then.
_ON_TERMINAL_S, _IN_LOG_S = 0.2, 15.0


@contextlib.contextmanager
def reporter(wanted: bool | Callable[[Progress], None]) -> Iterator[Callable[[Progress], None]]:
    if callable(wanted):
        yield wanted
        return
    out = sys.stderr
    if not wanted or out is None:
        yield lambda progress: None
        return
    on_terminal = out.isatty()
    last = time.monotonic()

    def report(progress: Progress) -> None:
        nonlocal last
        is_due = time.monotonic() - last >= (_ON_TERMINAL_S if on_terminal else _IN_LOG_S)
        if is_due or (on_terminal and progress.done == progress.total):
            print(f"\r\x1b[Kbusbound: {progress}" if on_terminal else f"busbound: {progress}", file=out, flush=True,
                  end="" if on_terminal else "\n")
            last = time.monotonic()

    try:
        yield report
    finally:
        if on_terminal:
            print("\r\x1b[K", file=out, flush=True, end="")
