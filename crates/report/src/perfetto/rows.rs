//! On which row of its stream is an event? Perfetto drops a slice that begins inside another one and ends after it, as
//! kernels with programmatic dependent launch and waits for a stream do. Such events get a row of their own.

use std::cmp::Reverse;

use busbound_trace::hash::HashMap;
use busbound_trace::{EventId, Place, Trace};

/// The events of streams that do not fit into the first row.
pub(super) struct Rows {
    of_event: HashMap<EventId, usize>,
    of_stream: HashMap<Place, usize>,
}

/// Start and end of a slice, in nanoseconds.
type Slice = (i64, i64);

impl Rows {
    pub(super) fn of(trace: &Trace) -> Self {
        let mut streams: HashMap<Place, Vec<(Slice, EventId)>> = HashMap::default();
        for event in trace.events() {
            if let place @ Place::Stream { .. } = event.place() {
                let start = event.start().as_nanos();
                let slice = (start, start.saturating_add(event.duration().get()));
                streams.entry(place).or_default().push((slice, event.id()));
            }
        }
        let mut rows = Self { of_event: HashMap::default(), of_stream: HashMap::default() };
        for track in trace.tracks() {
            let Some(mut events) = streams.remove(&track.place()) else { continue };
            events.sort_by_key(|((start, end), id)| (*start, Reverse(*end), *id));
            let count = rows.place(&events);
            rows.of_stream.insert(track.place(), count);
        }
        rows
    }

    /// Gives each event the first row that it fits into; returns the number of rows.
    fn place(&mut self, events: &[(Slice, EventId)]) -> usize {
        let mut open: Vec<Vec<Slice>> = Vec::new();
        for (slice, id) in events {
            let row = open.iter_mut().position(|row| fits(row, *slice)).unwrap_or(open.len());
            match open.get_mut(row) {
                Some(row) => row.push(*slice),
                None => open.push(vec![*slice]),
            }
            if row > 0 {
                self.of_event.insert(*id, row);
            }
        }
        open.len()
    }

    /// The row of an event; zero is the stream itself.
    pub(super) fn row(&self, event: EventId) -> usize {
        self.of_event.get(&event).copied().unwrap_or(0)
    }

    /// How many rows a stream has.
    pub(super) fn count(&self, stream: Place) -> usize {
        self.of_stream.get(&stream).copied().unwrap_or(1)
    }
}

/// Whether a slice comes after the open ones of a row, or lies within the last of them. Closes those that are over.
fn fits(open: &mut Vec<Slice>, (start, end): Slice) -> bool {
    while let Some(&(last_start, last_end)) = open.last() {
        let both_are_instants = last_start == last_end && start == end;
        if last_end < start || (last_end == start && !both_are_instants) {
            open.pop();
            continue;
        }
        return end <= last_end;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn slices_nest_or_follow_each_other() {
        let mut open = vec![(0, 100), (10, 50)];
        assert!(fits(&mut open, (20, 50)) && open.len() == 2);
        assert!(!fits(&mut open, (20, 51)), "it would end after the one around it");
        assert!(fits(&mut open, (50, 100)) && open == [(0, 100)], "one ends where the next begins");
        assert!(fits(&mut open, (100, 900)) && open.is_empty());
        assert!(fits(&mut vec![(5, 5)], (5, 5)), "instants do not exclude each other");
    }
}
