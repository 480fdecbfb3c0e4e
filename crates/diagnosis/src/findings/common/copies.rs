//! Times and sums of copies and gaps, as several checks need them.

use busbound_trace::{Direction, Interval};

use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use busbound_cause::idle::GapCause;

/// When copies ran.
pub(in crate::findings) fn times_of(copies: &[&Copy<'_>]) -> Vec<Interval> {
    copies.iter().map(|copy| copy.interval()).collect()
}

/// What copies took, added up.
pub(in crate::findings) fn total_ms(copies: &[&Copy<'_>]) -> f64 {
    copies.iter().map(|copy| copy.event.duration().as_millis()).sum()
}

/// Bytes of the copies of one direction.
pub(in crate::findings) fn bytes_moved(copies: &[&Copy<'_>], direction: Direction) -> u64 {
    let these = copies.iter().filter(|copy| copy.transfer.direction == direction);
    these.filter_map(|copy| copy.bytes()).fold(0, u64::saturating_add)
}

/// When the device was idle for this cause.
pub(in crate::findings) fn gaps_of(facts: &Facts<'_>, cause: GapCause) -> Vec<Interval> {
    facts.gaps.iter().filter(|gap| gap.cause == cause).map(|gap| gap.interval).collect()
}

/// Smaller pinned copies are bound by the cost of their call and not by the link: no stream of their own and
/// no faster link makes them cheaper.
pub(in crate::findings) const LARGE_COPY: u64 = 1 << 20;

/// Whether a copy is so large that the link decides how long it takes.
pub(in crate::findings) fn is_large(copy: &Copy<'_>) -> bool {
    copy.bytes().is_some_and(|bytes| bytes >= LARGE_COPY)
}
