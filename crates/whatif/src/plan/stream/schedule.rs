//! Which block is in which slot of the ring, and what is copied when?
//!
//! A block is read only from a slot that was filled with it, and a slot is filled again only after its block was
//! released. The engine of `busbound.offload` turns "released" and "filled" into CUDA events; the planner into times.

use super::order::{Order, Phase};

/// Copy this block into this slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetch {
    pub block: u32,
    pub slot: u32,
}

/// As many blocks are in use at the same time as the ring has slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSlot;

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    block: Option<u32>,
    /// How many calls use it now.
    users: u32,
}

/// The contents of the ring.
#[derive(Debug, Clone)]
pub struct Schedule {
    order: Order,
    ring: Vec<Slot>,
    misses: u64,
}

impl Schedule {
    /// A ring for these blocks.
    #[must_use]
    pub fn new(blocks: Vec<u32>, slots: usize) -> Self {
        Self { order: Order::new(blocks), ring: vec![Slot::default(); slots], misses: 0 }
    }

    #[must_use]
    pub fn slots(&self) -> usize {
        self.ring.len()
    }

    /// Blocks that were in no slot when they were used.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses
    }

    /// Uses of blocks that it remembers.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.order.len()
    }

    /// Where a block is or is being copied to.
    #[must_use]
    pub fn slot_of(&self, block: u32) -> Option<u32> {
        self.ring.iter().position(|slot| slot.block == Some(block)).map(|slot| slot as u32)
    }

    /// A block is used until `leave`. Its slot, and whether it must be copied there now.
    ///
    /// # Errors
    /// If all slots are in use.
    pub fn enter(&mut self, block: u32, phase: Phase) -> Result<(u32, bool), NoSlot> {
        self.order.saw(block, phase);
        let found = self.slot_of(block);
        let slot = match found {
            Some(slot) => slot,
            None => {
                self.misses += 1;
                let slot = self.least_needed().ok_or(NoSlot)?;
                self.ring[slot as usize].block = Some(block);
                slot
            }
        };
        self.ring[slot as usize].users += 1;
        Ok((slot, found.is_none()))
    }

    /// A use of the slot ended.
    pub fn leave(&mut self, slot: u32) {
        self.ring[slot as usize].users -= 1;
    }

    /// What to copy now: the blocks used next, into slots that nothing needs before them.
    pub fn ahead(&mut self) -> Vec<Fetch> {
        let wanted = self.wanted();
        let mut fetches = Vec::new();
        for block in wanted.iter().copied() {
            if self.slot_of(block).is_some() {
                continue;
            }
            let is_needed = |slot: &Slot| slot.block.is_some_and(|block| wanted.contains(&block));
            let Some(slot) = self.ring.iter().position(|slot| slot.users == 0 && !is_needed(slot)) else {
                break;
            };
            self.ring[slot].block = Some(block);
            fetches.push(Fetch { block, slot: slot as u32 });
        }
        fetches
    }

    /// As many of the blocks used next as there are slots that are not in use.
    fn wanted(&self) -> Vec<u32> {
        let room = self.ring.iter().filter(|slot| slot.users == 0).count();
        let in_use = |block: u32| self.ring.iter().any(|slot| slot.users > 0 && slot.block == Some(block));
        let mut wanted = Vec::with_capacity(room);
        let mut ahead = self.order.ahead();
        while wanted.len() < room {
            let Some(block) = ahead.next() else { break };
            if !wanted.contains(&block) && !in_use(block) {
                wanted.push(block);
            }
        }
        wanted
    }

    /// The unused slot whose block is used last among those known to come.
    fn least_needed(&self) -> Option<u32> {
        let free = || self.ring.iter().enumerate().filter(|(_, slot)| slot.users == 0);
        if let Some((empty, _)) = free().find(|(_, slot)| slot.block.is_none()) {
            return Some(empty as u32);
        }
        let next_use = |slot: &Slot| self.order.ahead().position(|block| Some(block) == slot.block);
        let last = free().max_by_key(|(at, slot)| (next_use(slot).unwrap_or(usize::MAX), usize::MAX - at));
        last.map(|(slot, _)| slot as u32)
    }
}
