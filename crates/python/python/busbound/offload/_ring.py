"""Device memory for one block after another: slots of the size of the largest block, allocated once."""

from __future__ import annotations

from typing import Any

import torch

from ._lanes import lanes_of
from ._store import StoredBlock


class Ring:
    """The slots, and each block's view of each slot."""

    def __init__(self, blocks: list[StoredBlock], streamed: list[int], slots: int, device: Any) -> None:
        self._blocks = blocks
        self.slot_bytes = max(blocks[index].nbytes for index in streamed)
        with torch.inference_mode(False):
            self._slots = [torch.empty(self.slot_bytes, dtype=torch.uint8, device=device) for _ in range(slots)]
        self._begins = [slot.data_ptr() for slot in self._slots]
        self._views: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._targets: dict[tuple[int, int], Any] = {}
        self.lanes = lanes_of(device, slots)

    @property
    def nbytes(self) -> int:
        return self.slot_bytes * len(self._slots)

    def fill(self, block: int, slot: int) -> None:
        """Copies a block into a slot, in one piece."""
        target = self._targets.get((block, slot))
        stored = self._blocks[block]
        if target is None:
            with torch.inference_mode(False):
                target = self._targets[block, slot] = self._slots[slot][: stored.nbytes]
        self.lanes.fill(slot, target, stored.flat)

    def views(self, block: int, slot: int) -> tuple[Any, ...]:
        """The tensors of a block in a slot."""
        views = self._views.get((block, slot))
        if views is None:
            views = self._views[block, slot] = self._blocks[block].views_in(self._slots[slot])
        return views

    def offset_in(self, slot: int, address: int) -> int | None:
        """Where in a slot an address is; ``None`` if it is not."""
        offset: int = address - self._begins[slot]
        return offset if 0 <= offset < self.slot_bytes else None

    def slot(self, slot: int) -> Any:
        """The bytes of a slot."""
        return self._slots[slot]

    def forget(self, block: int) -> None:
        """The block has fewer tensors now."""
        for slot in range(len(self._slots)):
            self._views.pop((block, slot), None)
