"""Who reads what next, and what came of it?

A trace goes to a node that has it. Where the node, the process or the storage fails under it, it goes to another after a while.
Summaries are combined on the cluster, sixteen at a time and those again, so that one object comes back in the end.
"""

from __future__ import annotations

import time
from collections import Counter, deque

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ._progress import Progress
from ._tasks import combine, summarize_file, unpack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._files import File
    from ._nodes import Node, Nodes
    from ._tasks import Question

#: Summaries that one task combines.
_FAN_IN = 16
#: Under way at a time for each core: while one is read, the next waits there.
_A_CORE = 2
#: Before a trace is tried again, doubling each time: a node that dies is noticed after some seconds.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 8.0
#: Of a node's memory, what one trace may ask for. More would never be granted, and never end.
_OF_MEMORY = 0.9
#: How long to look for what is done before looking at the rest again.
_LOOK_EVERY_S = 0.5


class Driver:
    def __init__(self, nodes: Nodes, question: Question, retries: int, report: Callable[[Progress], None]) -> None:
        self.nodes, self.retries, self.report = nodes, retries, report
        self.question = ray.put(question)
        # Tried again here and not by Ray, which would send it to where the file may not be.
        self.summarize = ray.remote(num_returns=2, max_retries=0)(summarize_file)
        self.combine = ray.remote(max_retries=max(retries, 1))(combine)
        self.waiting: deque[File] = deque()
        #: Files to be tried again, and when.
        self.later: list[tuple[float, File]] = []
        #: By the object that tells what came of it: the file, the node it was sent to, and the summary.
        self.under_way: dict[Any, tuple[File, str | None, Any]] = {}
        self.unread: list[tuple[str, str]] = []
        self.again = 0
        #: Every summary. They are small and held by this process, so that no node takes one along.
        self.summaries: list[Any] = []
        #: Summaries and what was combined of them, by how often.
        self.levels: dict[int, list[Any]] = {}

    def run(self, files: list[File]) -> tuple[str, list[tuple[str, str]]]:
        """All summaries as one text, and the files that gave none."""
        self.waiting.extend(files)
        try:
            while self.waiting or self.later or self.under_way:
                self.send()
                for told in self.finished():
                    self.take(told)
                    self.tell(len(files))
            return self.combined(), self.unread
        finally:
            # At Ctrl-C too.
            for told in self.under_way:
                ray.cancel(told, force=True)

    def tell(self, total: int) -> None:
        done = len(self.summaries) + len(self.unread)
        self.report(Progress(done, total, len(self.unread), self.again, len(self.nodes.alive())))

    def send(self) -> None:
        now = time.monotonic()
        self.waiting.extend(file for due, file in self.later if due <= now)
        self.later = [(due, file) for due, file in self.later if due > now]
        alive = self.nodes.alive()
        sent = Counter(node for _, node, _ in self.under_way.values())
        anywhere = sum(node.cpus for node in alive.values()) * _A_CORE
        kept = []
        while self.waiting:
            file = self.waiting.popleft()
            if file.holders is None and not file.attempts:
                # Ray knows best which node is free.
                if sent[None] < max(anywhere, 1):
                    self.start(file, None, alive)
                    sent[None] += 1
                    continue
            else:
                able = [alive[id] for id in (file.holders or alive) if id in alive]
                if not able:
                    self.give_up(file, "the node that had it is gone")
                    continue
                # With those first that have cores.
                node = min(able, key=lambda node: (not node.cpus, sent[node.id] / max(node.cpus, 1)))
                if sent[node.id] < max(node.cpus, 1) * _A_CORE:
                    self.start(file, node, alive)
                    sent[node.id] += 1
                    continue
            kept.append(file)
        self.waiting.extend(kept)

    def start(self, file: File, node: Node | None, alive: dict[str, Node]) -> None:
        able = [node] if node else [one for one in alive.values() if one.cpus]
        most = min((one.memory for one in able if one.memory), default=0.0) * _OF_MEMORY
        options = {
            "num_cpus": 0 if node and not node.cpus else 1,
            "memory": min(file.memory, most) or None,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node.id, soft=False) if node else "SPREAD",
        }
        sent: Any = self.summarize.options(**options).remote(file.source, file.host, self.question)
        told, summary = sent
        file.attempts += 1
        self.under_way[told] = (file, node.id if node else None, summary)

    def finished(self) -> list[Any]:
        if not self.under_way:
            due = min((due for due, _ in self.later), default=0.0)
            time.sleep(min(max(due - time.monotonic(), 0.0), _LOOK_EVERY_S))
            return []
        return ray.wait(list(self.under_way), num_returns=1, timeout=_LOOK_EVERY_S)[0]

    def take(self, told: Any) -> None:
        file, _, summary = self.under_way.pop(told)
        try:
            trouble = ray.get(told)
        except ray.exceptions.RayError as error:
            trouble = (_in_words(error), True)
        if trouble is None:
            self.summaries.append(summary)
            self.add(summary, 0)
            return
        why, may_go_better = trouble
        if may_go_better and file.attempts <= self.retries:
            self.again += 1
            wait = min(_FIRST_WAIT_S * 2 ** (file.attempts - 1), _LONGEST_WAIT_S)
            self.later.append((time.monotonic() + wait, file))
            return
        self.give_up(file, why + (f" (tried {file.attempts} times)" if file.attempts > 1 else ""))

    def give_up(self, file: File, why: str) -> None:
        # The reader's own sentences name the file.
        self.unread.append((file.name, why if file.path in why else f"{file.name}: {why}"))

    def add(self, one: Any, level: int) -> None:
        peers = self.levels.setdefault(level, [])
        peers.append(one)
        if len(peers) == _FAN_IN:
            self.levels[level] = []
            self.add(self.combine.remote(*peers), level + 1)

    def combined(self) -> str:
        left = [one for peers in self.levels.values() for one in peers]
        if not left:
            return ""
        try:
            return unpack(ray.get(self.combine.remote(*left)))
        except ray.exceptions.RayError:
            # What was combined went with a node, too often. What it was made of is still here.
            return unpack(combine(*ray.get(self.summaries)))


def _in_words(error: Exception) -> str:
    """The first sentence; Ray adds pages of advice."""
    kind = {
        ray.exceptions.NodeDiedError: "the node died while it was read",
        ray.exceptions.WorkerCrashedError: "the process that read it died",
        ray.exceptions.OutOfMemoryError: "the node ran out of memory while it was read",
        ray.exceptions.TaskUnschedulableError: "the node that had it is gone",
    }.get(type(error))
    return kind or f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
