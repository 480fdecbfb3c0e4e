"""``diagnose``, and the connection to the cluster."""

from __future__ import annotations

import contextlib
import logging
import os

import ray

from .. import _native
from .._options import checked
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


@checked
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
    """How do the ranks of these traces differ? Same result as ``busbound.merge`` of all their summaries.

    Args:
        paths: Files, directories and patterns (``"/scratch/job-7/rank*.json.gz"``). Every node lists its files: any node reads
            a file that all nodes see; a file on a node's local disk is read there. Any node reads fsspec addresses
            (``"s3://traces/rank*.json.gz"``).
        address: Of the cluster, same as in ``ray.init``. Default: the current connection, otherwise the cluster that
            ``ray.init`` finds, otherwise a new one on this machine's cores.
        machine: As in ``Trace.diagnose``; a profile is read here and sent to the nodes.
        steps: As in ``Trace.diagnose``.
        warmup: As in ``Trace.diagnose``.
        topology: As in ``busbound.merge``.
        retries: How often to retry a trace if the node, the process or the storage fails. Traces that cannot be read are in
            ``unread`` of the result, with the reason; the others are still analyzed.
        progress: True for standard error; or a function that is called with a ``Progress`` whenever a trace is done or
            retried, and every few seconds while none is; or False.
        storage_options: For fsspec, same as in ``fsspec.open``.
        runtime_env: For Ray, if nodes do not have busbound: ``{"pip": [f"busbound=={busbound.__version__}"]}``.

    Returns:
        How the ranks differ, with the traces that could not be read.

    Raises:
        BusboundError: No traces are found, or none can be read.
    """
    wanted = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    question = Question.of(machine, steps, warmup, topology)
    with _connected(address, runtime_env), reporter(progress) as report:
        nodes = Nodes()
        files, missing = find([os.fspath(path) for path in wanted], nodes, dict(storage_options or {}), report.show)
        fleet, unread = Driver(nodes, question, retries, report).run(files)
    unread = [(_as_text(path), _as_text(why)) for path, why in missing + unread]
    if not fleet:
        _, why = min(unread)
        raise _native.BusboundError(f"none of {len(files)} traces could be read; {why}")
    return merge([_native.combine([fleet], unread)], topology=topology)


def _as_text(name: str) -> str:
    """A name as valid text: file names can contain any bytes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


@contextlib.contextmanager
def _connected(address: str | None, runtime_env: Mapping[str, Any] | None) -> Iterator[None]:
    """Connects to the cluster; an existing connection stays open."""
    if ray.is_initialized():
        if address is not None or runtime_env is not None:
            raise _native.BusboundError(
                "Ray is already connected: pass address and runtime_env to ray.init, or call ray.shutdown first"
            )
        yield
        return
    ray.init(address=address, runtime_env=dict(runtime_env) if runtime_env else None, logging_level=logging.WARNING)
    try:
        yield
    finally:
        ray.shutdown()
