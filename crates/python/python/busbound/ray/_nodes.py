"""Which nodes are there now?"""

from __future__ import annotations

import time
from dataclasses import dataclass

import ray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: A cluster changes slowly, and asking it takes a while.
_LOOK_EVERY_S = 1.0
#: One that failed is not sent anything for so long: it takes some seconds until a cluster notices that a node has died.
_AWAY_S = 5.0


@dataclass(frozen=True)
class Node:
    id: str
    host: str
    cpus: float
    memory: float


class Nodes:
    """Those that live; looked at anew now and then."""

    def __init__(self) -> None:
        self._known: dict[str, Node] = {}
        self._looked = 0.0
        self._away: dict[str, float] = {}

    def alive(self) -> dict[str, Node]:
        if time.monotonic() - self._looked > _LOOK_EVERY_S:
            told: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call, unused-ignore]
            self._known = {one["NodeID"]: _node(one) for one in told if one["Alive"]}
            self._looked = time.monotonic()
        return self._known

    def fit(self) -> dict[str, Node]:
        """Without those that failed just now."""
        now = time.monotonic()
        return {id: node for id, node in self.alive().items() if self._away.get(id, 0.0) <= now}

    def leave_alone(self, id: str) -> None:
        self._away[id] = time.monotonic() + _AWAY_S


def _node(told: dict[str, Any]) -> Node:
    resources = told["Resources"]
    host = told.get("NodeManagerHostname") or told["NodeManagerAddress"]
    return Node(told["NodeID"], host, resources.get("CPU", 0.0), resources.get("memory", 0.0))
