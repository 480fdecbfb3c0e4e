//! What do the passes that build the graph share?

use std::collections::BTreeMap;

use busbound_trace::{EventId, NameId};

use super::{Activity, Graph, WorkId};
use crate::Time;
use crate::host_memory::HostMemory;
use crate::search::first_after;

/// A graph under construction, with data that only its passes need.
pub(super) struct Builder<'a> {
    pub(super) activity: Activity<'a>,
    pub(super) graph: Graph,
    /// Start times of the steps.
    pub(super) starts: Vec<Time>,
    /// Streams by device and number.
    pub(super) streams: BTreeMap<(i32, i64), usize>,
    /// Recorded stream synchronizations, in file order.
    pub(super) syncs: Vec<EventId>,
    /// Calls that make a stream wait: thread and time, grouped by thread.
    pub(super) wait_calls: Vec<(usize, Time)>,
    /// Calls that record an event on a stream: thread, time and name.
    pub(super) mark_calls: Vec<(usize, Time, NameId)>,
    pub(super) host_memory: HostMemory,
    /// Whether kernels of a name do matrix work, by name number; `None` for names that were not needed yet.
    pub(super) is_matrix: Vec<Option<bool>>,
    /// Where the issued work of the last call is: that of the next one is mostly close.
    pub(super) near: usize,
}

impl Builder<'_> {
    /// The step at a given time.
    pub(super) fn step(&self, at: Time) -> usize {
        self.starts.partition_point(|start| *start <= at).saturating_sub(1)
    }

    /// The first work that a thread issued at or after a given time.
    pub(super) fn issued_next(&self, thread: usize, after: Time) -> Option<WorkId> {
        let graph = &self.graph;
        let order = &graph.threads[thread].calls;
        let next = first_after(order, |call| graph.calls[call].start < after);
        (next..order.end).find_map(|call| graph.issued_by(call).next_back())
    }

    /// The last work that a thread issued before a given time.
    pub(super) fn issued_last(&self, thread: usize, before: Time) -> Option<WorkId> {
        let graph = &self.graph;
        let order = &graph.threads[thread].calls;
        let next = first_after(order, |call| graph.calls[call].start < before);
        (order.start..next).rev().find_map(|call| graph.issued_by(call).next_back())
    }
}
