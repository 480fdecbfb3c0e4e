"""Which node reads which trace next, and what was the result?

A trace goes to a node that has it. If the node, the process or the storage fails, another node retries it after a delay.
Summaries are combined on the cluster in a tree, sixteen at a time, so that a single object is returned.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ._progress import Progress
from ._tasks import Trouble, combine, summarize_file, unpack
from ._words import in_words, is_final

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._files import File, Unread
    from ._nodes import Node, Nodes
    from ._tasks import Question

#: Summaries that one task combines.
_FAN_IN = 16
#: Tasks in flight per core: while one is read, the next is already queued there.
_PER_CORE = 2
#: Delay before a retry, doubled each time: Ray needs some seconds to notice a dead node.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 8.0
#: Share of a node's memory that one trace may request. Ray would never schedule a larger request.
_OF_MEMORY = 0.9
#: Timeout of each wait for finished tasks.
_LOOK_EVERY_S = 0.5
#: A cluster without cores may be starting up; after this long, nodes without cores read traces too.
CORES_MAY_COME_S = 30.0
#: After Ctrl-C, how long running tasks have to delete what they downloaded.
_TO_CLEAN_UP_S = 2.0


class Driver:
    def __init__(self, nodes: Nodes, question: Question, retries: int, report: Callable[[Progress], None]) -> None:
        self.nodes, self.retries, self.report = nodes, retries, report
        self.question = ray.put(question)
        # Retried here, not by Ray, which could pick a node without the file.
        self.summarize = ray.remote(num_returns=2, max_retries=0)(summarize_file)
        # It is cheap and must not wait for a core.
        self.combine = ray.remote(num_cpus=0, max_retries=max(retries, 1))(combine)
        #: By the nodes that can read them: only the first of each queue has to be checked.
        self.waiting: dict[frozenset[str] | None, deque[File]] = defaultdict(deque)
        #: Files to retry, and when.
        self.later: list[tuple[float, File]] = []
        #: By result reference: the file, the node it was sent to, and the summary.
        self.in_flight: dict[Any, tuple[File, str | None, Any]] = {}
        self.unread: Unread = []
        self.again = 0
        #: Every summary. They are small and owned by this process, so a dying node does not lose any.
        self.summaries: list[Any] = []
        #: Summaries and combined summaries, by level of the tree.
        self.levels: dict[int, list[Any]] = {}
        self.began = self.last_done = time.monotonic()

    def run(self, files: list[File]) -> tuple[str, Unread]:
        """All summaries as one text, and the files without one."""
        for file in files:
            self.waiting[file.holders].append(file)
        try:
            while any(self.waiting.values()) or self.later or self.in_flight:
                self.send()
                for result in self.finished():
                    self.take(result)
                self.report_progress(len(files))
            return self.combined(), self.unread
        finally:
            self.stop()

    def stop(self) -> None:
        """After Ctrl-C: gives running tasks a moment to delete what they downloaded."""
        left = list(self.in_flight)
        for result in left:
            ray.cancel(result)
        if left:
            _, left = ray.wait(left, num_returns=len(left), timeout=_TO_CLEAN_UP_S)
        for result in left:
            ray.cancel(result, force=True)

    def report_progress(self, total: int) -> None:
        done = len(self.summaries) + len(self.unread)
        idle = time.monotonic() - self.last_done
        self.report(Progress(done, total, len(self.unread), self.again, len(self.nodes.alive()), idle))

    def send(self) -> None:
        now = time.monotonic()
        for due, file in self.later:
            if due <= now:
                self.waiting[file.holders].append(file)
        self.later = [(due, file) for due, file in self.later if due > now]
        sent = Counter(node for _, node, _ in self.in_flight.values())
        for queue in self.waiting.values():
            while queue and self.sent_one(queue[0], sent):
                queue.popleft()

    def sent_one(self, file: File, sent: Counter[str | None]) -> bool:
        """Sends a file to a node with free capacity; gives up on a file that no node has anymore."""
        alive = self.nodes.alive()
        able = [alive[id] for id in (file.holders or alive) if id in alive]
        has_cores = any(node.cpus for node in able)
        if not able:
            self.give_up(file, "the node that had it is gone")
            return True
        if file.holders is None and not has_cores and time.monotonic() - self.began < CORES_MAY_COME_S:
            return False
        if file.holders is None and not file.failed_on and has_cores:
            # Ray knows best which node is free.
            if sent[None] >= _PER_CORE * sum(node.cpus for node in able):
                return False
            self.start(file, None, able)
            sent[None] += 1
            return True
        # Prefers nodes with cores, then those with the fewest failures on this file, then the least loaded.
        fit = self.nodes.fit()
        able = [node for node in able if node.id in fit] or able
        node = min(able, key=lambda node: (not node.cpus, file.failed_on[node.id], sent[node.id] / max(node.cpus, 1)))
        if sent[node.id] >= _PER_CORE * max(node.cpus, 1):
            return False
        self.start(file, node, [node])
        sent[node.id] += 1
        return True

    def start(self, file: File, node: Node | None, able: list[Node]) -> None:
        most = min((one.memory for one in able if one.memory and (node or one.cpus)), default=0.0) * _OF_MEMORY
        options = {
            "num_cpus": 0 if node and not node.cpus else 1,
            "memory": min(file.memory, most) or None,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node.id, soft=False) if node else "SPREAD",
        }
        sent: Any = self.summarize.options(**options).remote(file.source, file.host, self.question)
        result, summary = sent
        file.attempts += 1
        self.in_flight[result] = (file, node.id if node else None, summary)

    def finished(self) -> list[Any]:
        """Finished tasks; empty after a timeout."""
        if not self.in_flight:
            due = min((due for due, _ in self.later), default=time.monotonic() + _LOOK_EVERY_S)
            time.sleep(min(max(due - time.monotonic(), 0.0), _LOOK_EVERY_S))
            return []
        refs = list(self.in_flight)
        done = ray.wait(refs, num_returns=1, timeout=_LOOK_EVERY_S)[0]
        return ray.wait(refs, num_returns=len(refs), timeout=0)[0] if done else []

    def take(self, result: Any) -> None:
        file, node, summary = self.in_flight.pop(result)
        try:
            trouble: Trouble | None = ray.get(result)
        except ray.exceptions.RayError as error:
            trouble = Trouble(in_words(error), not is_final(error), node or "")
            if node:
                self.nodes.avoid(node)
        if trouble is None or (trouble.has_part and file.attempts > self.retries):
            self.summaries.append(summary)
            self.add(summary, 0)
            self.last_done = time.monotonic()
            return
        file.failed_on[trouble.node] += 1
        if trouble.is_retryable and file.attempts <= self.retries:
            self.again += 1
            wait = min(_FIRST_WAIT_S * 2 ** (file.attempts - 1), _LONGEST_WAIT_S)
            self.later.append((time.monotonic() + wait, file))
            return
        self.give_up(file, trouble.why + (f" (tried {file.attempts} times)" if file.attempts > 1 else ""))

    def give_up(self, file: File, why: str) -> None:
        # Messages of the reader already contain the path.
        self.unread.append((file.name, why if file.path in why else f"{file.name}: {why}"))
        self.last_done = time.monotonic()

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
            # Nodes with combined summaries died too often. The individual summaries are still here.
            return unpack(combine(*ray.get(self.summaries)))
