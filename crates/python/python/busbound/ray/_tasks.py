"""What runs on the nodes."""

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
    """A file as a node sees it. Files that agree in place, size and time are one, on storage that nodes share."""

    #: Without links: one file may have several names.
    place: str
    size: int
    modified_ns: int
    path: str = field(compare=False)
    inode: int = field(compare=False)


@dataclass(frozen=True)
class Listing:
    """What paths stand for on a node."""

    version: str
    found: list[Found]
    #: Paths that stand for nothing there, and names that lead nowhere, with why.
    nothing: dict[str, str]
    lost: dict[str, str]


@dataclass(frozen=True)
class Trouble:
    """What went wrong with a trace."""

    why: str
    may_go_better: bool
    node: str
    #: Whether there is a summary all the same, of a part.
    has_part: bool = False


@dataclass(frozen=True)
class Question:
    """What every trace is asked."""

    machine: str | None
    #: The text of a profile, which lies where the question is put and nowhere else.
    profile: str | None
    steps: str | None
    warmup: int | None

    @classmethod
    def of(cls, machine: Path | None, steps: str | None, warmup: int | None, topology: Path | None) -> Question:
        """With everything checked that can be before a thousand traces are read."""
        machine = None if machine is None else os.fspath(machine)
        _native.check(machine, steps, topology)
        if warmup is not None and warmup < 0:
            raise _native.BusboundError("warmup is a number of steps, 0 or more")
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
        # The file's name may tell the host where the trace was made; that is better than where it lies.
        if host is not None and summary.host is None:
            summary = summarize(diagnosis, host=host)
        return summary.to_json()


def list_files(paths: list[str]) -> Listing:
    """What the paths stand for on this node."""
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
                place, told = os.path.realpath(name), os.stat(name)
                found.setdefault(place, Found(place, told.st_size, told.st_mtime_ns, name, told.st_ino))
            except OSError as error:
                lost[name] = str(error)
    return Listing(_native.VERSION, list(found.values()), nothing, lost)


def summarize_file(file: str | RemoteFile, host: str | None, question: Question) -> tuple[Trouble | None, bytes]:
    """A rank's summary, packed; or what went wrong."""
    name = file.name if isinstance(file, RemoteFile) else file
    local = name
    try:
        # One core: as many tasks run on a node as it has.
        if isinstance(file, RemoteFile):
            with file.fetched() as local:
                trace = read(local, name, 1)
        else:
            trace = read(name, None, 1)
        summary = pack(question.summary_of(trace, host))
        if trace._native.lost_to_storage:
            return Trouble(f"{name}: the storage failed in the middle of it", True, _this_node(), has_part=True), summary
        return None, summary
    # Storage fails in ways of its own, and one file is not all of them.
    except Exception as error:  # noqa: BLE001
        is_final = isinstance(error, (ImportError, TypeError, ValueError)) or (
            isinstance(error, _native.BusboundError) and not isinstance(error, _native.StorageError)
        )
        why = str(error) if isinstance(error, _native.BusboundError) else f"{name}: {type(error).__name__}: {error}"
        # A copy's name means nothing to anybody.
        return Trouble(why.replace(local, name), not is_final, _this_node()), b""


def _this_node() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


def combine(*packed: bytes) -> bytes:
    """Summaries as one."""
    return pack(_native.combine([unpack(one) for one in packed], []))


def pack(text: str) -> bytes:
    return zlib.compress(text.encode())


def unpack(packed: bytes) -> str:
    return zlib.decompress(packed).decode()
