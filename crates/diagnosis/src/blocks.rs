//! Under which annotation was a piece of the device's work launched?

use busbound_trace::{Event, Label, LinkEnd, Place, Timestamp, Trace, TrackId};
use hashbrown::HashMap;

use crate::host::Host;

/// One annotation that counts, and the one around it that does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    pub(crate) event: Event<'a>,
    pub(crate) parent: Option<usize>,
}

/// Chosen annotations, nested as they were opened, and which is the innermost at any time.
#[derive(Debug)]
pub(crate) struct Blocks<'a> {
    trace: &'a Trace,
    pub(crate) list: Vec<Block<'a>>,
    /// By thread: from when on which block is the innermost.
    changes: HashMap<TrackId, Vec<(Timestamp, Option<usize>)>>,
    /// Threads with blocks, those with most first.
    threads: Vec<TrackId>,
    /// Where operators of the backward pass begin, and the forward operators they belong to.
    backward: HashMap<TrackId, Vec<(Timestamp, LinkEnd)>>,
}

impl<'a> Blocks<'a> {
    pub(crate) fn of(trace: &'a Trace, host: &Host<'a>, counts: impl Fn(&Event<'a>) -> bool) -> Self {
        let mut list: Vec<Block<'a>> = Vec::new();
        let mut changes: HashMap<TrackId, Vec<(Timestamp, Option<usize>)>> = HashMap::new();
        let mut open: Vec<usize> = Vec::new();
        let mut track = None;
        let close =
            |open: &mut Vec<usize>, list: &[Block<'a>], changes: &mut Vec<_>, until: Option<Timestamp>| {
                while let Some(&last) = open.last() {
                    let end = list[last].event.end();
                    if until.is_some_and(|until| end > until) {
                        break;
                    }
                    open.pop();
                    changes.push((end, open.last().copied()));
                }
            };
        // Thread by thread, in order of start, parents before their children.
        for event in host.annotations().into_iter().filter(counts) {
            if track != Some(event.track_id()) {
                if let Some(track) = track {
                    close(&mut open, &list, changes.entry(track).or_default(), None);
                }
                track = Some(event.track_id());
            }
            let changes = changes.entry(event.track_id()).or_default();
            close(&mut open, &list, changes, Some(event.start()));
            list.push(Block { event, parent: open.last().copied() });
            open.push(list.len() - 1);
            changes.push((event.start(), Some(list.len() - 1)));
        }
        if let Some(track) = track {
            close(&mut open, &list, changes.entry(track).or_default(), None);
        }
        let mut threads: Vec<TrackId> = changes.keys().copied().collect();
        threads.sort_by_key(|track| (std::cmp::Reverse(changes[track].len()), *track));
        let mut backward: HashMap<TrackId, Vec<(Timestamp, LinkEnd)>> = HashMap::new();
        for link in trace.links() {
            backward.entry(link.to.track).or_default().push((link.to.at, link.from));
        }
        for links in backward.values_mut() {
            links.sort_unstable();
        }
        Self { trace, list, changes, threads, backward }
    }

    /// The innermost block open on a thread.
    fn open_at(&self, track: TrackId, at: Timestamp) -> Option<usize> {
        let changes = self.changes.get(&track)?;
        changes[..changes.partition_point(|(from, _)| *from <= at)].last()?.1
    }

    /// The innermost block under which a call was made. A call on a thread without blocks, as the
    /// backward pass makes them, belongs to what the process's own thread is in meanwhile, else to the
    /// block of the forward operator that it is the backward of.
    pub(crate) fn around(&self, call: &Event<'_>) -> Option<usize> {
        let (track, at) = (call.track_id(), call.start());
        if self.changes.contains_key(&track) {
            return self.open_at(track, at);
        }
        let process = process_of(self.trace, track);
        let of_process = self.threads.iter().filter(|thread| process_of(self.trace, **thread) == process);
        let meanwhile = of_process.copied().find_map(|thread| self.open_at(thread, at));
        meanwhile.or_else(|| self.forward_of(track, at))
    }

    fn forward_of(&self, track: TrackId, at: Timestamp) -> Option<usize> {
        let links = self.backward.get(&track)?;
        let (began, forward) = links[..links.partition_point(|(start, _)| *start <= at)].last()?;
        // The operator that began there must still be running.
        let position = self.trace.track(track).position(*began);
        let operator = self.trace.track(track).events_from(position).next()?;
        (operator.start() == *began && operator.end() > at)
            .then(|| self.open_at(forward.track, forward.at))?
    }
}

fn process_of(trace: &Trace, track: TrackId) -> Option<Label> {
    match trace.track(track).place() {
        Place::Thread { process, .. } => Some(process),
        Place::Stream { .. } => None,
    }
}
