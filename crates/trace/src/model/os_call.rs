//! Where does a thread wait outside of CUDA? Calls of system libraries, as Nsight Systems traces them.

use crate::interval::Interval;
use crate::model::names::NameId;
use crate::model::track::TrackId;

/// A call of a system library by a thread that has other events: `read`, `poll`, `pthread_cond_wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OsCall {
    pub track: TrackId,
    pub interval: Interval,
    pub name: NameId,
}
