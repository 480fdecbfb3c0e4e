//! When was a stream captured into a graph?

use busbound_trace::{Event, Interval, IntervalSet};

/// From the beginning of each capture to its end, among calls of captures in any order. Launches then run nothing.
pub(crate) fn capture_times<'t>(calls: impl Iterator<Item = Event<'t>>) -> IntervalSet {
    let mut calls: Vec<Event<'_>> = calls.collect();
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
