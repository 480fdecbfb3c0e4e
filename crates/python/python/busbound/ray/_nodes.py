"""Which nodes are alive?"""

from __future__ import annotations

import time
from dataclasses import dataclass

import ray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A cluster changes slowly, and the query is slow.
_LOOK_EVERY_S = 1.0
#: A node that failed gets no work for this long: Ray needs some seconds to notice a dead node.
_AVOIDED_S = 5.0


@dataclass(frozen=True)
class Node:
    id: str
    host: str
    cpus: float
    memory: float


class Nodes:
    """The nodes that are alive, refreshed regularly."""

    def __init__(self) -> None:
        self._known: dict[str, Node] = {}
        self._looked = 0.0
        self._avoided: dict[str, float] = {}

    def alive(self) -> dict[str, Node]:
        if time.monotonic() - self._looked > _LOOK_EVERY_S:
            nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call, unused-ignore]
            self._known = {one["NodeID"]: _node(one) for one in nodes if one["Alive"]}
            self._looked = time.monotonic()
        return self._known

    def fit(self) -> dict[str, Node]:
        """The nodes that did not fail recently."""
        now = time.monotonic()
        return {id: node for id, node in self.alive().items() if self._avoided.get(id, 0.0) <= now}

    def avoid(self, id: str) -> None:
        self._avoided[id] = time.monotonic() + _AVOIDED_S


def _node(info: dict[str, Any]) -> Node:
    resources = info["Resources"]
    host = info.get("NodeManagerHostname") or info["NodeManagerAddress"]
    return Node(info["NodeID"], host, resources.get("CPU", 0.0), resources.get("memory", 0.0))
