"""What runs on the nodes. Nothing here knows of the cluster."""

from __future__ import annotations

import os
import tempfile
import zlib
from dataclasses import dataclass

from .. import _native
from .._remote import RemoteFile
from .._trace import Trace, read, summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

    from .._trace import Path

    #: What went wrong, and whether it may go better another time; or nothing.
    Trouble = Optional[tuple[str, bool]]


@dataclass(frozen=True)
class Found:
    """A file as a node sees it. Files of one path that agree in all of this are one, on storage that nodes share."""

    path: str
    size: int
    modified_ns: int


@dataclass(frozen=True)
class Question:
    """What every trace is asked."""

    machine: str | None
    #: The text of a profile, which lies where the question is put and nowhere else.
    profile: str | None
    steps: str | None
    warmup: int | None

    @classmethod
    def of(cls, machine: Path | None, steps: str | None, warmup: int | None) -> Question:
        machine = None if machine is None else os.fspath(machine)
        _native.check(machine, steps)
        if machine is None or not machine.endswith(".json"):
            return cls(machine, None, steps, warmup)
        try:
            with open(machine, encoding="utf-8") as file:
                return cls(None, file.read(), steps, warmup)
        except OSError as error:
            raise _native.BusboundError(f"{machine}: {error.strerror}") from error

    def summary_of(self, trace: Trace, host: str | None) -> str:
        with tempfile.TemporaryDirectory(prefix="busbound-") as folder:
            machine = self.machine
            if self.profile is not None:
                machine = os.path.join(folder, "machine.json")
                with open(machine, "w", encoding="utf-8") as file:
                    file.write(self.profile)
            diagnosis = trace.diagnose(machine=machine, steps=self.steps, warmup=self.warmup)
        summary = summarize(diagnosis)
        # The file's name may tell the host where the trace was made; that is better than where it lies.
        return (summary if summary.host else summarize(diagnosis, host=host)).to_json()


def list_files(paths: list[str]) -> tuple[str, list[Found], list[str]]:
    """What the paths stand for on this node; with its version, and why a path stands for nothing."""
    found, troubles = [], []
    for path in paths:
        try:
            for name in _native.traces_in([os.path.expanduser(path)]):
                told = os.stat(name)
                found.append(Found(os.fspath(name), told.st_size, told.st_mtime_ns))
        except (_native.BusboundError, OSError) as error:
            troubles.append(str(error))
    return _native.VERSION, found, troubles


def summarize_file(file: str | RemoteFile, host: str | None, question: Question) -> tuple[Trouble, bytes]:
    """A rank's summary, packed; or what went wrong."""
    try:
        if isinstance(file, RemoteFile):
            with file.fetched() as path:
                trace = read(path, file.name, 1)
        else:
            os.stat(file)
            # One core: as many tasks run on a node as it has.
            trace = read(file, None, 1)
        return None, pack(question.summary_of(trace, host))
    except _native.BusboundError as error:
        return (str(error), False), b""
    except Exception as error:  # noqa: BLE001: storage fails in ways of its own, and one file is not all of them
        return (f"{type(error).__name__}: {error}", True), b""


def combine(*packed: bytes) -> bytes:
    """Summaries as one."""
    return pack(_native.combine([unpack(one) for one in packed], []))


def pack(text: str) -> bytes:
    return zlib.compress(text.encode())


def unpack(packed: bytes) -> str:
    return zlib.decompress(packed).decode()
