//! What waited for what: a trace as one dependency graph of host calls, device work and the waits between them.
//!
//! [`Graph::of`] makes the graph, and every edge of it says by which [`Rule`] it came about and how much it can be trusted.
//! [`Model`] is the graph cut to a stretch of steps with the time that each part takes by itself; [`simulate`] runs it, changed
//! or not. [`path`] walks the graph for the critical path of a step, and [`idle`] asks it why a device had nothing to do.
//!
//! No IO and no clock: the same trace gives the same graph.

pub mod collective;
mod graph;
mod graph_launches;
pub mod host;
pub mod idle;
mod model;
pub mod path;
mod simulate;
pub mod thresholds;

pub use collective::CollectiveNames;
pub use graph::{
    Activity, Awaited, CallId, CallNode, Confidence, Graph, HostAction, Rule, Stream, Thread, Wait, WorkId,
    WorkKind, WorkNode, handed_over, is_matrix_kernel,
};
pub use graph_launches::{GraphLaunches, launches_graph};
pub use host::{Host, Origin, ThreadTimes};
pub use model::{EdgeCounts, HostCall, Model, Stretch, Work};
pub use simulate::{Sharing, Simulated, simulate};

/// Nanoseconds.
pub type Time = i64;
