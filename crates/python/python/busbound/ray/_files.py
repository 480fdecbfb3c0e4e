"""Which traces are there, and which nodes have them?"""

from __future__ import annotations

from dataclasses import dataclass, field

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from .. import _native
from .._remote import RemoteFile, is_address, remote_files
from ._tasks import Found, list_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._nodes import Nodes

#: torch.profiler's traces pack to a sixteenth, about.
_PACKED = 16


@dataclass
class File:
    """A trace, wherever it is."""

    source: str | RemoteFile
    #: Bytes, as it lies there.
    size: int
    #: Nodes that have it; any node can read it where this is `None`.
    holders: frozenset[str] | None
    #: Where its rank ran, as far as where it lies tells.
    host: str | None = None
    attempts: int = field(default=0, compare=False)

    @property
    def path(self) -> str:
        return self.source.name if isinstance(self.source, RemoteFile) else self.source

    @property
    def name(self) -> str:
        return f"{self.host}:{self.path}" if self.host else self.path

    @property
    def memory(self) -> int:
        """What reading it takes, about."""
        packed = self.name.endswith(".gz")
        return _native.memory_for(self.size * (_PACKED if packed else 1))


def find(paths: list[str], nodes: Nodes, storage_options: dict[str, Any]) -> list[File]:
    """The files in order of their names, each once."""
    remote = [one for path in paths if is_address(path) for one in remote_files(path, storage_options)]
    files = [File(one, one.size, None) for one in remote]
    local = [path for path in paths if not is_address(path)]
    if local:
        files += _find_local(local, nodes)
    return files


def _find_local(paths: list[str], nodes: Nodes) -> list[File]:
    alive = nodes.alive()
    ask = ray.remote(num_cpus=0, max_retries=0)(list_files)
    asked = {
        id: ask.options(scheduling_strategy=NodeAffinitySchedulingStrategy(id, soft=False)).remote(paths) for id in alive
    }
    holders: dict[Found, set[str]] = {}
    troubles: list[str] = []
    for id, answer in asked.items():
        try:
            version, found, why = ray.get(answer)
        except ray.exceptions.RayError as error:
            if "No module named 'busbound'" in str(error):
                raise _native.BusboundError(
                    f"{alive[id].host} has no busbound: install the wheel there, or give runtime_env={{'pip': ['busbound']}}"
                ) from error
            # A node that went meanwhile: what others have is read by them.
            troubles.append(f"{alive[id].host} did not answer")
            continue
        if version != _native.VERSION:
            raise _native.BusboundError(
                f"{alive[id].host} has busbound {version}, this machine {_native.VERSION}: install the same on all"
            )
        troubles += why
        for file in found:
            holders.setdefault(file, set()).add(id)
    if not holders:
        raise _native.BusboundError(f"{troubles[0] if troubles else 'no node answers'} (asked {len(alive)} nodes)")
    # Where several nodes have traces of their own, each made those it has. One alone may be where somebody gathered them.
    owners = {next(iter(ids)) for ids in holders.values() if len(ids) == 1}
    apart = len(alive) > 1 and len(owners) > 1
    files = []
    for file in sorted(holders, key=lambda file: file.path):
        ids = holders[file]
        host = alive[next(iter(ids))].host if apart and len(ids) == 1 else None
        files.append(File(file.path, file.size, None if len(ids) == len(alive) else frozenset(ids), host))
    return files
