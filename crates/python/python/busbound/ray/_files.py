"""Which traces are there, and which nodes have them?"""

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

    #: Files that could not be read, with why.
    Unread = list[tuple[str, str]]

#: torch.profiler's traces pack to a sixteenth, about.
_PACKED = 16
#: A node whose storage hangs is not waited for longer; after the first of these it is named.
_NAMED_AFTER_S, _GIVEN_UP_AFTER_S = 15.0, 120.0
#: What one node knows of a file that another has just written comes with some delay.
_LOOK_AGAIN_AFTER_S = 2.0
#: A file that changed so lately may be changing still.
_LATELY_S = 60.0


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
        """What reading it takes, about."""
        packed = self.name.endswith(".gz")
        return _native.memory_for(self.size * (_PACKED if packed else 1))


def find(
    paths: list[str], nodes: Nodes, storage_options: dict[str, Any], say: Callable[[str], None]
) -> tuple[list[File], Unread]:
    """The files in order of their names, each once; and what was asked for and is not there."""
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
    # Asked even without paths: what they have of busbound must be the same.
    files, missing = _find_local(local, nodes, say)
    files = [File(one, one.size, None) for one in remote.values()] + files
    unread += missing
    if not files:
        why = min(unread)[1] if unread else "no paths are given"
        raise _native.BusboundError(f"{why} (asked {len(nodes.alive())} node{'' if len(nodes.alive()) == 1 else 's'})")
    return files, unread


def _on_nodes(path: str) -> str | None:
    """The path of what lies on the nodes themselves; `None` where it is an address of something else."""
    for protocol in ("file://", "local://"):
        path = path.removeprefix(protocol)
    if is_address(path):
        return None
    # Processes of the nodes are in folders of their own: what is meant is what it means here. A home is each node's own.
    return path if path.startswith("~") else os.path.abspath(path)


def _find_local(paths: list[str], nodes: Nodes, say: Callable[[str], None]) -> tuple[list[File], Unread]:
    alive = dict(nodes.alive())
    listings, unread = _ask(alive, paths, say)
    holders = _holders(listings)
    unread += _settle(holders, alive, say)
    for path in paths:
        if listings and all(path in listing.nothing for listing in listings.values()):
            unread.append((path, next(iter(listings.values())).nothing[path]))
    seen = {file.path for file in holders}
    lost = {name: why for listing in listings.values() for name, why in listing.lost.items() if name not in seen}
    unread += [(name, f"{name}: {why}" if name not in why else why) for name, why in lost.items()]
    # Where several nodes have traces of their own, each made those it has. One alone may be where somebody gathered them.
    owners = {next(iter(ids)) for ids in holders.values() if len(ids) == 1}
    apart = len(listings) > 1 and len(owners) > 1
    files = []
    for file in sorted(holders, key=lambda file: file.path):
        ids = holders[file]
        host = alive[next(iter(ids))].host if apart and len(ids) == 1 else None
        files.append(File(file.path, file.size, None if len(ids) == len(alive) else frozenset(ids), host))
    return files, unread


def _holders(listings: dict[str, Listing]) -> dict[Found, set[str]]:
    holders: dict[Found, set[str]] = {}
    for id, listing in listings.items():
        for file in listing.found:
            holders.setdefault(file, set()).add(id)
    return holders


def _settle(holders: dict[Found, set[str]], alive: dict[str, Node], say: Callable[[str], None]) -> Unread:
    """Nodes may see a shared file as it was some seconds ago: those that differ are looked at again before they count as two."""
    by_place: dict[str, list[Found]] = defaultdict(list)
    for file in holders:
        by_place[file.place].append(file)
    unsettled = {place for place, files in by_place.items() if len(files) > 1}
    if not unsettled:
        return []
    time.sleep(_LOOK_AGAIN_AFTER_S)
    asked = {id: alive[id] for file, ids in holders.items() if file.place in unsettled for id in ids}
    again, unread = _ask(asked, sorted(unsettled), say)
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


def _ask(alive: dict[str, Node], paths: list[str], say: Callable[[str], None]) -> tuple[dict[str, Listing], Unread]:
    """Every node, what it has."""
    ask = ray.remote(num_cpus=0, max_retries=0)(list_files)
    under_way: dict[Any, str] = {
        ask.options(scheduling_strategy=NodeAffinitySchedulingStrategy(id, soft=False)).remote(paths): id for id in alive
    }
    listings: dict[str, Listing] = {}
    unread: Unread = []
    began, is_named = time.monotonic(), False
    while under_way and time.monotonic() - began < _GIVEN_UP_AFTER_S:
        for answer in ray.wait(list(under_way), num_returns=len(under_way), timeout=0.5)[0]:
            id = under_way.pop(answer)
            try:
                listings[id] = ray.get(answer)
            except ray.exceptions.RayError as error:
                unread.append((alive[id].host, _no_answer(error, alive[id])))
        if under_way and not is_named and time.monotonic() - began > _NAMED_AFTER_S:
            say(f"waiting for {', '.join(sorted({alive[id].host for id in under_way.values()}))} to list files")
            is_named = True
    for answer, id in under_way.items():
        unread.append((alive[id].host, f"{alive[id].host} did not answer; traces that only it has are missing"))
        ray.cancel(answer, force=True)
    for id, listing in listings.items():
        if listing.version != _native.VERSION:
            raise _native.BusboundError(
                f"{alive[id].host} has busbound {listing.version}, this machine {_native.VERSION}: install the same on all"
            )
    return listings, unread


def _no_answer(error: Exception, node: Node) -> str:
    """Why a node does not tell; raised where that is no matter of the node being away."""
    gone = (ray.exceptions.NodeDiedError, ray.exceptions.TaskUnschedulableError, ray.exceptions.WorkerCrashedError)
    if isinstance(error, gone):
        return f"{node.host} went away; traces that only it has are missing"
    if "No module named 'busbound" in str(error):
        raise _native.BusboundError(
            f"{node.host} has no busbound {_native.VERSION}: install the wheel there, or give "
            f"runtime_env={{'pip': ['busbound=={_native.VERSION}']}}"
        ) from error
    raise _native.BusboundError(f"{node.host} cannot be asked: {in_words(error)}") from error
