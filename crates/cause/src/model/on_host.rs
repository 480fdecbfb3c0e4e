//! How do collectives on the host fit into a model? As work on a stream of their own, which the thread of the library issues when
//! it is ready for the exchange, and after which it and the waiting thread go on.

use std::collections::BTreeMap;

use busbound_trace::{EventId, Timestamp, Trace, TrackId};

use super::{HostCall, Model, Work};
use crate::Time;
use crate::few::Few;
use crate::graph::{CallId, HostAction, HostTime, StepMarks, WorkId, WorkKind};
use crate::host::{Host, HostUse};
use crate::host_collective::HostCollective;

/// Collectives on the host do not run on a device.
const NO_DEVICE: i32 = -1;

/// What is known about the threads of a trace.
#[derive(Debug, Clone, Copy)]
pub struct HostThreads<'a> {
    pub trace: &'a Trace,
    pub host: &'a Host<'a>,
    /// Where steps end: for traces whose graph has no calls that end them.
    pub marks: &'a StepMarks,
}

/// A call that is added to a thread.
#[derive(Debug, Clone, Copy)]
struct Added {
    at: Time,
    id: CallId,
    /// Whether the time before it belongs to nothing: the thread waited, or had nothing to do.
    is_wait: bool,
    /// The thread works until then; then it waits.
    until: Time,
}

/// The model while collectives are added.
struct Adding<'a> {
    model: &'a mut Model,
    /// When the model begins, on the clock of the trace.
    begin: Time,
    starts: Vec<Time>,
    end: Time,
    /// In the order of the trace's tracks.
    added: BTreeMap<TrackId, Vec<Added>>,
}

pub(super) fn add(
    model: &mut Model,
    range: &super::TraceRange,
    threads: HostThreads<'_>,
    collectives: &[HostCollective],
) {
    let begin = range.starts.first().map_or(0, |at| at.as_nanos());
    let starts = range.starts.iter().map(|at| at.as_nanos() - begin).collect();
    let mut adding =
        Adding { model, begin, starts, end: range.end.as_nanos() - begin, added: BTreeMap::new() };
    let mut streams = BTreeMap::new();
    for collective in collectives {
        adding.add_collective(collective, &mut streams);
    }
    if !adding.model.calls.iter().any(|call| call.action == HostAction::EndStep) {
        adding.end_steps(threads.marks);
    }
    for (track, mut added) in std::mem::take(&mut adding.added) {
        added.sort_by_key(|one| (one.at, one.id));
        adding.add_to_thread(track, &added, threads);
    }
    let calls = model.calls.iter().map(|call| call.end);
    model.end = calls.chain(model.work.iter().map(|work| work.end)).max().unwrap_or(0);
}

impl Adding<'_> {
    fn step(&self, at: Time) -> usize {
        self.starts.partition_point(|start| *start <= at).saturating_sub(1)
    }

    fn call(&mut self, track: TrackId, at: Time, action: HostAction) -> CallId {
        let id = self.model.calls.len();
        // The host ends a step where the next one begins.
        let step = self.step(if action == HostAction::EndStep { at - 1 } else { at });
        self.model.calls.push(HostCall {
            action,
            since: HostTime::default(),
            after: None,
            after_work: None,
            cost: 0,
            cost_use: HostUse::Launching,
            is_synchronous: false,
            is_unpacking: false,
            step,
            start: at,
            end: at,
        });
        self.added.entry(track).or_default().push(Added { at, id, is_wait: false, until: at });
        id
    }

    /// A call before which the thread waited.
    fn wait(&mut self, track: TrackId, at: Time, since: Time) -> CallId {
        let id = self.call(track, at, HostAction::Nothing);
        if let Some(added) = self.added.get_mut(&track).and_then(|list| list.last_mut()) {
            (added.is_wait, added.until) = (true, since.min(at));
        }
        id
    }

    fn end_steps(&mut self, marks: &StepMarks) {
        let Some((track, ends)) = &marks.ends else { return };
        for (at, _) in ends {
            let at = at.as_nanos() - self.begin;
            if (1..=self.end).contains(&at) {
                self.call(*track, at, HostAction::EndStep);
            }
        }
    }

    /// Only collectives within the range whose call is known; others stay host time.
    fn add_collective(&mut self, one: &HostCollective, streams: &mut BTreeMap<TrackId, usize>) {
        let Some(issue) = one.issue else { return };
        let at = |time: Time| time - self.begin;
        let (issued, taken, ended) = (at(issue.at), at(one.taken), at(one.ended));
        let (from, until) = (at(one.exchange.0), at(one.exchange.1));
        let waited = issue.waited.map(at);
        if issued < 0 || ended > self.end {
            return;
        }
        let issuing = self.call(issue.thread, issued, HostAction::Nothing);
        // Until the library's thread is done with the one before, a collective only queues.
        let free = self.added.get(&one.on).and_then(|list| list.last()).map_or(0, |last| last.at);
        let takes_on = self.wait(one.on, taken, Time::MIN);
        self.model.calls[takes_on].after = Some((issuing, (taken - issued.max(free)).max(0)));
        let work = self.work(one.event, (from, until), streams.get(&one.on).copied());
        streams.insert(one.on, self.model.work[work].stream);
        let sends = self.call(one.on, from, HostAction::Issue(Few::one(work)));
        self.model.work[work].call = Some(sends);
        let received = self.wait(one.on, until, Time::MIN);
        self.model.calls[received].after_work = Some(work);
        let done = self.call(one.on, ended, HostAction::Nothing);
        if let Some(waited) = waited {
            let released = self.wait(issue.thread, ended, waited);
            self.model.calls[released].after = Some((done, 0));
        }
    }

    /// The exchange, on this stream or a new one.
    fn work(&mut self, event: EventId, (from, until): (Time, Time), stream: Option<usize>) -> WorkId {
        let step = self.step(from);
        let model = &mut *self.model;
        let stream = stream.unwrap_or(model.streams.len());
        if stream == model.streams.len() {
            model.streams.push(Vec::new());
            model.stream_device.push(NO_DEVICE);
        }
        let id = model.work.len();
        let start = (from + model.latency).min(until);
        model.streams[stream].push(id);
        model.work.push(Work {
            kind: WorkKind::Memset,
            host: None,
            event,
            stream,
            call: None,
            alone: (until - start) as f64,
            after_call: 0,
            after_work: 0,
            waits: Few::default(),
            step,
            start,
            end: until,
            dropped: false,
        });
        id
    }

    /// Puts the added calls between those of a thread, and divides the host time between them.
    fn add_to_thread(&mut self, track: TrackId, added: &[Added], threads: HostThreads<'_>) {
        let known = self.model.tracks.iter().position(|other| *other == track);
        let thread = known.unwrap_or(self.model.threads.len());
        if known.is_none() {
            self.model.threads.push(Vec::new());
            self.model.tracks.push(track);
        }
        let own = std::mem::take(&mut self.model.threads[thread]);
        let (mut order, mut rest) = (Vec::with_capacity(own.len() + added.len()), added);
        let mut ended = 0;
        for id in own {
            let start = self.model.calls[id].start;
            let split = rest.partition_point(|one| one.at <= start);
            let (before, after) = rest.split_at(split);
            rest = after;
            for one in before {
                self.divide(track, *one, id, ended, threads);
                ended = ended.max(one.at);
                order.push(one.id);
            }
            if let Some(last) = before.last() {
                self.rest_of(track, id, *last, ended, threads);
            }
            ended = ended.max(self.model.calls[id].end);
            order.push(id);
        }
        for one in rest {
            let since = self.since(track, (ended, one.until), threads);
            self.model.calls[one.id].since = since;
            ended = ended.max(one.at);
            order.push(one.id);
        }
        self.model.threads[thread] = order;
    }

    /// The host time before an added call, and what its thread waited for before: until now, the next call waited for it.
    fn divide(&mut self, track: TrackId, one: Added, next: CallId, ended: Time, threads: HostThreads<'_>) {
        let mut since = self.since(track, (ended, one.until), threads);
        if let Some((other, _)) = self.model.calls[next].after {
            let left = self.model.calls[other].end;
            if left <= one.at {
                self.model.calls[next].after = None;
                if !one.is_wait {
                    self.model.calls[one.id].after = Some((other, one.at - left));
                    shorten(&mut since, one.at - left);
                }
            }
        }
        if let Some(work) = self.model.calls[next].after_work {
            let done = self.model.work[work].end;
            if done <= one.at {
                self.model.calls[next].after_work = None;
                if !one.is_wait {
                    self.model.calls[one.id].after_work = Some(work);
                    shorten(&mut since, one.at - done);
                }
            }
        }
        let counted = &mut self.model.calls[next].since;
        counted.operators = counted.operators.saturating_sub(since.operators);
        counted.calls = counted.calls.saturating_sub(since.calls);
        counted.frames = counted.frames.saturating_sub(since.frames);
        self.model.calls[one.id].since = since;
    }

    /// The host time before a call, from the added one before it on.
    fn rest_of(&mut self, track: TrackId, call: CallId, last: Added, ended: Time, threads: HostThreads<'_>) {
        let start = self.model.calls[call].start;
        let uses = self.since(track, (ended.max(last.at), start), threads).uses;
        let after = self.model.calls[call].after.map(|(other, _)| self.model.calls[other].end);
        let work = self.model.calls[call].after_work.map(|work| self.model.work[work].end);
        let since = &mut self.model.calls[call].since;
        since.uses = uses;
        if let Some(left) = after.max(work) {
            shorten(since, (start - left).max(0));
        }
    }

    /// What a thread did in a time of the model.
    fn since(&self, track: TrackId, (from, until): (Time, Time), threads: HostThreads<'_>) -> HostTime {
        if until <= from {
            return HostTime::default();
        }
        let window = crate::interval(self.begin + from, self.begin + until);
        let uses = threads.host.time_by_use(track, window);
        let mut since = HostTime { uses, ..HostTime::default() };
        let began = |at: Timestamp| at >= window.start && at < window.end;
        let events = threads.trace.track(track).events_between(window.start, window.end);
        events.filter(|event| began(event.start())).for_each(|event| since.count(event.kind()));
        since
    }
}

/// At most this much host time: the rest of it was before what the thread waited for.
fn shorten(since: &mut HostTime, most: Time) {
    if since.total() > most {
        since.set_total(most);
    }
}
