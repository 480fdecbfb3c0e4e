//! Under which annotation was a kernel or copy launched?

use std::collections::BTreeMap;

use busbound_trace::{Event, LinkEnd, Timestamp, Trace, TrackId};

use busbound_cause::Host;

/// The position of a block in [`Blocks::list`]. Traces have hundreds of thousands of them, and fewer than fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockId(u32);

impl BlockId {
    fn of(place: usize) -> Self {
        Self(u32::try_from(place).unwrap_or(u32::MAX))
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// One selected annotation, and the selected annotation around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    pub(crate) event: Event<'a>,
    pub(crate) parent: Option<BlockId>,
}

/// Ends sort before begins: if two blocks touch, the second is not within the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    End,
    Begin,
}

/// The selected annotations, nested as they were opened, and the innermost one at any time.
#[derive(Debug)]
pub(crate) struct Blocks<'a> {
    trace: &'a Trace,
    pub(crate) list: Vec<Block<'a>>,
    /// By thread: when the innermost block changes, and to which.
    changes: BTreeMap<TrackId, Vec<(Timestamp, Option<BlockId>)>>,
    /// Threads with blocks, most blocks first.
    threads: Vec<TrackId>,
    /// When operators of the backward pass begin, and the forward operators they belong to.
    backward: BTreeMap<TrackId, Vec<(Timestamp, LinkEnd)>>,
}

impl<'a> Blocks<'a> {
    pub(crate) fn of(trace: &'a Trace, host: &Host<'a>, counts: impl Fn(&Event<'a>) -> bool) -> Self {
        let mut by_thread: BTreeMap<TrackId, Vec<Event<'a>>> = BTreeMap::new();
        for event in host.annotations().into_iter().filter(counts) {
            by_thread.entry(event.track_id()).or_default().push(event);
        }
        let mut list: Vec<Block<'a>> = Vec::new();
        let mut changes: BTreeMap<TrackId, Vec<(Timestamp, Option<BlockId>)>> = BTreeMap::new();
        for (track, events) in by_thread {
            // Begins and ends in order of time. Annotations need not nest: overlapping ones end in any order.
            let first = list.len();
            let mut edges: Vec<(Timestamp, Edge, BlockId)> = Vec::with_capacity(2 * events.len());
            for (i, event) in events.iter().enumerate().filter(|(_, event)| event.end() > event.start()) {
                edges.push((event.start(), Edge::Begin, BlockId::of(first + i)));
                edges.push((event.end(), Edge::End, BlockId::of(first + i)));
            }
            list.extend(events.iter().map(|&event| Block { event, parent: None }));
            edges.sort_by_key(|&(at, edge, block)| (at, edge, block));
            let mut open: Vec<BlockId> = Vec::new();
            let track_changes = changes.entry(track).or_default();
            track_changes.reserve_exact(edges.len());
            for (at, edge, block) in edges {
                match edge {
                    Edge::Begin => {
                        list[block.index()].parent = open.last().copied();
                        open.push(block);
                    }
                    Edge::End => {
                        // Usually the last one.
                        if let Some(place) = open.iter().rposition(|&known| known == block) {
                            open.remove(place);
                        }
                    }
                }
                track_changes.push((at, open.last().copied()));
            }
        }
        let mut threads: Vec<TrackId> = changes.keys().copied().collect();
        threads.sort_by_key(|track| (std::cmp::Reverse(changes[track].len()), *track));
        let mut backward: BTreeMap<TrackId, Vec<(Timestamp, LinkEnd)>> = BTreeMap::new();
        for link in trace.links() {
            backward.entry(link.to.track).or_default().push((link.to.at, link.from));
        }
        for links in backward.values_mut() {
            links.sort_unstable();
        }
        Self { trace, list, changes, threads, backward }
    }

    /// The innermost block open on a thread.
    fn open_at(&self, track: TrackId, at: Timestamp) -> Option<BlockId> {
        let changes = self.changes.get(&track)?;
        changes[..changes.partition_point(|(from, _)| *from <= at)].last()?.1
    }

    /// The innermost block around a call. A call outside of any block may be on another thread than the one with most
    /// blocks, as in the backward pass. It then belongs to the block open on that main thread at the time, otherwise to
    /// the block of its forward operator.
    pub(crate) fn around(&self, call: &Event<'_>) -> Option<BlockId> {
        let (track, at) = (call.track_id(), call.start());
        if let Some(block) = self.open_at(track, at) {
            return Some(block);
        }
        let process_of = |thread: TrackId| self.trace.track(thread).place().process();
        let process = process_of(track);
        let main = self.threads.iter().copied().find(|thread| process_of(*thread) == process)?;
        if main == track {
            return None;
        }
        self.open_at(main, at).or_else(|| self.forward_of(track, at))
    }

    fn forward_of(&self, track: TrackId, at: Timestamp) -> Option<BlockId> {
        let links = self.backward.get(&track)?;
        let (began, forward) = links[..links.partition_point(|(start, _)| *start <= at)].last()?;
        // The operator that began there must still be running.
        let position = self.trace.track(track).position(*began);
        let operator = self.trace.track(track).events_from(position).next()?;
        (operator.start() == *began && operator.end() > at)
            .then(|| self.open_at(forward.track, forward.at))?
    }
}
