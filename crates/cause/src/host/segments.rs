//! What did a thread do at each moment? Its time as segments without gaps, each attributed to the innermost event around it.

use busbound_trace::{Call, Event, EventId, EventKind, Interval, Timestamp, Track, TrackId};

use super::Host;

/// A segment of a thread's time. The segments of a window have no gaps between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostSegment {
    pub interval: Interval,
    pub activity: HostActivity,
    /// The innermost event around it; `None` if nothing is recorded.
    pub event: Option<EventId>,
}

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostActivity {
    /// A call into the runtime or driver.
    Call(Call),
    Operator,
    /// Waiting for the next batch.
    Input,
    /// A named range with nothing recorded inside.
    Annotation,
    PythonFrame,
    /// Nothing is recorded.
    Unrecorded,
}

impl Host<'_> {
    /// What a thread did within a window.
    pub fn segments(&self, thread: TrackId, window: Interval) -> Vec<HostSegment> {
        let mut segments = Vec::new();
        self.each_segment(thread, window, |segment| segments.push(segment));
        segments
    }

    /// Calls `found` with each segment, in order.
    pub(super) fn each_segment(&self, thread: TrackId, window: Interval, found: impl FnMut(HostSegment)) {
        let track = self.trace.track(thread);
        let first = track.position(window.start);
        let later = track.events_from(first).filter(is_activity);
        self.sweep((&track, first), window, (is_activity, later), found);
    }

    /// Calls `found` with each segment of a window, if only some events count: which ones, and those of them from the first one on
    /// that begins within the window.
    pub(super) fn sweep<'e>(
        &'e self,
        (track, first): (&Track<'e>, usize),
        window: Interval,
        (counts, later): (impl Fn(&Event<'_>) -> bool, impl Iterator<Item = Event<'e>>),
        found: impl FnMut(HostSegment),
    ) {
        let mut sweep = Sweep { host: self, at: window.start, open: Vec::new(), inputs: 0, found };
        let mut around: Vec<Event<'_>> = track.running(first, window.start).filter(counts).collect();
        around.reverse();
        let within = later.take_while(|event| event.start() < window.end);
        for event in around.into_iter().chain(within) {
            sweep.close_until(event.start().max(window.start));
            sweep.open(event, window.end);
        }
        sweep.close_until(window.end);
        sweep.cover(window.end);
    }

    fn activity_of(&self, event: &Event<'_>) -> HostActivity {
        let waits_for_input = self.is_input(event.name_id());
        match event.kind() {
            EventKind::RuntimeCall | EventKind::DriverCall => HostActivity::Call(self.call_kind(event)),
            _ if waits_for_input => HostActivity::Input,
            EventKind::Annotation => HostActivity::Annotation,
            EventKind::PythonFrame => HostActivity::PythonFrame,
            _ => HostActivity::Operator,
        }
    }
}

fn is_activity(event: &Event<'_>) -> bool {
    !matches!(event.kind(), EventKind::ProfilerSpan | EventKind::ProfilerOverhead)
}

/// Goes through a thread's events in order; `open` has those around the current time, innermost last.
struct Sweep<'h, 'a, F> {
    host: &'h Host<'a>,
    at: Timestamp,
    open: Vec<(Timestamp, Event<'a>)>,
    /// How many of them wait for the next batch.
    inputs: usize,
    found: F,
}

impl<'a, F: FnMut(HostSegment)> Sweep<'_, 'a, F> {
    fn open(&mut self, event: Event<'a>, until: Timestamp) {
        self.inputs += usize::from(self.host.is_input(event.name_id()));
        self.open.push((event.end().min(until), event));
    }

    /// Closes all events that end by `until`, and covers the time up to it.
    fn close_until(&mut self, until: Timestamp) {
        while let Some(&(end, event)) = self.open.last() {
            if end > until {
                break;
            }
            self.cover(end);
            self.open.pop();
            self.inputs -= usize::from(self.host.is_input(event.name_id()));
        }
        self.cover(until);
    }

    fn cover(&mut self, until: Timestamp) {
        if until <= self.at {
            return;
        }
        let innermost = self.open.last().map(|(_, event)| *event);
        let activity = match innermost.map(|event| self.host.activity_of(&event)) {
            Some(call @ HostActivity::Call(_)) => call,
            // Inside a wait for input everything except calls is part of it.
            _ if self.inputs > 0 => HostActivity::Input,
            Some(activity) => activity,
            None => HostActivity::Unrecorded,
        };
        let interval = Interval::new(self.at, until);
        (self.found)(HostSegment { interval, activity, event: innermost.map(|event| event.id()) });
        self.at = until;
    }
}
