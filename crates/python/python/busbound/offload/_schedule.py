"""Which block is in which slot of the ring, and what is copied when?

Invariants: a block is read only from a slot that was filled with it, and a slot is filled again only after its block
was released. The engine turns "released" and "filled" into events. No torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ._order import BACKWARD, FORWARD, Order
from ._sizes import OffloadError


class Fetch(NamedTuple):
    """Copy this block into this slot."""

    block: int
    slot: int


class _Change(NamedTuple):
    """One block takes the place of another."""

    block: int
    #: ``None`` if nothing changes.
    gone: int | None
    #: The copy for each slot that the other one may be in.
    fetches: list[tuple[Fetch]]


_NOTHING = _Change(0, None, [])


class Schedule:
    """The contents of the ring."""

    def __init__(self, blocks: Sequence[int], slots: int) -> None:
        if slots < 1:
            raise OffloadError("the ring needs at least one slot")
        self._order = Order(blocks)
        self._content: list[int | None] = [None] * slots
        #: How many calls use the slot now.
        self._users = [0] * slots
        self._busy = 0
        self._slot_of: dict[int, int] = {}
        #: Blocks that were in no slot when they were used.
        self.misses = 0
        self.uses = 0
        #: After how many uses the slots had exactly the blocks that are used next.
        self._full = -1

    @property
    def slots(self) -> int:
        return len(self._content)

    def slot_of(self, block: int) -> int | None:
        """Where a block is or is being copied to."""
        return self._slot_of.get(block)

    def enter(self, block: int, phase: int = FORWARD) -> tuple[int, bool]:
        """A block is used until ``leave``. Its slot, and whether it must be copied there now."""
        self._order.saw(block, phase)
        self.uses += 1
        slot = self._slot_of.get(block)
        is_missing = slot is None
        if slot is None:
            self.misses += 1
            self._full = -1
            slot = self._least_needed()
            self._fill(slot, block)
        self._users[slot] += 1
        self._busy += 1
        return slot, is_missing

    def leave(self, slot: int) -> None:
        """A use of the slot ended."""
        self._users[slot] -= 1
        self._busy -= 1

    def ahead(self) -> Sequence[Fetch]:
        """What to copy now: the blocks used next, into slots that nothing needs before them."""
        was_full = self._full == self.uses - 1
        if self._busy or not was_full:
            self._full = -1 if self._busy else self.uses
            return self._decided()
        self._full = self.uses
        # From slots with the next blocks to slots with the next blocks: the change depends only on what comes next.
        change = self._order.decided_before()
        if change is None:
            return self._noted()
        block, gone, fetches = change
        if gone is None:
            return ()
        slot = self._slot_of.pop(gone)
        self._content[slot] = block
        self._slot_of[block] = slot
        return fetches[slot]  # type: ignore[no-any-return]

    def _noted(self) -> list[Fetch]:
        """Decides, and remembers which block made room for which."""
        before = list(self._content)
        fetches = self._decided()
        if self._full == self.uses and len(fetches) < 2:
            change = _NOTHING
            for block, slot in fetches:
                change = _Change(block, before[slot], [(Fetch(block, each),) for each in range(len(before))])
            self._order.note(change)
        return fetches

    def _decided(self) -> list[Fetch]:
        users, content, slot_of = self._users, self._content, self._slot_of
        room = users.count(0)
        if not room:
            return []
        held = () if room == len(users) else [block for block, used in zip(content, users, strict=True) if used]
        wanted = self._order.distinct(room, held)
        if len(wanted) < len(content):
            self._full = -1
        missing = [block for block in wanted if block not in slot_of]
        if not missing:
            return []
        free = [slot for slot, block in enumerate(content) if not users[slot] and block not in wanted]
        fetches = list(map(Fetch, missing, free))
        for block, slot in fetches:
            self._fill(slot, block)
        return fetches

    def forget(self, block: int) -> None:
        """The host's copy of the block changed, or the block is no longer streamed."""
        self._full = -1
        slot = self._slot_of.pop(block, None)
        if slot is not None:
            self._content[slot] = None

    def _fill(self, slot: int, block: int) -> None:
        before = self._content[slot]
        if before is not None:
            del self._slot_of[before]
        self._content[slot] = block
        self._slot_of[block] = slot

    def _least_needed(self) -> int:
        """The unused slot whose block is used last among those known to come."""
        free = [slot for slot, users in enumerate(self._users) if not users]
        if not free:
            raise OffloadError(
                f"{len(self._content)} blocks are in use at the same time, as many as the ring has slots: "
                "a block calls another one; give the outer ones as blocks="
            )
        left = {self._content[slot]: slot for slot in free}
        for content, slot in left.items():
            if content is None:
                return slot
        for block in self._order.ahead():
            if len(left) == 1:
                break
            left.pop(block, None)
        return next(iter(left.values()))


__all__ = ["BACKWARD", "FORWARD", "Fetch", "Schedule"]
