//! Which of a thread's annotations was open at a given time?

use std::sync::OnceLock;

use busbound_trace::{Event, EventId, Timestamp, Trace};

/// An annotation may be far back; beyond this many others, it is not looked for.
const FARTHEST: usize = 5_000;

/// Some events of one thread, sorted by start.
#[derive(Debug, Default)]
pub(super) struct Nested {
    events: Vec<EventId>,
    /// How far back the last event is that ends after each one begins; 0 if there is none, or it is too far. Made when it is needed.
    parents: OnceLock<Vec<u16>>,
}

impl Nested {
    pub(super) fn of(events: Vec<EventId>) -> Self {
        Self { events, parents: OnceLock::new() }
    }

    pub(super) fn ids(&self) -> &[EventId] {
        &self.events
    }

    /// The last one that begins by then and ends after it.
    pub(super) fn innermost<'a>(&self, trace: &'a Trace, at: Timestamp) -> Option<Event<'a>> {
        let before = self.events.partition_point(|&id| trace.event(id).start() <= at);
        self.last_until(trace, self.parents(trace), before, at).map(|place| trace.event(self.events[place]))
    }

    /// The last of those before a place that ends after `at`. All of them begin by then.
    fn last_until(&self, trace: &Trace, parents: &[u16], before: usize, at: Timestamp) -> Option<usize> {
        let mut place = before.checked_sub(1)?;
        // Those between an event and its parent ended before it began.
        while trace.event(self.events[place]).end() <= at {
            let back = usize::from(parents[place]);
            if back == 0 || before - (place - back) > FARTHEST {
                return None;
            }
            place -= back;
        }
        Some(place)
    }

    fn parents(&self, trace: &Trace) -> &[u16] {
        self.parents.get_or_init(|| {
            let mut parents: Vec<u16> = Vec::with_capacity(self.events.len());
            for (place, event) in self.events.iter().enumerate() {
                let parent = self.last_until(trace, &parents, place, trace.event(*event).start());
                let back = parent.and_then(|parent| u16::try_from(place - parent).ok());
                parents.push(back.unwrap_or(0));
            }
            parents
        })
    }
}

#[cfg(test)]
mod tests {
    use busbound_trace::{EventKind, TraceBuilder};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_last_that_is_open(spans in prop::collection::vec((0i64..60, 0i64..40), 0..60), at in 0i64..100) {
            let mut trace = TraceBuilder::default();
            let thread = trace.thread(1, 1);
            for (start, length) in &spans {
                trace.annotation(thread, "block", *start..start + length);
            }
            let trace = trace.finish();
            let events: Vec<Event<'_>> =
                trace.threads().flat_map(|track| track.events()).filter(|event| event.kind() == EventKind::Annotation).collect();
            let nested = Nested::of(events.iter().map(|event| event.id()).collect());
            let at = Timestamp::from_nanos(at);
            let last = events.iter().rfind(|event| event.start() <= at && event.end() > at).map(|event| event.id());
            prop_assert_eq!(nested.innermost(&trace, at).map(|event| event.id()), last);
        }
    }
}
