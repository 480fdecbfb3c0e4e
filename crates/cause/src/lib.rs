//! What waited for what: a trace as one dependency graph, and what it takes when it is run again.

mod build;
mod model;
mod simulate;

pub use build::{EVENT_PASSES, build};
pub use model::*;
pub use simulate::{Sharing, Simulated, simulate};
