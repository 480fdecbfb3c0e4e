//! Which kernel launches have no kernel in the trace?
//!
//! A profiler whose buffers overflow drops records. The GPU then looks idle while it works, and every share is wrong.

use std::collections::HashSet;

use busbound_trace::{Call, Event, EventKind, Interval, IntervalSet, Timestamp, Trace};

use crate::graph_launches::launches_graph;
use crate::thresholds::UNRECORDED_LAUNCHES;

/// Kernel launches during the recorded GPU work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchRecords {
    pub all: usize,
    /// Launches whose kernel is not in the trace.
    pub without_work: usize,
}

impl LaunchRecords {
    pub fn of(trace: &Trace) -> Self {
        let mut recorded: HashSet<u64> = HashSet::new();
        let (mut first, mut last): (Option<Timestamp>, Option<Timestamp>) = (None, None);
        for work in trace.events().filter(|event| event.kind().is_gpu_work()) {
            recorded.extend(work.correlation());
            first = Some(first.map_or(work.start(), |time| time.min(work.start())));
            last = Some(last.map_or(work.end(), |time| time.max(work.end())));
        }
        let (Some(first), Some(last)) = (first, last) else { return Self { all: 0, without_work: 0 } };
        let is_launch: Vec<bool> = trace
            .names()
            .iter()
            .map(|name| Call::of(name) == Call::Launch && !launches_graph(name))
            .collect();
        let captures = captures(trace);
        let (mut all, mut without_work) = (0, 0);
        for track in trace.threads() {
            let launches =
                track.events().filter(|event| is_call(event) && is_launch[event.name_id().index()]);
            let inside = launches.filter(|call| call.start() >= first && call.start() <= last);
            for call in outermost(inside.filter(|call| !captures.covers(call.start()))) {
                all += 1;
                without_work += usize::from(!call.iter().any(|id| recorded.contains(id)));
            }
        }
        Self { all, without_work }
    }

    /// Whether so many kernels are missing that shares of the rest mislead.
    pub fn are_missing(&self) -> bool {
        self.without_work as f64 > UNRECORDED_LAUNCHES * self.all as f64
    }
}

fn is_call(event: &Event<'_>) -> bool {
    matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall)
}

/// The correlations of each launch: a runtime call and the driver call inside it are one launch.
fn outermost<'a>(calls: impl Iterator<Item = Event<'a>>) -> Vec<Vec<u64>> {
    let mut launches: Vec<Vec<u64>> = Vec::new();
    let mut end: Option<Timestamp> = None;
    for call in calls {
        // A launch without a correlation cannot be joined to anything.
        let Some(id) = call.correlation() else { continue };
        match launches.last_mut().filter(|_| end.is_some_and(|end| call.start() < end)) {
            Some(outer) => outer.push(id),
            None => {
                launches.push(vec![id]);
                end = Some(call.end());
            }
        }
    }
    launches
}

/// Times at which a stream was captured into a graph: launches then run nothing.
fn captures(trace: &Trace) -> IntervalSet {
    let mut calls: Vec<Event<'_>> = trace.events().filter(is_call).collect();
    calls.retain(|call| Call::of(call.name()) == Call::Capture);
    calls.sort_by_key(Event::start);
    let mut times = Vec::new();
    let mut begin = None;
    for call in calls {
        if call.name().contains("BeginCapture") {
            begin = begin.or(Some(call.start()));
        } else if call.name().contains("EndCapture")
            && let Some(from) = begin.take()
        {
            times.push(Interval::new(from, call.end()));
        }
    }
    IntervalSet::from_unsorted(times)
}
