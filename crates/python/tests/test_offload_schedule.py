"""The order and the slots of streamed blocks: no torch, a simulated device instead."""

import random

import pytest

from busbound._native import Schedule
from busbound.offload._sizes import OffloadError, bytes_of, text_of

FORWARD, BACKWARD = 0, 1


class Device:
    """Runs what a schedule says with streams and events in simulated time, and checks every access."""

    def __init__(self, blocks, slots, clock):
        self.schedule, self.random = Schedule(list(range(blocks)), slots), clock
        self.filled = [(None, 0.0)] * slots
        self.released = [0.0] * slots
        self.in_use = [0] * slots
        self.copies = self.compute = 0.0
        self.held = None
        self.copied = 0
        self.fetch_ahead()

    def fill(self, block, slot):
        assert not self.in_use[slot], "a slot is overwritten while it is in use"
        # The copy stream waits for the release of the slot.
        begin = max(self.copies, self.released[slot])
        self.copies = begin + self.random.uniform(0.1, 3)
        self.filled[slot] = (block, self.copies)
        self.copied += 1

    def fetch_ahead(self):
        for block, slot in self.schedule.ahead():
            self.fill(block, slot)

    def enter(self, block, phase):
        if self.held is not None and self.held[0] != block:
            self.leave(self.held[1])
            self.held = None
        slot, is_missing = self.schedule.enter(block, phase)
        if is_missing:
            self.fill(block, slot)
        self.in_use[slot] += 1
        content, ready = self.filled[slot]
        assert content == block, "a block is read from a slot with another block"
        self.compute = max(self.compute, ready) + self.random.uniform(0.1, 3)
        return slot

    def leave(self, slot):
        self.in_use[slot] -= 1
        self.released[slot] = self.compute
        self.schedule.leave(slot)

    def forward(self, block):
        slot = self.enter(block, FORWARD)
        self.leave(slot)
        self.fetch_ahead()

    def backward(self, block):
        if self.held is None or self.held[0] != block:
            self.held = (block, self.enter(block, BACKWARD))
            self.fetch_ahead()


@pytest.mark.parametrize("seed", range(200))
def test_a_block_is_never_read_before_its_copy_nor_overwritten_before_its_last_use(seed):
    clock = random.Random(seed)
    blocks, slots = clock.randint(1, 12), clock.randint(1, 5)
    device = Device(blocks, slots, clock)
    for _ in range(30):
        kind = clock.choice(["pass", "train", "skip", "any", "repeat"])
        used = list(range(blocks))
        if kind == "skip":
            used = [block for block in used if clock.random() < 0.6]
        elif kind == "any":
            used = [clock.randrange(blocks) for _ in range(blocks)]
        elif kind == "repeat":
            used = [block for block in used for _ in range(clock.randint(1, 3))]
        for block in used:
            device.forward(block)
        if kind == "train":
            for block in reversed(used):
                device.backward(block)
    assert device.schedule.remembered < 40 * blocks + 1000


@pytest.mark.parametrize("slots", [2, 3, 4])
def test_passes_that_repeat_are_copied_ahead_and_once(slots):
    device = Device(16, slots, random.Random(0))
    for _ in range(10):
        for block in range(16):
            device.forward(block)
    assert device.schedule.misses == 0
    # The copies of the next pass have begun.
    assert device.copied == 160 + slots


@pytest.mark.parametrize("slots", [2, 3, 4])
def test_training_turns_around_without_copying_the_last_blocks_again(slots):
    device = Device(16, slots, random.Random(0))
    for step in range(10):
        if step == 3:
            before = device.copied
        for block in range(16):
            device.forward(block)
        for block in reversed(range(16)):
            device.backward(block)
    assert device.schedule.misses <= 1
    assert device.copied - before <= 7 * 2 * (16 - slots + 1)


def test_skipped_blocks_do_not_disturb_what_follows():
    device = Device(8, 2, random.Random(0))
    for number in range(20):
        for block in range(8):
            if not (block == 3 and number % 4 == 3):
                device.forward(block)
    # One for the block behind the skipped one.
    assert device.schedule.misses <= 10


def test_evaluation_between_training_steps():
    device = Device(12, 3, random.Random(0))
    for step in range(12):
        for block in range(12):
            device.forward(block)
        if step % 4 != 3:
            for block in reversed(range(12)):
                device.backward(block)
    assert device.schedule.misses < 10


def test_more_blocks_in_use_than_slots_is_an_error():
    schedule = Schedule([0, 1, 2, 3], 2)
    schedule.enter(0)
    schedule.enter(1)
    with pytest.raises(IndexError, match="in use"):
        schedule.enter(2)


def test_sizes():
    assert bytes_of("4GB") == 4_000_000_000
    assert bytes_of("1.5 GiB") == 3 << 29
    assert bytes_of("512mib") == 512 << 20
    assert bytes_of(4e9) == 4_000_000_000
    assert text_of(6.48e9) == "6.48 GB" and text_of(12) == "12 B"
    for wrong in ("4 apples", "", "-1GB", 0):
        with pytest.raises(OffloadError):
            bytes_of(wrong)
