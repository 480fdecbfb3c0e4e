//! Do the bytes that go up come down again in each step?

use std::collections::BTreeMap;

use busbound_trace::{Direction, Timestamp};

use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;

const SMALLEST: u64 = 64 << 10;
/// Share of the bytes that must be in pairs.
const PAIRED: f64 = 0.95;

/// Data that goes to the device and comes back after use, in the same sizes.
pub(crate) struct Returned<'f, 'a> {
    /// Bytes in each direction, over all steps.
    pub(crate) up: u64,
    pub(crate) down: u64,
    /// Share of the bytes that came back.
    pub(crate) share: f64,
    /// The D2H copies.
    pub(crate) copies: Vec<&'f Copy<'a>>,
}

impl<'f, 'a> Returned<'f, 'a> {
    /// `None` if most bytes go in one direction only, or come down first, as gradients do before an optimizer on the CPU sends
    /// weights up.
    pub(crate) fn of(facts: &'f Facts<'a>) -> Option<Self> {
        // Without steps, a copy down may belong to a later use than the copy up.
        if facts.window.steps.is_empty() {
            return None;
        }
        let mut copies: Vec<&Copy<'_>> = facts
            .issued_copies()
            .filter(|copy| copy.is_on_bus() && copy.bytes().is_some_and(|bytes| bytes >= SMALLEST))
            .collect();
        copies.sort_by_key(|copy| (copy.event.start(), copy.event.id()));
        let moved = |direction: Direction| {
            let these = copies.iter().filter(|copy| copy.transfer.direction == direction);
            these.filter_map(|copy| copy.bytes()).fold(0, u64::saturating_add)
        };
        let (up, down) = (moved(Direction::HostToDevice), moved(Direction::DeviceToHost));
        let returned = paired_bytes(facts, &copies, Direction::DeviceToHost);
        let fetched = paired_bytes(facts, &copies, Direction::HostToDevice);
        let share = returned as f64 / up.max(down) as f64;
        if down == 0 || share < PAIRED || fetched >= returned {
            return None;
        }
        copies.retain(|copy| copy.transfer.direction == Direction::DeviceToHost);
        Some(Self { up, down, share, copies })
    }
}

/// The bytes of copies in direction `second` that follow a copy of the same size in the other direction in the same step.
fn paired_bytes(facts: &Facts<'_>, copies: &[&Copy<'_>], second: Direction) -> u64 {
    // Per step and size: when the copies of the other direction that have no partner yet ended.
    let mut waiting: BTreeMap<(Option<usize>, u64), Vec<Timestamp>> = BTreeMap::new();
    let mut paired = 0u64;
    for copy in copies {
        let size = copy.bytes().unwrap_or(0);
        let open = waiting.entry((facts.window.step_of_work(&copy.event), size)).or_default();
        if copy.transfer.direction != second {
            open.push(copy.event.end());
        } else if open.first().is_some_and(|ended| *ended <= copy.event.start()) {
            open.remove(0);
            paired = paired.saturating_add(size);
        }
    }
    paired
}
