//! How long do copies and gaps take? Helpers that several checks share.

use busbound_trace::{Direction, Interval};

use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use busbound_cause::idle::GapCause;

/// When the copies ran.
pub(in crate::findings) fn times_of(copies: &[&Copy<'_>]) -> Vec<Interval> {
    copies.iter().map(|copy| copy.interval()).collect()
}

/// Total duration of the copies.
pub(in crate::findings) fn total_ms(copies: &[&Copy<'_>]) -> f64 {
    copies.iter().map(|copy| copy.event.duration().as_millis()).sum()
}

/// Bytes of the copies in one direction.
pub(in crate::findings) fn bytes_moved(copies: &[&Copy<'_>], direction: Direction) -> u64 {
    let these = copies.iter().filter(|copy| copy.transfer.direction == direction);
    these.filter_map(|copy| copy.bytes()).fold(0, u64::saturating_add)
}

/// When the device was idle for this cause.
pub(in crate::findings) fn gaps_of(facts: &Facts<'_>, cause: GapCause) -> Vec<Interval> {
    facts.gaps.pieces().filter(|gap| gap.cause == cause).map(|gap| gap.interval).collect()
}
