//! Which events belong together? Flow arrows that say more than the correlation does.

use crate::model::time::Timestamp;
use crate::model::track::TrackId;

/// A forward operator and the backward operator that belongs to it.
///
/// The ends are positions: the event is the one on that track that begins there.
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
