"""The command ``busbound`` inside the wheel: the same code as the program of that name."""

from __future__ import annotations

import os
import signal
import sys

from . import _native


def main() -> None:
    # Python would only note a Ctrl-C, and act on it when the command has ended.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    code = _native.run_command(["busbound", *sys.argv[1:]])
    # Nothing of Python's is left to write, and what a closed pipe could not take is not worth a message.
    os._exit(code)
