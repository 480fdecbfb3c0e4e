//! How do segments become one trace? They are merged in file order, so that the result does not depend on the number
//! of threads.

use std::collections::HashMap;

use crate::kineto::batch::{Batch, FlowEnd, LaunchArrow};
use crate::kineto::envelope::Envelope;
use crate::model::builder::TraceBuilder;
use crate::model::events::EventId;
use crate::model::link::{Link, LinkEnd};
use crate::model::names::NameId;
use crate::model::origin::Origin;
use crate::model::stats::{ImportStats, Repair};
use crate::model::trace::Recorded;
use crate::model::track::{Place, TrackId};

/// Merges batches into the trace of a builder.
#[derive(Debug)]
pub(crate) struct Assembler<'a> {
    trace: &'a mut Recorded,
    envelope: Envelope,
    launch_arrows: Vec<LaunchArrow>,
    backward_flows: Vec<FlowEnd>,
    // Old id to new id, for the current batch.
    names: Vec<NameId>,
    tracks: Vec<TrackId>,
}

impl<'a> Assembler<'a> {
    pub(crate) fn new(builder: &'a mut TraceBuilder) -> Self {
        Self {
            trace: &mut builder.trace,
            envelope: Envelope::default(),
            launch_arrows: Vec::new(),
            backward_flows: Vec::new(),
            names: Vec::new(),
            tracks: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, batch: &mut Batch, envelope: Envelope) {
        let Self { trace, names, tracks, .. } = self;
        names.clear();
        names.extend(batch.names.iter().map(|text| trace.names.intern(text)));
        tracks.clear();
        tracks.extend(batch.tracks.iter().map(|(_, place)| trace.tracks.intern(place.moved(names))));

        trace.events.append(&batch.events, names, tracks);
        trace.memory.extend_from_slice(&batch.memory);
        for &((process, thread), name) in &batch.given_names {
            let key = (process.moved(names), thread.map(|label| label.moved(names)));
            trace.given_names.insert(key, names[name.index()]);
        }
        self.launch_arrows.extend_from_slice(&batch.launch_arrows);
        self.backward_flows.extend(
            batch.backward_flows.iter().map(|end| FlowEnd { track: tracks[end.track.index()], ..*end }),
        );
        trace.stats.absorb(std::mem::take(&mut batch.stats));
        self.envelope.absorb(envelope);
    }

    pub(crate) fn stats(&self) -> &ImportStats {
        &self.trace.stats
    }

    pub(crate) fn stats_mut(&mut self) -> &mut ImportStats {
        &mut self.trace.stats
    }

    pub(crate) fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    pub(crate) fn is_empty(&self) -> bool {
        let not_kept = self.trace.stats.not_kept.iter().filter(|(what, _)| *what != "empty objects").count();
        self.trace.events.len() == 0
            && self.trace.memory.is_empty()
            && self.trace.given_names.is_empty()
            && not_kept == 0
    }

    pub(crate) fn event_count(&self) -> usize {
        self.trace.events.len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.trace.heap_bytes()
            + self.launch_arrows.capacity() * size_of::<LaunchArrow>()
            + self.backward_flows.capacity() * size_of::<FlowEnd>()
    }

    pub(crate) fn finish(mut self) {
        self.find_missing_correlations();
        self.pair_backward_flows();
        let format = self.trace.origin.format;
        self.trace.origin = Origin { format, ..self.envelope.origin };
    }

    /// GPU work without a correlation may have a flow arrow that points to it.
    fn find_missing_correlations(&mut self) {
        let arrows = std::mem::take(&mut self.launch_arrows);
        let events = &mut self.trace.events;
        let lacking: Vec<usize> = (0..events.len())
            .filter(|&i| events.kind[i].is_gpu_work() && events.correlation.get(i).is_none())
            .collect();
        if lacking.is_empty() || arrows.is_empty() {
            return;
        }
        let heads: HashMap<_, _> =
            arrows.iter().map(|arrow| ((arrow.device, arrow.stream, arrow.at), arrow.id)).collect();
        for i in lacking {
            let Place::Stream { device, stream } = self.trace.tracks.get(events.track(i)) else { continue };
            if let Some(&id) = heads.get(&(device, stream, events.start[i])) {
                events.correlation.set(i, Some(id));
                self.trace.stats.repair(Repair::CorrelationFromFlow);
            }
        }
    }

    fn pair_backward_flows(&mut self) {
        let mut ends = std::mem::take(&mut self.backward_flows);
        // Ids may be reused later in the file: a start belongs to the next end with the same id.
        ends.sort_by_key(|end| (end.id, end.at, !end.is_start));
        let mut at = 0;
        let mut alone = 0u64;
        while let Some(from) = ends.get(at) {
            match ends.get(at + 1) {
                Some(to) if from.is_start && !to.is_start && from.id == to.id => {
                    self.trace.links.push(Link {
                        id: from.id,
                        from: LinkEnd { track: from.track, at: from.at },
                        to: LinkEnd { track: to.track, at: to.at },
                    });
                    at += 2;
                }
                _ => {
                    alone += 1;
                    at += 1;
                }
            }
        }
        if alone > 0 {
            let what = "fwdbwd flow arrows with only one end".to_owned();
            self.trace.stats.not_kept.insert(what, alone);
        }
    }
}

/// Rows have 32-bit ids.
pub(crate) const MAX_EVENTS: usize = EventId::MAX;
