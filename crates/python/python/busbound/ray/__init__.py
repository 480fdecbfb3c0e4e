"""Thousands of ranks on many nodes: each trace is read on its own node, and only summaries are sent.

>>> import busbound
>>> fleet = busbound.ray.diagnose("/scratch/job-7/rank*.json.gz", address="auto")
>>> print(fleet)

Needs Ray on this machine and on the nodes: ``pip install 'busbound[ray]'``. See docs/ranks.md.
"""

from __future__ import annotations

try:
    import ray  # noqa: F401
except ImportError as error:
    raise ImportError("busbound.ray needs Ray: pip install 'busbound[ray]'") from error

from ._diagnose import diagnose
from ._progress import Progress

__all__ = ["Progress", "diagnose"]
