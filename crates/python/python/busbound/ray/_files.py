"""Which traces exist, and on which nodes?"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from .. import _native
from .._remote import RemoteFile, is_address, remote_files
from ._tasks import Found, Listing, list_files
from ._words import in_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._nodes import Node, Nodes

    #: Files that could not be read, with the reason.
    Unread = list[tuple[str, str]]

#: Approximate compression ratio of torch.profiler's traces.
_PACKED = 16
#: A node whose storage hangs is named after the first of these times and given up on after the second.
_NAMED_AFTER_S, _GIVEN_UP_AFTER_S = 15.0, 120.0
#: On shared storage, a node sees the changes of other nodes with some delay.
_LOOK_AGAIN_AFTER_S = 2.0
#: A file that changed this recently may still be changing.
_LATELY_S = 60.0


@dataclass
class File:
    """A trace, local or remote."""

    source: str | RemoteFile
    #: Bytes, compressed if the file is.
    size: int
    #: Nodes that have it; `None` if any node can read it.
    holders: frozenset[str] | None
    #: The host of its rank, if its location shows that.
    host: str | None = None
    attempts: int = 0
    #: How often each node failed with it.
    failed_on: Counter[str] = field(default_factory=Counter)

    @property
    def path(self) -> str:
        return self.source.name if isinstance(self.source, RemoteFile) else self.source

    @property
    def name(self) -> str:
        return f"{self.host}:{self.path}" if self.host else self.path

    @property
    def memory(self) -> int:
        """Approximate memory needed to read it."""
        packed = self.name.endswith(".gz")
        return _native.memory_for(self.size * (_PACKED if packed else 1))


def find(
    paths: list[str], nodes: Nodes, storage_options: dict[str, Any], show: Callable[[str], None]
) -> tuple[list[File], Unread]:
    """The files in order of their names, each once, and the paths that do not exist."""
    local: list[str] = []
    remote: dict[tuple[Any, str], RemoteFile] = {}
    unread: Unread = []
    for path in paths:
        on_nodes = _on_nodes(path)
        if on_nodes is not None:
            local.append(on_nodes)
            continue
        try:
            remote.update({(one.fs, one.path): one for one in remote_files(path, storage_options)})
        except _native.BusboundError as error:
            unread.append((path, str(error)))
    # Nodes are asked even without paths: all must have the same version of busbound.
    files, missing = _find_local(local, nodes, show)
    files = [File(one, one.size, None) for one in remote.values()] + files
    unread += missing
    if not files:
        why = min(unread)[1] if unread else "no paths given"
        raise _native.BusboundError(f"{why} (asked {len(nodes.alive())} node{'' if len(nodes.alive()) == 1 else 's'})")
    return files, unread


def _on_nodes(path: str) -> str | None:
    """The path, if it is on the nodes themselves; `None` for other addresses."""
    for protocol in ("file://", "local://"):
        path = path.removeprefix(protocol)
    if is_address(path):
        return None
    # Node processes have other working directories, so relative paths are resolved here. `~` is each node's own home.
    return path if path.startswith("~") else os.path.abspath(path)


def _find_local(paths: list[str], nodes: Nodes, show: Callable[[str], None]) -> tuple[list[File], Unread]:
    alive = dict(nodes.alive())
    listings, unread = _ask(alive, paths, show)
    holders = _holders(listings)
    unread += _settle(holders, alive, show)
    for path in paths:
        if listings and all(path in listing.nothing for listing in listings.values()):
            unread.append((path, next(iter(listings.values())).nothing[path]))
    seen = {file.path for file in holders}
    lost = {name: why for listing in listings.values() for name, why in listing.lost.items() if name not in seen}
    unread += [(name, f"{name}: {why}" if name not in why else why) for name, why in lost.items()]
    # If several nodes have local traces, each wrote its own. A single node may be where traces were collected.
    owners = {next(iter(ids)) for ids in holders.values() if len(ids) == 1}
    is_distributed = len(listings) > 1 and len(owners) > 1
    files = []
    for file in sorted(holders, key=lambda file: file.path):
        ids = holders[file]
        host = alive[next(iter(ids))].host if is_distributed and len(ids) == 1 else None
        files.append(File(file.path, file.size, None if len(ids) == len(alive) else frozenset(ids), host))
    return files, unread


def _holders(listings: dict[str, Listing]) -> dict[Found, set[str]]:
    holders: dict[Found, set[str]] = {}
    for id, listing in listings.items():
        for file in listing.found:
            holders.setdefault(file, set()).add(id)
    return holders


def _settle(holders: dict[Found, set[str]], alive: dict[str, Node], show: Callable[[str], None]) -> Unread:
    """Nodes may see an old state of a shared file: files that differ are checked again before they count as two."""
    by_place: dict[str, list[Found]] = defaultdict(list)
    for file in holders:
        by_place[file.place].append(file)
    unsettled = {place for place, files in by_place.items() if len(files) > 1}
    if not unsettled:
        return []
    time.sleep(_LOOK_AGAIN_AFTER_S)
    asked = {id: alive[id] for file, ids in holders.items() if file.place in unsettled for id in ids}
    again, unread = _ask(asked, sorted(unsettled), show)
    for file in [file for file in holders if file.place in unsettled]:
        del holders[file]
    now = _holders(again)
    by_place.clear()
    for file in now:
        by_place[file.place].append(file)
    for files in by_place.values():
        newest = max(files, key=lambda file: file.modified_ns)
        is_growing = len({file.inode for file in files}) == 1 and time.time_ns() - newest.modified_ns < _LATELY_S * 1e9
        if len(files) > 1 and is_growing:
            holders[newest] = {id for file in files for id in now[file]}
        else:
            holders.update({file: now[file] for file in files})
    return unread


def _ask(alive: dict[str, Node], paths: list[str], show: Callable[[str], None]) -> tuple[dict[str, Listing], Unread]:
    """Asks every node for its files."""
    ask = ray.remote(num_cpus=0, max_retries=0)(list_files)
    in_flight: dict[Any, str] = {
        ask.options(scheduling_strategy=NodeAffinitySchedulingStrategy(id, soft=False)).remote(paths): id for id in alive
    }
    listings: dict[str, Listing] = {}
    unread: Unread = []
    began, is_named = time.monotonic(), False
    while in_flight and time.monotonic() - began < _GIVEN_UP_AFTER_S:
        for answer in ray.wait(list(in_flight), num_returns=len(in_flight), timeout=0.5)[0]:
            id = in_flight.pop(answer)
            try:
                listings[id] = ray.get(answer)
            except ray.exceptions.RayError as error:
                unread.append((alive[id].host, _no_answer(error, alive[id])))
        if in_flight and not is_named and time.monotonic() - began > _NAMED_AFTER_S:
            show(f"waiting for {', '.join(sorted({alive[id].host for id in in_flight.values()}))} to list files")
            is_named = True
    for answer, id in in_flight.items():
        unread.append((alive[id].host, f"{alive[id].host} did not answer; traces that are only on this node are missing"))
        ray.cancel(answer, force=True)
    for id, listing in listings.items():
        if listing.version != _native.VERSION:
            raise _native.BusboundError(
                f"{alive[id].host} has busbound {listing.version}, this machine {_native.VERSION}: install the same version on all nodes"
            )
    return listings, unread


def _no_answer(error: Exception, node: Node) -> str:
    """Why a node did not answer; raises unless the node is gone."""
    gone = (ray.exceptions.NodeDiedError, ray.exceptions.TaskUnschedulableError, ray.exceptions.WorkerCrashedError)
    if isinstance(error, gone):
        return f"{node.host} is gone; traces that are only on this node are missing"
    if "No module named 'busbound" in str(error):
        raise _native.BusboundError(
            f"{node.host} does not have busbound {_native.VERSION}: install the wheel there, or pass "
            f"runtime_env={{'pip': ['busbound=={_native.VERSION}']}}"
        ) from error
    raise _native.BusboundError(f"{node.host} cannot list its files: {in_words(error)}") from error
