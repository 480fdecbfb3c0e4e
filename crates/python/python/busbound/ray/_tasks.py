"""The code that runs on the nodes."""

from __future__ import annotations

import contextlib
import os
import tempfile
import zlib
from dataclasses import dataclass, field

from .. import _native
from .._remote import RemoteFile
from .._trace import Trace, read, summarize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._trace import Path


@dataclass(frozen=True)
class Found:
    """A file as a node sees it. Files with the same place, size and time are one file on shared storage."""

    #: The real path, without links: one file may have several names.
    place: str
    size: int
    modified_ns: int
    path: str = field(compare=False)
    inode: int = field(compare=False)


@dataclass(frozen=True)
class Listing:
    """The files of the paths on a node."""

    version: str
    found: list[Found]
    #: Paths without files on the node, and files that cannot be accessed, with the reason.
    nothing: dict[str, str]
    lost: dict[str, str]


@dataclass(frozen=True)
class Trouble:
    """Why a trace failed."""

    why: str
    is_retryable: bool
    node: str
    #: Whether there is still a summary of a part of the trace.
    has_part: bool = False


@dataclass(frozen=True)
class Question:
    """The analysis options for every trace."""

    machine: str | None
    #: The text of a profile, because its file is only on the driver's machine.
    profile: str | None
    steps: str | None
    warmup: int | None

    @classmethod
    def of(cls, machine: Path | None, steps: str | None, warmup: int | None, topology: Path | None) -> Question:
        """Checks all options before thousands of traces are read."""
        machine = None if machine is None else os.fspath(machine)
        _native.check(machine, steps, topology)
        if warmup is not None and warmup < 0:
            raise _native.BusboundError("warmup must be a number of steps, 0 or more")
        if machine is None or not machine.endswith(".json"):
            return cls(machine, None, steps, warmup)
        with open(machine, encoding="utf-8") as file:
            return cls(None, file.read(), steps, warmup)

    @contextlib.contextmanager
    def machine_here(self) -> Iterator[str | None]:
        if self.profile is None:
            yield self.machine
            return
        with tempfile.TemporaryDirectory(prefix="busbound-") as folder:
            path = os.path.join(folder, "machine.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.profile)
            yield path

    def summary_of(self, trace: Trace, host: str | None) -> str:
        with self.machine_here() as machine:
            diagnosis = trace.diagnose(machine=machine, steps=self.steps, warmup=self.warmup)
        summary = summarize(diagnosis)
        # A host from the file name is where the trace was recorded; prefer it to where the file is now.
        if host is not None and summary.host is None:
            summary = summarize(diagnosis, host=host)
        return summary.to_json()


def list_files(paths: list[str]) -> Listing:
    """The files of the paths on this node."""
    found: dict[str, Found] = {}
    nothing, lost = {}, {}
    for path in paths:
        try:
            names = _native.traces_in([os.path.expanduser(path)])
        except _native.BusboundError as error:
            nothing[path] = str(error)
            continue
        for name in map(os.fspath, names):
            try:
                place, info = os.path.realpath(name), os.stat(name)
                found.setdefault(place, Found(place, info.st_size, info.st_mtime_ns, name, info.st_ino))
            except OSError as error:
                lost[name] = str(error)
    return Listing(_native.VERSION, list(found.values()), nothing, lost)


def summarize_file(file: str | RemoteFile, host: str | None, question: Question) -> tuple[Trouble | None, bytes]:
    """The compressed summary of a rank, or the reason why there is none."""
    name = file.name if isinstance(file, RemoteFile) else file
    local = name
    try:
        # One thread: a node runs as many tasks as it has cores.
        if isinstance(file, RemoteFile):
            with file.fetched() as local:
                trace = read(local, name, 1)
        else:
            trace = read(name, None, 1)
        summary = pack(question.summary_of(trace, host))
        if trace._native.lost_to_storage:
            return Trouble(f"{name}: the storage failed while it was read", True, _this_node(), has_part=True), summary
        return None, summary
    # Storage backends raise many kinds of errors, and one bad file must not stop the others.
    except Exception as error:  # noqa: BLE001
        is_final = isinstance(error, (ImportError, TypeError, ValueError)) or (
            isinstance(error, _native.BusboundError) and not isinstance(error, _native.StorageError)
        )
        why = str(error) if isinstance(error, _native.BusboundError) else f"{name}: {type(error).__name__}: {error}"
        # The name of the temporary copy would confuse people.
        return Trouble(why.replace(local, name), not is_final, _this_node()), b""


def _this_node() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


def combine(*packed: bytes) -> bytes:
    """Combines summaries into one."""
    return pack(_native.combine([unpack(one) for one in packed], []))


def pack(text: str) -> bytes:
    return zlib.compress(text.encode())


def unpack(packed: bytes) -> str:
    return zlib.decompress(packed).decode()
