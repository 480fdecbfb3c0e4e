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
        let mut span: Option<Interval> = None;
        for work in trace.events().filter(|event| event.kind().is_gpu_work()) {
            recorded.extend(work.correlation());
            span = Some(span.map_or(work.interval(), |span| span.hull(work.interval())));
        }
        let mut counts = Self { all: 0, without_work: 0 };
        let Some(span) = span else { return counts };
        let is_launch = named(trace, |name| Call::of(name) == Call::Launch && !launches_graph(name));
        let captures = captures(trace);
        for track in trace.threads() {
            let launches = track.events().filter(|event| is_call(event, &is_launch));
            let inside = launches.filter(|call| call.start() >= span.start && call.start() <= span.end);
            counts.add(inside.filter(|call| !captures.covers(call.start())), &recorded);
        }
        counts
    }

    /// Counts the launches of one thread, in time order. A runtime call and the driver call inside it are one launch.
    fn add<'a>(&mut self, calls: impl Iterator<Item = Event<'a>>, recorded: &HashSet<u64>) {
        // The end of the outer call, and whether a kernel of it is known.
        let mut open: Option<(Timestamp, bool)> = None;
        for call in calls {
            // A launch without a correlation cannot be joined to anything.
            let Some(id) = call.correlation() else { continue };
            let has_work = recorded.contains(&id);
            match open.as_mut().filter(|(end, _)| call.start() < *end) {
                Some((_, known)) => {
                    self.without_work -= usize::from(has_work && !*known);
                    *known |= has_work;
                }
                None => {
                    self.all += 1;
                    self.without_work += usize::from(!has_work);
                    open = Some((call.end(), has_work));
                }
            }
        }
    }

    /// Whether so many kernels are missing that shares of the rest mislead.
    pub fn are_missing(&self) -> bool {
        self.without_work as f64 > UNRECORDED_LAUNCHES * self.all as f64
    }
}

/// By name number: whether the name is meant. Every name is asked once, not every event.
fn named(trace: &Trace, is_meant: impl Fn(&str) -> bool) -> Vec<bool> {
    trace.names().iter().map(is_meant).collect()
}

fn is_call(event: &Event<'_>, is_meant: &[bool]) -> bool {
    matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall)
        && is_meant[event.name_id().index()]
}

/// Times at which a stream was captured into a graph: launches then run nothing.
fn captures(trace: &Trace) -> IntervalSet {
    let is_capture = named(trace, |name| Call::of(name) == Call::Capture);
    if !is_capture.contains(&true) {
        return IntervalSet::default();
    }
    let mut calls: Vec<Event<'_>> = trace.events().filter(|event| is_call(event, &is_capture)).collect();
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
