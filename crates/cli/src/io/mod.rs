//! What reads, what writes, and what is said meanwhile.

pub(crate) mod interrupt;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod reading;
