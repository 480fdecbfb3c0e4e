"""What a process runs with: versions, variables and CPUs, for the trace. No tokens, paths, hosts or command lines."""

from __future__ import annotations

import os
import platform
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

#: Variables that change how PyTorch, CUDA and NCCL run.
_PREFIXES = ("NCCL_", "CUDA_", "PYTORCH_", "TORCH_")
_NAMES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
#: Different on every rank, so that they say nothing.
_OF_RANK = ("CUDA_VISIBLE_DEVICES",)
_SECRET = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "API_KEY")
_LONGEST = 200
_MOST = 200


def environment() -> dict[str, Any]:
    """The environment of this process, as the reader of traces takes it."""
    return {"versions": _versions(), "variables": variables(os.environ), "cpus": _cpus(), "memory": _memory()}


def variables(all_of_them: Mapping[str, str]) -> dict[str, str]:
    """The variables that are kept. Of a path, only that it is set."""
    kept = sorted(name for name in all_of_them if _is_kept(name))
    return {name: _without_path(all_of_them[name]) for name in kept[:_MOST]}


def _is_kept(name: str) -> bool:
    if name in _OF_RANK or any(word in name.upper() for word in _SECRET):
        return False
    return name in _NAMES or name.startswith(_PREFIXES)


def _without_path(value: str) -> str:
    if "/" in value or "\\" in value:
        return "(a path)"
    return value[:_LONGEST]


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    torch = sys.modules.get("torch")
    version = getattr(torch, "__version__", None)
    if version is not None:
        versions["torch"] = str(version)
    return versions


def _cpus() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count()


def _memory() -> int | None:
    """Bytes of host memory that the process may use: the machine's, or what its control group allows."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    try:
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit:
            return min(total, int(limit.read()))
    except (OSError, ValueError):
        return total
