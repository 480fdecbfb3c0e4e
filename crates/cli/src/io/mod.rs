//! Reading, writing, and what is said on standard error while it happens.

pub(crate) mod arrivals;
pub(crate) mod interrupt;
pub(crate) mod kind;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod reading;
