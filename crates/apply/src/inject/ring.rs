//! Pinned memory in slots. A slot is free, with a job, or draining: the GPU still reads it.

use super::driver::{Driver, Event, NOT_READY};
use super::state::State;
use super::system;

/// The largest part that is copied at once: measured best, see docs/results/try.md.
pub(super) const SLOT: usize = 4 << 20;
/// Pinned at once: it takes some milliseconds, while the program waits.
const SEGMENT: usize = 32 << 20;

/// Memory for one part of a copy, and the event after its last use by the GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) memory: *mut u8,
    pub(super) event: Event,
}

// SAFETY: a slot is used by one job at a time; its memory and event belong to no thread.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

/// Memory that the slots are parts of.
#[derive(Debug)]
struct Segment(*mut u8);

// SAFETY: an address that is only given back.
unsafe impl Send for Segment {}

#[derive(Debug)]
pub(super) struct Ring {
    node: Option<u32>,
    free: Vec<Slot>,
    draining: Vec<Slot>,
    segments: Vec<Segment>,
    /// No more memory could be pinned.
    is_full: bool,
}

impl Ring {
    pub(super) fn new(node: Option<u32>) -> Self {
        Self { node, free: Vec::new(), draining: Vec::new(), segments: Vec::new(), is_full: false }
    }

    /// Up to this many slots, without waiting for anything; fewer if there are not as many.
    pub(super) fn take(&mut self, state: &State, driver: &Driver, most: usize) -> Vec<Slot> {
        if self.free.len() < most {
            let (drained, draining) = std::mem::take(&mut self.draining)
                .into_iter()
                .partition(|slot| driver.query(slot.event) != NOT_READY);
            self.draining = draining;
            self.free.extend::<Vec<Slot>>(drained);
        }
        while self.free.len() < most && !self.is_full {
            self.is_full = !self.grow(state, driver);
        }
        let first = self.free.len().saturating_sub(most);
        self.free.split_off(first)
    }

    /// Slots that nobody uses.
    pub(super) fn give_back(&mut self, slots: impl IntoIterator<Item = Slot>) {
        self.free.extend(slots);
    }

    /// Slots that the GPU uses until their event.
    pub(super) fn drain(&mut self, slots: impl IntoIterator<Item = Slot>) {
        self.draining.extend(slots);
    }

    /// Gives the memory back after the context has ended, which has also ended the registration.
    pub(super) fn release(&mut self, driver: &Driver) {
        self.free.clear();
        self.draining.clear();
        self.is_full = true;
        for Segment(memory) in self.segments.drain(..) {
            // The end of the context should have done it; memory that stays registered must not be given back.
            driver.unregister(memory);
            system::unmap(memory, SEGMENT);
        }
    }

    /// Pins one more segment; false if that is not allowed or not possible.
    fn grow(&mut self, state: &State, driver: &Driver) -> bool {
        if (self.segments.len() + 1) * SEGMENT > state.settings.ring {
            return false;
        }
        let Some(memory) = system::map(SEGMENT, self.node) else { return false };
        let code = driver.register(memory, SEGMENT);
        if code != 0 {
            system::unmap(memory, SEGMENT);
            state.say_once(&format!("the driver pins no memory (error {code}); see ulimit -l"));
            return false;
        }
        self.segments.push(Segment(memory));
        for at in (0..SEGMENT).step_by(SLOT) {
            let Some(event) = driver.event() else { break };
            self.free.push(Slot { memory: memory.wrapping_add(at), event });
        }
        true
    }
}
