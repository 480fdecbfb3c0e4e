"""The call, and the cluster it is made to."""

from __future__ import annotations

import contextlib
import logging
import os

import ray

from .. import _native
from .._trace import merge
from ._driver import Driver
from ._files import find
from ._nodes import Nodes
from ._progress import reporter
from ._tasks import Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from .._trace import Path
    from ..results import FleetAnswer
    from ._progress import Progress


def diagnose(
    paths: Path | Sequence[Path],
    *,
    address: str | None = None,
    machine: Path | None = None,
    steps: str | None = None,
    warmup: int | None = None,
    topology: Path | None = None,
    retries: int = 5,
    progress: bool | Callable[[Progress], None] = True,
    storage_options: Mapping[str, Any] | None = None,
    runtime_env: Mapping[str, Any] | None = None,
) -> FleetAnswer:
    """How do the ranks differ whose traces these are? What ``busbound.merge`` says of all their summaries.

    paths: files, directories and patterns (``"/scratch/job-7/rank*.json.gz"``). Every node is asked which it has: a file that
        all of them see is read by any of them, one on a node's own disk is read there. Addresses that fsspec knows
        (``"s3://traces/rank*.json.gz"``) are read by any.
    address: of the cluster, as ``ray.init`` takes it. Without it the one that is connected to already, else what
        ``ray.init`` finds, else one of this machine's cores.
    machine, steps, warmup: as in ``Trace.diagnose``; a profile is read here and sent along.
    topology: as in ``busbound.merge``.
    retries: how often a trace is tried again when the node, the process or the storage fails under it. One that cannot be read
        is in the answer's ``unread`` with the reason, and the rest goes on.
    progress: to standard error; or a function that is called with a ``Progress`` whenever a trace is done or tried again, and now and
        then while none is; or False.
    storage_options: for fsspec, as in ``fsspec.open``.
    runtime_env: for Ray, where nodes lack busbound: ``{"pip": [f"busbound=={busbound.__version__}"]}``.

    Raises BusboundError where nothing is found, or nothing of it can be read.
    """
    wanted = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    question = Question.of(machine, steps, warmup, topology)
    with _connected(address, runtime_env), reporter(progress) as report:
        nodes = Nodes()
        files, missing = find([os.fspath(path) for path in wanted], nodes, dict(storage_options or {}), report.say)
        fleet, unread = Driver(nodes, question, retries, report).run(files)
    unread = [(_as_text(path), _as_text(why)) for path, why in missing + unread]
    if not fleet:
        _, why = min(unread)
        raise _native.BusboundError(f"none of {len(files)} traces could be read; {why}")
    return merge([_native.combine([fleet], unread)], topology=topology)


def _as_text(name: str) -> str:
    """A name as it can be written down: files may be called anything."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@contextlib.contextmanager
def _connected(address: str | None, runtime_env: Mapping[str, Any] | None) -> Iterator[None]:
    """To the cluster; a connection that was there before stays."""
    if ray.is_initialized():
        if address is not None or runtime_env is not None:
            raise _native.BusboundError(
                "Ray is connected already: give address and runtime_env to ray.init, or call ray.shutdown first"
            )
        yield
        return
    ray.init(address=address, runtime_env=dict(runtime_env) if runtime_env else None, logging_level=logging.WARNING)
    try:
        yield
    finally:
        ray.shutdown()
