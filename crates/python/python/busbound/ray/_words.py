"""Short messages for cluster errors; Ray's own are pages long."""

from __future__ import annotations

import re

import ray


def in_words(error: Exception) -> str:
    kind = {
        ray.exceptions.NodeDiedError: "the node died while it was read",
        ray.exceptions.WorkerCrashedError: "the process that read it died",
        ray.exceptions.OutOfMemoryError: "the node ran out of memory while it was read",
        ray.exceptions.TaskUnschedulableError: "the node that had it is gone",
    }.get(type(error))
    if kind:
        return kind
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    # A traceback ends with the error; other messages begin with it.
    return lines[-1] if isinstance(error, ray.exceptions.RayTaskError) else f"{type(error).__name__}: {lines[0]}"


def is_final(error: Exception) -> bool:
    """Whether a retry cannot help: a missing package, a wrong call."""
    return isinstance(error, (ray.exceptions.RayTaskError, ray.exceptions.RuntimeEnvSetupError))
