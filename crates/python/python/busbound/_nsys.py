"""Reports of Nsight Systems that only its own nsys reads: exported where that is installed.

The command does the same in Rust, and listens for signals meanwhile; here they are the interpreter's.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile

from . import _native

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def exported(report: str) -> Iterator[str]:
    """The report as a database for as long as it is read; as it is where there is no nsys, and reading says what to do."""
    nsys = shutil.which("nsys")
    if nsys is None or not os.path.isfile(report):
        yield report
        return
    with tempfile.TemporaryDirectory(prefix="busbound-") as folder:
        database = os.path.join(folder, "exported.sqlite")
        # No name of a file reads as an option.
        command = [nsys, "export", "--type", "sqlite", "-o", database, os.path.abspath(report)]
        run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if run.returncode != 0 or not os.path.isfile(database):
            said = [line.strip() for line in run.stdout.decode(errors="replace").splitlines() if line.strip()]
            raise _native.BusboundError(
                f"{report}: nsys could not export it: {said[-1] if said else 'it did not say why'}"
            )
        yield database
