//! Do the streams of a device run at the same time, or by turns?

use busbound_trace::{IntervalSet, Nanos, Place, Track};

use crate::analysis::facts::Facts;

/// How the work of the busiest device is split over its streams.
pub(crate) struct StreamSplit {
    /// Work of all streams but the busiest.
    pub(crate) smaller_ms: f64,
    /// Time in which more than one stream was busy.
    pub(crate) shared_ms: f64,
    /// How often work of one stream is followed by work of another.
    pub(crate) switches: u64,
}

impl Facts<'_> {
    /// The streams, if they never overlap because the host synchronizes between them.
    pub(crate) fn serialized_streams(&self) -> Option<StreamSplit> {
        let waits = self.syncs.avoidable();
        self.stream_split().filter(|split| {
            split.smaller_ms > 0.05 * self.time.analyzed_ms
                && split.shared_ms < 0.05 * split.smaller_ms
                && waits.ms > 0.5 * self.time.analyzed_ms
                && waits.count as f64 >= 2.0 * self.steps()
                && waits.count * 2 >= split.switches
        })
    }

    /// `None` if only one stream has work.
    pub(crate) fn stream_split(&self) -> Option<StreamSplit> {
        let device = self.timelines.iter().max_by_key(|t| t.busy.length())?.device;
        let on_device = || {
            let streams = self.trace.streams();
            streams.filter(|track| matches!(track.place(), Place::Stream { device: d, .. } if d == device))
        };
        let mut starts: Vec<_> = on_device()
            .flat_map(|track| track.events().map(move |event| (event, track.id())))
            .filter(|(event, _)| event.kind().is_gpu_work())
            .map(|(event, track)| (event.start(), track))
            .collect();
        starts.sort();
        let switches = starts.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as u64;
        let work = |track: &Track<'_>| {
            let work = track.events().filter(|event| event.kind().is_gpu_work());
            IntervalSet::from_unsorted(work.map(|event| event.interval()))
        };
        let streams: Vec<IntervalSet> =
            on_device().map(|track| work(&track)).filter(|times| !times.is_empty()).collect();
        if streams.len() < 2 {
            return None;
        }
        let all: Nanos = streams.iter().map(IntervalSet::length).sum();
        let busiest = streams.iter().map(IntervalSet::length).max().unwrap_or_default();
        // What is in several streams is in the sum of their times more than once.
        let union = IntervalSet::from_unsorted(streams.iter().flat_map(IntervalSet::iter));
        let (shared, smaller) = (all - union.length(), all - busiest);
        Some(StreamSplit { switches, smaller_ms: smaller.as_millis(), shared_ms: shared.as_millis() })
    }
}
