//! Which CUDA graphs ran without a record of their work?
//!
//! A profiler that records a graph as a whole needs driver support. Without it, the trace contains graph launches but not their
//! work, and the device looks idle while it works.

use std::collections::HashSet;

use busbound_trace::{Event, EventKind, Trace};

use crate::thresholds::UNSEEN_GRAPHS;

/// CUDA graph launches, and those whose work is not in the trace.
#[derive(Debug)]
pub struct GraphLaunches<'a> {
    pub all: usize,
    /// Launches without recorded work, in time order.
    pub unseen: Vec<Event<'a>>,
}

/// Whether a call with this name launches a graph.
pub fn launches_graph(name: &str) -> bool {
    name.contains("GraphLaunch")
}

impl<'a> GraphLaunches<'a> {
    pub fn of(trace: &'a Trace) -> Self {
        let is_launch: Vec<bool> = trace.names().iter().map(launches_graph).collect();
        if !is_launch.contains(&true) {
            return Self { all: 0, unseen: Vec::new() };
        }
        let launches = |kind| {
            let of_kind = trace.events().filter(move |event| event.kind() == kind);
            of_kind.filter(|event| is_launch[event.name_id().index()]).collect::<Vec<_>>()
        };
        let mut calls = launches(EventKind::RuntimeCall);
        // A runtime call contains the driver call: count driver calls only if there are no runtime calls.
        if calls.is_empty() {
            calls = launches(EventKind::DriverCall);
        }
        let all = calls.len();
        // A run has few launches compared with its work, so the set stays small.
        let mut without_work: HashSet<u64> = calls.iter().filter_map(Event::correlation).collect();
        for work in trace.events().filter(|event| event.kind().is_gpu_work()) {
            work.correlation().map(|id| without_work.remove(&id));
        }
        calls.retain(|call| call.correlation().is_none_or(|id| without_work.contains(&id)));
        calls.sort_by_key(Event::start);
        Self { all, unseen: calls }
    }

    /// Whether so many launches lack recorded work that device time figures are meaningless.
    pub fn are_missing(&self) -> bool {
        self.unseen.len() as f64 > UNSEEN_GRAPHS * self.all as f64
    }

    /// Whether a graph without recorded work was launched between two calls.
    pub fn ran_unseen(&self, before: &Event<'_>, call: &Event<'_>) -> bool {
        let first = self.unseen.partition_point(|launch| launch.start() <= before.start());
        self.unseen.get(first).is_some_and(|launch| launch.start() < call.start())
    }
}
