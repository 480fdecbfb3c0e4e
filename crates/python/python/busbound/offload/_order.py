"""Which block is used next? Learned from what was used before.

The order repeats from pass to pass, so the prediction is what followed the last time. A pass that skips blocks,
repeats them or turns around (backward) is found again in the history. No torch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

#: A block is used in the forward pass, or its weights are needed by the backward pass.
FORWARD, BACKWARD = 0, 1

Access = tuple[int, int]

#: Accesses compared when a position is searched in the history: enough to tell repeated blocks apart.
_CONTEXT = 8
#: Accesses looked through for the blocks that come next; a block may be used many times in a row.
_FARTHEST = 64


class Order:
    """The history of accesses and the position in it that the present repeats."""

    def __init__(self, blocks: Sequence[int]) -> None:
        self._blocks = list(blocks)
        # Before anything is known, blocks are used in the order of the model.
        self._history: list[Access] = [(block, FORWARD) for block in self._blocks]
        #: What was decided after each access, if that can be decided again.
        self._notes: list[Any] = [None] * len(self._history)
        self._next = 0
        #: Where in the history the last access is that was not predicted.
        self._surprise = len(self._history)

    def saw(self, block: int, phase: int) -> bool:
        """A block is used. Whether that was the prediction."""
        access = (block, phase)
        history = self._history
        expected = history[self._next] == access
        if expected:
            self._next += 1
        else:
            self._next = self._found(access) + 1
            self._surprise = len(history)
        history.append(access)
        self._notes.append(None)
        if self._next > 16 * len(self._blocks) + 256:
            self._forget()
        return expected

    def note(self, decision: Any) -> None:
        """Remembers what was decided after the last access."""
        self._notes[-1] = decision

    def decided_before(self) -> Any:
        """What was decided the last time, if all accesses since then were predicted: then the same ones come next."""
        at = self._next - 1
        if at <= self._surprise:
            return None
        notes = self._notes
        decision = notes[-1] = notes[at]
        return decision

    def ahead(self) -> list[int]:
        """The blocks that are used next, with repetitions."""
        return [block for block, _ in self._history[self._next : self._next + _FARTHEST]]

    def distinct(self, count: int, without: Collection[int | None]) -> list[int]:
        """The next ``count`` different blocks, except some."""
        found: list[int] = []
        history, at = self._history, self._next
        for position in range(at, min(at + _FARTHEST, len(history))):
            block = history[position][0]
            if block not in found and block not in without:
                found.append(block)
                if len(found) == count:
                    break
        return found

    def _found(self, access: Access) -> int:
        """The position in the history that this access repeats."""
        history, at = self._history, self._next
        # Some blocks are skipped.
        for position in range(at + 1, min(len(history), at + 2 * len(self._blocks) + 2)):
            if history[position] == access:
                return position
        # The program turned to something it did before: the position with the longest common past, the latest first.
        best, longest = -1, -1
        for position in range(len(history) - 1, -1, -1):
            if history[position] == access:
                length = self._common_past(position)
                if length > longest:
                    best, longest = position, length
                if length == _CONTEXT:
                    break
        return best if best >= 0 else self._imagined(access)

    def _common_past(self, position: int) -> int:
        history = self._history
        for length in range(_CONTEXT):
            if position - 1 - length < 0 or history[position - 1 - length] != history[-1 - length]:
                return length
        return _CONTEXT

    def _imagined(self, access: Access) -> int:
        """Something new: backward goes through the blocks in reverse, and the next pass begins at the first."""
        at = len(self._history)
        block, phase = access
        before = self._blocks[: self._blocks.index(block)]
        self._history.append(access)
        self._history.extend((earlier, phase) for earlier in reversed(before))
        self._history.extend((each, FORWARD) for each in self._blocks)
        self._notes.extend([None] * (len(self._history) - at))
        return at

    def _forget(self) -> None:
        cut = self._next - 2 * len(self._blocks) - _CONTEXT
        del self._history[:cut], self._notes[:cut]
        self._next -= cut
        self._surprise -= cut
