//! What happened when: passes over the trace. Where steps begin, and how many there are, is told to those who need it.

pub(crate) mod compiled;
pub(crate) mod contention;
pub(crate) mod copies;
pub(crate) mod gaps;
pub(crate) mod launches;
pub(crate) mod links;
pub(crate) mod managed;
pub(crate) mod queue;
pub(crate) mod route;
pub(crate) mod syncs;
pub(crate) mod timeline;
