//! What happened when? Passes over the trace. A pass that needs the steps gets them as arguments.

pub(crate) mod collectives;
pub(crate) mod compiled;
pub(crate) mod contention;
pub(crate) mod copies;
pub(crate) mod gaps;
pub(crate) mod launches;
pub(crate) mod links;
pub(crate) mod managed;
pub(crate) mod nodes;
pub(crate) mod queue;
pub(crate) mod rates;
pub(crate) mod route;
pub(crate) mod syncs;
pub(crate) mod timeline;
