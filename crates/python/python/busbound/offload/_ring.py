"""Device memory for one block after another: slots of the size of the largest block, allocated once."""

from __future__ import annotations

from typing import Any

import torch

from ._exchange import Exchange
from ._lanes import lanes_of
from ._store import StoredBlock


class Ring:
    """The slots, and each block's view of each slot."""

    def __init__(self, blocks: list[StoredBlock], streamed: list[int], slots: int, device: Any) -> None:
        self._blocks = blocks
        self.slot_bytes = max(blocks[index].nbytes for index in streamed)
        with torch.inference_mode(False):
            self._slots = [torch.empty(self.slot_bytes, dtype=torch.uint8, device=device) for _ in range(slots)]
        #: The first and the last address of each slot.
        self.ranges = [(slot.data_ptr(), slot.data_ptr() + self.slot_bytes - 1) for slot in self._slots]
        self._exchanges = {index: self._made(index) for index in streamed}
        self.lanes = lanes_of(device, slots)
        with torch.inference_mode(False), torch.no_grad():
            #: By block and slot: copies the block there, in one piece. Everything is made before the first pass, not during it.
            self.fillers = {
                index: [
                    self.lanes.filler(number, slot[: blocks[index].nbytes], blocks[index].flat)
                    for number, slot in enumerate(self._slots)
                ]
                for index in streamed
            }

    @property
    def nbytes(self) -> int:
        return self.slot_bytes * len(self._slots)

    def exchanges(self, block: int) -> list[Exchange]:
        """The tensors of a block in each slot. The list stays the same when its contents change."""
        return self._exchanges[block]

    def renew(self, block: int) -> None:
        """The block has fewer tensors now."""
        self._exchanges[block][:] = self._made(block)

    def _made(self, block: int) -> list[Exchange]:
        stored = self._blocks[block]
        # Inference tensors would not count writes.
        with torch.inference_mode(False), torch.no_grad():
            # A copy into the slot is not a write of the block: `.data` counts writes by itself.
            flats = [slot.data for slot in self._slots]
            return [
                Exchange(stored.module, stored.tensors, flat, stored.views_in(flat), stored.host_views) for flat in flats
            ]

    def offset_in(self, slot: int, address: int) -> int | None:
        """Where in a slot an address is; ``None`` if it is not."""
        begin, last = self.ranges[slot]
        return address - begin if begin <= address <= last else None

    def slot(self, slot: int) -> Any:
        """The bytes of a slot."""
        return self._slots[slot]
