//! Who waited for whom? Recorded where the profiler was asked for it, else inferred.

use busbound_trace::{Event, EventKind, IntervalSet, Place, SyncKind, Timestamp, TrackId};
use hashbrown::HashMap;

use crate::analysis::facts::Facts;
use busbound_trace::Call;

/// A stream that waits for what another one had been given before an event was recorded on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamWait {
    /// When the host asked for it.
    pub(super) asked: Timestamp,
    /// The stream waited for, and when the host recorded the event on it. Newer profilers name the event
    /// alone and not where it was recorded.
    pub(super) source: Option<(TrackId, Timestamp)>,
}

/// What a synchronisation of the host waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostWait {
    /// What one stream had been given before a moment.
    Stream { stream: TrackId, until: Timestamp },
    /// Everything that had been given to a device.
    Device(i32),
    /// An event of which the trace does not say where it was recorded.
    Unknown,
}

/// A call that the host cannot pass before the device has done something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocking<'a> {
    pub(super) call: Event<'a>,
    /// The copy that a long copying call waits for.
    pub(super) copy: Option<Event<'a>>,
}

#[derive(Debug)]
pub(super) struct Waits<'f, 'a> {
    /// Whether the trace records synchronisations at all.
    pub(super) are_recorded: bool,
    /// By the stream that waits, in the order asked.
    pub(super) of_stream: HashMap<TrackId, Vec<StreamWait>>,
    /// By the correlation of the call.
    pub(super) of_host: HashMap<u64, HostWait>,
    /// By thread, in order.
    pub(super) blocking: HashMap<TrackId, Vec<Blocking<'a>>>,
    /// Every stream and its device.
    pub(super) streams: Vec<(TrackId, i32)>,
    /// Threads that launch, and when each worked.
    pub(super) launching: Vec<(TrackId, &'f IntervalSet)>,
}

impl<'f, 'a> Waits<'f, 'a> {
    pub(super) fn of(facts: &'f Facts<'a>) -> Self {
        let (trace, host) = (facts.trace, &facts.host);
        let tracks: HashMap<Place, TrackId> =
            trace.streams().map(|track| (track.place(), track.id())).collect();
        let mut of_stream: HashMap<TrackId, Vec<StreamWait>> = HashMap::new();
        let mut of_host = HashMap::new();
        let mut are_recorded = false;
        for event in trace.events().filter(|event| event.kind() == EventKind::Synchronisation) {
            let (Some(sync), Place::Stream { device, stream }) = (event.synchronisation(), event.place())
            else {
                continue;
            };
            are_recorded = true;
            let Some(correlation) = event.correlation() else { continue };
            let stream_of = |stream: i64| tracks.get(&Place::Stream { device, stream }).copied();
            let record = sync.waits_on_record.and_then(|id| host.call_with(id)).map(|call| call.start());
            let source = sync.waits_on_stream.and_then(stream_of);
            let asked = host.call_with(correlation).map_or(event.start(), |call| call.start());
            match sync.kind {
                SyncKind::StreamWaitEvent => {
                    let waits = of_stream.entry(event.track_id()).or_default();
                    waits.push(StreamWait { asked, source: source.zip(record) });
                }
                SyncKind::EventSync => {
                    let wait = match (source, record) {
                        (Some(stream), Some(until)) => HostWait::Stream { stream, until },
                        _ => HostWait::Unknown,
                    };
                    of_host.insert(correlation, wait);
                }
                SyncKind::StreamSync => {
                    let stream = source.or_else(|| stream_of(stream)).unwrap_or(event.track_id());
                    of_host.insert(correlation, HostWait::Stream { stream, until: asked });
                }
                _ => {
                    of_host.insert(correlation, HostWait::Device(device));
                }
            }
        }
        for waits in of_stream.values_mut() {
            waits.sort_by_key(|wait| wait.asked);
        }
        let mut blocking: HashMap<TrackId, Vec<Blocking<'a>>> = HashMap::new();
        for call in host.synchronisations() {
            blocking.entry(call.track_id()).or_default().push(Blocking { call, copy: None });
        }
        for copy in &facts.copies {
            let Some(call) = copy.call.filter(|call| host.call_kind(call) == Call::Copy) else { continue };
            // A call that has returned before its copy ended has not waited for it.
            if copy.event.end() > call.start() && copy.event.end() <= call.end() {
                blocking.entry(call.track_id()).or_default().push(Blocking { call, copy: Some(copy.event) });
            }
        }
        for calls in blocking.values_mut() {
            calls.sort_by_key(|blocking| (blocking.call.start(), blocking.call.id()));
        }
        let streams = tracks.iter().filter_map(|(place, track)| match place {
            Place::Stream { device, .. } => Some((*track, *device)),
            Place::Thread { .. } => None,
        });
        let mut streams: Vec<_> = streams.collect();
        streams.sort_unstable();
        let launching = host.threads().into_iter().filter(|(_, times)| times.launches);
        let launching = launching.map(|(track, times)| (track, &times.worked)).collect();
        Self { are_recorded, of_stream, of_host, blocking, streams, launching }
    }
}
