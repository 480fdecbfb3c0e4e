//! Which events belong together, and how much crossed the bus? Flow arrows, and byte counters of a GPU's link.

use crate::model::size::Bytes;
use crate::model::time::Timestamp;
use crate::model::track::TrackId;
use crate::model::transfer::Direction;

/// A forward operator and its backward operator.
///
/// The ends are positions: the event on that track that begins there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub id: u64,
    pub from: LinkEnd,
    pub to: LinkEnd,
}

/// One end of a [`Link`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkEnd {
    pub track: TrackId,
    pub at: Timestamp,
}

/// Bytes that crossed a GPU's link in one direction since the previous reading of it, from the driver's counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkTraffic {
    pub at: Timestamp,
    pub gpu: i32,
    pub direction: Direction,
    pub bytes: Bytes,
}
