//! Which CUDA graphs ran without a trace of what ran in them?
//!
//! A profiler that records graphs as a whole needs a driver that tells it of them. Where that does not, launches of graphs are in
//! the file and their work is not, and the device looks idle while it works.

use std::collections::HashSet;

use busbound_trace::{Event, EventKind, Trace};

/// Above this share of the launches it is not chance: the last ones of a recording may have no work yet.
const MUCH: f64 = 0.10;

pub(crate) struct GraphLaunches<'a> {
    pub(crate) all: usize,
    /// Those without work, in order of time.
    pub(crate) unseen: Vec<Event<'a>>,
}

/// Whether a call of this name launches a graph.
pub(crate) fn launches_graph(name: &str) -> bool {
    name.contains("GraphLaunch")
}

impl<'a> GraphLaunches<'a> {
    pub(crate) fn of(trace: &'a Trace) -> Self {
        let is_launch: Vec<bool> = trace.names().iter().map(launches_graph).collect();
        if !is_launch.contains(&true) {
            return Self { all: 0, unseen: Vec::new() };
        }
        let launches = |kind| {
            let of_kind = trace.events().filter(move |event| event.kind() == kind);
            of_kind.filter(|event| is_launch[event.name_id().index()]).collect::<Vec<_>>()
        };
        let mut calls = launches(EventKind::RuntimeCall);
        // The runtime's calls the driver's, which launches nothing of its own then.
        if calls.is_empty() {
            calls = launches(EventKind::DriverCall);
        }
        let all = calls.len();
        // Launches are few beside the work of a run.
        let mut without_work: HashSet<u64> = calls.iter().filter_map(Event::correlation).collect();
        for work in trace.events().filter(|event| event.kind().is_gpu_work()) {
            work.correlation().map(|id| without_work.remove(&id));
        }
        calls.retain(|call| call.correlation().is_none_or(|id| without_work.contains(&id)));
        calls.sort_by_key(Event::start);
        Self { all, unseen: calls }
    }

    /// Whether so many are unseen that figures of the device's time mean nothing.
    pub(crate) fn are_missing(&self) -> bool {
        self.unseen.len() as f64 > MUCH * self.all as f64
    }
}
