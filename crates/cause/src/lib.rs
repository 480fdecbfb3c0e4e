//! What waited for what? A trace as one dependency graph of host calls, device work and the waits between them.
//!
//! [`Graph::of`] builds the graph; every edge names the [`Rule`] that made it, which says how reliable it is. [`Model`] is the
//! part of the graph within a range of steps, with the time of each call and kernel without contention; [`simulate`] runs it,
//! changed or unchanged, and [`Bounds`] asks how long it would take if a resource were free. [`path`] walks the graph for the critical path of a step, and [`idle`] finds out why a device was idle.
//!
//! No I/O and no clock: the same trace always gives the same graph.

mod bounds;
mod captures;
pub mod collective;
mod few;
mod graph;
mod graph_launches;
mod grouped;
pub mod host;
mod host_collective;
mod host_memory;
pub mod idle;
mod issued;
mod matrix;
mod model;
pub mod parallel;
pub mod path;
mod races;
mod records;
mod rereads;
mod rocm;
mod running;
mod search;
mod sharing;
mod simulate;
pub mod thresholds;
pub mod training;

use busbound_trace::{Interval, Timestamp};

pub use bounds::{Bounds, Resource, Shape, avoidable_waits};
pub use collective::{CollectiveNames, CollectiveOp};
pub use few::Few;
pub use graph::{
    Activity, Awaited, CallAction, CallId, CallNode, Confidence, Graph, HostAction, HostTime, NodeId, Rule,
    StepMarks, Stream, Thread, Wait, WorkId, WorkKind, WorkNode, waited_for_thread,
};
pub use graph_launches::{GraphLaunches, launches_graph};
pub use host::{Host, HostUse, Origin, OriginNames, ThreadTimes, UsedTime};
pub use host_collective::{HostCollective, HostIssue};
pub use host_memory::{CountedTraffic, HostBytes, HostMemory, HostMemoryKernel};
pub use matrix::is_matrix_kernel;
pub use model::{
    EdgeCounts, FreshPages, HostCall, HostThreads, JoinedRank, Model, RecordingCost, TraceRange, Work,
};
pub use races::{Race, Side, races};
pub use records::{ClockFault, Counted, Records};
pub use rereads::Once;
pub use rocm::is_rocm;
pub use sharing::Sharing;
pub use simulate::{Prepared, Simulated, simulate};

/// Nanoseconds.
pub type Time = i64;

/// From `start` to `end`; empty if the end is before the start.
fn interval(start: Time, end: Time) -> Interval {
    Interval::new(Timestamp::from_nanos(start), Timestamp::from_nanos(end.max(start)))
}
