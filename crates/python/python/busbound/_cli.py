"""The ``busbound`` command in the wheel: the same code as the standalone program."""

from __future__ import annotations

import os
import signal
import sys

from . import _native


def main() -> None:
    # Python would handle Ctrl-C only after the command ends.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.stdout.flush()
    code = _native.run_command(["busbound", *sys.argv[1:]])
    # Python has no buffered output left, and a closed pipe should not print an error.
    os._exit(code)
