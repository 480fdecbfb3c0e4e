"""Who reads what next, and what came of it?

A trace goes to a node that has it. Where the node, the process or the storage fails under it, it goes to another after a while.
Summaries are combined on the cluster, sixteen at a time and those again, so that one object comes back in the end.
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
#: Under way at a time for each core: while one is read, the next waits there.
_A_CORE = 2
#: Before a trace is tried again, doubling each time: a node that dies is noticed after some seconds.
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 8.0
#: Of a node's memory, what one trace may ask for. More would never be granted, and never end.
_OF_MEMORY = 0.9
#: How long to look for what is done before looking at the rest again.
_LOOK_EVERY_S = 0.5
#: A cluster without a core may be about to get some; after so long a trace is read by a node without.
CORES_MAY_COME_S = 30.0
#: At Ctrl-C, how long those that read have to put away what they fetched.
_TO_CLEAN_UP_S = 2.0


class Driver:
    def __init__(self, nodes: Nodes, question: Question, retries: int, report: Callable[[Progress], None]) -> None:
        self.nodes, self.retries, self.report = nodes, retries, report
        self.question = ray.put(question)
        # Tried again here and not by Ray, which would send it to where the file may not be.
        self.summarize = ray.remote(num_returns=2, max_retries=0)(summarize_file)
        # It takes no core to speak of, and must not wait for one.
        self.combine = ray.remote(num_cpus=0, max_retries=max(retries, 1))(combine)
        #: By who can read them: of many that wait for the same nodes, one is looked at.
        self.waiting: dict[frozenset[str] | None, deque[File]] = defaultdict(deque)
        #: Files to be tried again, and when.
        self.later: list[tuple[float, File]] = []
        #: By the object that tells what came of it: the file, the node it was sent to, and the summary.
        self.under_way: dict[Any, tuple[File, str | None, Any]] = {}
        self.unread: Unread = []
        self.again = 0
        #: Every summary. They are small and held by this process, so that no node takes one along.
        self.summaries: list[Any] = []
        #: Summaries and what was combined of them, by how often.
        self.levels: dict[int, list[Any]] = {}
        self.began = self.last_done = time.monotonic()

    def run(self, files: list[File]) -> tuple[str, Unread]:
        """All summaries as one text, and the files that gave none."""
        for file in files:
            self.waiting[file.holders].append(file)
        try:
            while any(self.waiting.values()) or self.later or self.under_way:
                self.send()
                for told in self.finished():
                    self.take(told)
                self.tell(len(files))
            return self.combined(), self.unread
        finally:
            self.stop()

    def stop(self) -> None:
        """At Ctrl-C: whoever reads puts away what it fetched, if it does so soon."""
        left = list(self.under_way)
        for told in left:
            ray.cancel(told)
        if left:
            _, left = ray.wait(left, num_returns=len(left), timeout=_TO_CLEAN_UP_S)
        for told in left:
            ray.cancel(told, force=True)

    def tell(self, total: int) -> None:
        done = len(self.summaries) + len(self.unread)
        idle = time.monotonic() - self.last_done
        self.report(Progress(done, total, len(self.unread), self.again, len(self.nodes.alive()), idle))

    def send(self) -> None:
        now = time.monotonic()
        for due, file in self.later:
            if due <= now:
                self.waiting[file.holders].append(file)
        self.later = [(due, file) for due, file in self.later if due > now]
        sent = Counter(node for _, node, _ in self.under_way.values())
        for queue in self.waiting.values():
            while queue and self.sent_one(queue[0], sent):
                queue.popleft()

    def sent_one(self, file: File, sent: Counter[str | None]) -> bool:
        """Sends a file where there is room for it; one that nobody has any more is given up."""
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
            if sent[None] >= _A_CORE * sum(node.cpus for node in able):
                return False
            self.start(file, None, able)
            sent[None] += 1
            return True
        # One with cores, which has failed least with it, and has least to do.
        fit = self.nodes.fit()
        able = [node for node in able if node.id in fit] or able
        node = min(able, key=lambda node: (not node.cpus, file.failed_on[node.id], sent[node.id] / max(node.cpus, 1)))
        if sent[node.id] >= _A_CORE * max(node.cpus, 1):
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
        told, summary = sent
        file.attempts += 1
        self.under_way[told] = (file, node.id if node else None, summary)

    def finished(self) -> list[Any]:
        """What is done; after a while nothing."""
        if not self.under_way:
            due = min((due for due, _ in self.later), default=time.monotonic() + _LOOK_EVERY_S)
            time.sleep(min(max(due - time.monotonic(), 0.0), _LOOK_EVERY_S))
            return []
        refs = list(self.under_way)
        done = ray.wait(refs, num_returns=1, timeout=_LOOK_EVERY_S)[0]
        return ray.wait(refs, num_returns=len(refs), timeout=0)[0] if done else []

    def take(self, told: Any) -> None:
        file, node, summary = self.under_way.pop(told)
        try:
            trouble: Trouble | None = ray.get(told)
        except ray.exceptions.RayError as error:
            trouble = Trouble(in_words(error), not is_final(error), node or "")
            if node:
                self.nodes.leave_alone(node)
        if trouble is None or (trouble.has_part and file.attempts > self.retries):
            self.summaries.append(summary)
            self.add(summary, 0)
            self.last_done = time.monotonic()
            return
        file.failed_on[trouble.node] += 1
        if trouble.may_go_better and file.attempts <= self.retries:
            self.again += 1
            wait = min(_FIRST_WAIT_S * 2 ** (file.attempts - 1), _LONGEST_WAIT_S)
            self.later.append((time.monotonic() + wait, file))
            return
        self.give_up(file, trouble.why + (f" (tried {file.attempts} times)" if file.attempts > 1 else ""))

    def give_up(self, file: File, why: str) -> None:
        # The reader's own sentences name the file.
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
            # What was combined went with a node, too often. What it was made of is still here.
            return unpack(combine(*ray.get(self.summaries)))
