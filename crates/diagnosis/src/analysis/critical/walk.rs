//! One step's path, walked from its end to its start.

use busbound_trace::{Event, EventId, EventKind, Interval, IntervalSet, Nanos, Place, Timestamp, TrackId};

use super::waits::{Blocking, HostWait, StreamWait, Waits};
use super::{PathClass, PathEdges};
use crate::analysis::facts::Facts;
use crate::quantity::printable;
use busbound_trace::Call;

/// One stretch of the path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    pub(super) class: PathClass,
    pub(super) interval: Interval,
    /// The work or call it is, or that it leads to; `None` for what leads to the end of the step.
    what: Option<EventId>,
    /// The thread of host time.
    thread: Option<TrackId>,
}

impl Piece {
    pub(super) fn describe(&self, facts: &Facts<'_>) -> String {
        let Some(event) = self.what.map(|id| facts.trace.event(id)) else {
            return match (self.class, self.thread) {
                (PathClass::Host, Some(thread)) => {
                    format!("{}, to the end", host_work(facts, thread, self.interval))
                }
                (class, _) => class.describe().to_owned(),
            };
        };
        let name = printable(event.name());
        let on_host = matches!(event.place(), Place::Thread { .. });
        let place = || {
            let around = facts.host.around(&event);
            let operator = around.operator.is_some();
            around
                .describe()
                .map_or(name.clone(), |text| if operator { text } else { format!("{name} {text}") })
        };
        match self.class {
            PathClass::Host => {
                let doing =
                    self.thread.map_or("host".to_owned(), |thread| host_work(facts, thread, self.interval));
                format!("{doing}, up to {}", place())
            }
            PathClass::Input => format!("waiting for input, up to {}", place()),
            PathClass::Launch if on_host => format!("{name}, {}", place()),
            PathClass::Launch => format!("from launch to {name}"),
            PathClass::Staging => format!("staging in {}", place()),
            PathClass::Contended => format!("{name} behind work of other streams"),
            PathClass::Turnaround => format!("before {name}"),
            PathClass::Synchronisation => format!("{name}, {}", place()),
            PathClass::Unexplained => format!("waiting for something not recorded, at {name}"),
            _ => name,
        }
    }
}

/// `host in cudaMalloc`, where one call or operator takes most of a stretch; `host, nothing recorded`, where
/// nothing does.
fn host_work(facts: &Facts<'_>, thread: TrackId, stretch: Interval) -> String {
    let within = facts.trace.track(thread).events_between(stretch.start, stretch.end).filter(|event| {
        matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall | EventKind::Operator)
    });
    // The innermost of those that take most of it: a call before the operator that makes it.
    let most = within.filter(|event| event.duration().wide() * 2 > stretch.length().wide());
    let innermost = most.min_by_key(|event| (event.duration(), event.id()));
    let recorded = facts.host.thread(thread).map_or(Nanos::ZERO, |times| times.worked.length_within(stretch));
    match innermost {
        Some(event) => format!("host in {}", printable(event.name())),
        None if recorded.wide() * 10 < stretch.length().wide() => "host, no operator recorded".to_owned(),
        None => "host".to_owned(),
    }
}

#[derive(Debug, Default)]
pub(super) struct Edges(PathEdges);

impl Edges {
    pub(super) fn told(self) -> PathEdges {
        self.0
    }

    fn wait(&mut self, recorded: bool) {
        *if recorded { &mut self.0.recorded_waits } else { &mut self.0.inferred_waits } += 1;
    }
}

/// Where the walk stands: everything after `at` is explained.
enum Position<'a> {
    /// In this piece of the device's work.
    Work(Event<'a>),
    /// On this thread; on the way to this call, or to the end of the step.
    Thread(TrackId, Option<EventId>),
}

/// What a piece of work waited for last.
enum Cause<'a> {
    Before(Event<'a>),
    Event { source: Event<'a>, recorded: bool },
    Launch(Event<'a>),
}

/// Work that begins this much later than what it waited for may have waited for something else.
const UNEXPLAINED_WAIT: i64 = 5_000;
/// The way from a call to the device takes up to this long with nothing in the way.
const LAUNCH_LATENCY: i64 = 50_000;
/// Two events of one cause lie this close.
const CLOSE: i64 = 10_000;
/// The same where the trace says that there was a wait.
const CLOSE_TO_KNOWN_WAIT: i64 = 60_000;
/// A thread that has nothing recorded for this long may be waiting for another one.
const THREAD_GAP: i64 = 20_000;
/// How far back a stream is searched for the work given to it before a moment.
const PATIENCE: usize = 256;

pub(super) struct Walk<'f, 'a> {
    facts: &'f Facts<'a>,
    waits: &'f Waits<'f, 'a>,
    from: Timestamp,
    at: Timestamp,
    pieces: Vec<Piece>,
    edges: &'f mut Edges,
}

impl<'f, 'a> Walk<'f, 'a> {
    pub(super) fn of(
        facts: &'f Facts<'a>,
        waits: &'f Waits<'f, 'a>,
        step: Interval,
        edges: &'f mut Edges,
    ) -> Vec<Piece> {
        let mut walk = Self { facts, waits, from: step.start, at: step.end, pieces: Vec::new(), edges };
        let mut position = walk.last_of(step);
        if let Some(Position::Work(last)) = &position {
            // What lies after the last work that is known.
            walk.cover(PathClass::Unexplained, last.end(), Some(last.id()));
        }
        // Each turn goes back in time or along one of finitely many waits at one moment.
        let mut turns_without_progress = 0;
        while let Some(here) = position {
            let before = walk.at;
            position = match here {
                Position::Work(work) => walk.back_from_work(work),
                Position::Thread(thread, goal) => walk.back_on_thread(thread, goal),
            };
            turns_without_progress = if walk.at < before { 0 } else { turns_without_progress + 1 };
            if walk.at <= walk.from || turns_without_progress > 100 {
                break;
            }
        }
        if walk.at > walk.from {
            let goal = walk.pieces.last().and_then(|piece| piece.what);
            walk.cover(PathClass::Unexplained, walk.from, goal);
        }
        walk.pieces
    }

    /// The work that ends the step, or the thread that does.
    fn last_of(&self, step: Interval) -> Option<Position<'a>> {
        let works = self.streams(None).filter_map(|stream| self.last_ended(stream, step.end, |_| true));
        let last = works.max_by_key(|work| (work.end(), work.id()))?;
        if step.end - last.end() < Nanos::new(CLOSE) {
            return Some(Position::Work(last));
        }
        // The host goes on after the device's last work: on the thread that launched it.
        let call = self.facts.host.call_behind(&last);
        Some(call.map_or(Position::Work(last), |call| Position::Thread(call.track_id(), None)))
    }

    /// The streams of a device, or of all.
    fn streams(&self, device: Option<i32>) -> impl Iterator<Item = TrackId> + use<'f, 'a> {
        let streams = self.waits.streams.iter();
        streams.filter(move |(_, of)| device.is_none_or(|device| *of == device)).map(|(stream, _)| *stream)
    }

    /// Adds what lies between a moment and where the walk stands.
    fn cover(&mut self, class: PathClass, since: Timestamp, what: Option<EventId>) {
        let since = since.max(self.from);
        if since < self.at {
            let interval = Interval::new(since, self.at);
            self.pieces.push(Piece { class, interval, what, thread: None });
            self.at = since;
        }
    }

    fn back_from_work(&mut self, work: Event<'a>) -> Option<Position<'a>> {
        let id = Some(work.id());
        // Time after the work's end belongs to whoever came from there.
        self.cover(self.class_of(&work), work.start(), id);
        match self.cause_of(&work) {
            Some(Cause::Before(before)) => {
                self.edges.0.stream_order += 1;
                let class = self.class_of_wait(&work, before.end());
                self.cover_wait(class, before.end(), &work);
                Some(Position::Work(before))
            }
            Some(Cause::Event { source, recorded }) => {
                self.edges.wait(recorded);
                let class = self.class_of_wait(&work, source.end());
                self.cover_wait(class, source.end(), &work);
                Some(Position::Work(source))
            }
            Some(Cause::Launch(call)) => {
                self.edges.0.launch += 1;
                let class = match self.facts.host.call_kind(&call) {
                    Call::Copy => PathClass::Staging,
                    _ => PathClass::Launch,
                };
                self.cover_wait(PathClass::Launch, call.end().min(work.start()), &work);
                self.cover(class, call.start(), Some(call.id()));
                Some(Position::Thread(call.track_id(), Some(call.id())))
            }
            None => {
                self.cover(PathClass::Unexplained, self.from, id);
                None
            }
        }
    }

    /// Longer than the device takes by itself: then it waited for its own call, if that was still staging,
    /// or for something that the trace does not show.
    fn class_of_wait(&self, work: &Event<'a>, since: Timestamp) -> PathClass {
        let call = self.facts.host.call_behind(work).filter(|call| call.end() > work.start());
        if work.start() - since <= Nanos::new(LAUNCH_LATENCY) {
            return PathClass::Turnaround;
        }
        let is_staging = call.is_some_and(|call| self.facts.host.call_kind(&call) == Call::Copy);
        if is_staging { PathClass::Staging } else { PathClass::Unexplained }
    }

    /// Time between the end of what work waited for and its begin. Where other work of the same sort held
    /// the device meanwhile, that was in the way.
    fn cover_wait(&mut self, class: PathClass, since: Timestamp, work: &Event<'a>) {
        let window = Interval::new(since, self.at);
        // A launch takes this long by itself.
        let usual = if class == PathClass::Launch { LAUNCH_LATENCY } else { UNEXPLAINED_WAIT };
        if window.length() > Nanos::new(usual)
            && let Place::Stream { device, .. } = work.place()
            && let Some(timeline) = self.facts.timelines.iter().find(|timeline| timeline.device == device)
        {
            let held = if work.kind() == EventKind::Copy { &timeline.copies } else { &timeline.kernels };
            if held.length_within(window).wide() * 10 > window.length().wide() * 8 {
                return self.cover(PathClass::Contended, since, Some(work.id()));
            }
        }
        self.cover(class, since, Some(work.id()));
    }

    fn class_of(&self, work: &Event<'_>) -> PathClass {
        match work.kind() {
            EventKind::Copy => PathClass::Copy,
            EventKind::Memset => PathClass::Memset,
            _ if self.facts.communication.contains(work.name_id()) => PathClass::Communication,
            _ => PathClass::Compute,
        }
    }

    /// What ended last of all that this work waited for.
    fn cause_of(&self, work: &Event<'a>) -> Option<Cause<'a>> {
        let call = self.facts.host.call_behind(work);
        let before = self.last_ended(work.track_id(), work.start(), |other| other.id() != work.id());
        let mut best = before.map(|before| (before.end(), Cause::Before(before)));
        let mut take = |at: Timestamp, cause: Cause<'a>| {
            if best.as_ref().is_none_or(|(known, _)| at > *known) {
                best = Some((at, cause));
            }
        };
        // How near the end of an unnamed source must lie; `None` where there is none.
        let mut near = (!self.waits.are_recorded).then_some(Nanos::new(CLOSE));
        if let Some(call) = call {
            // A call that goes on while its work runs may have handed it over at any time since it began.
            let handed_over = if call.end() <= work.start() { call.end() } else { call.start() };
            take(handed_over, Cause::Launch(call));
            let since =
                before.and_then(|before| self.facts.host.call_behind(&before)).map(|call| call.start());
            for wait in self.waits_before(work, call.start(), since) {
                match wait.source {
                    Some((stream, recorded)) => {
                        if let Some(source) = self.given_before(stream, work.start(), recorded) {
                            take(source.end().min(work.start()), Cause::Event { source, recorded: true });
                        }
                    }
                    None => near = Some(Nanos::new(CLOSE_TO_KNOWN_WAIT)),
                }
            }
        }
        let explained = best.as_ref().map(|(at, _)| *at);
        let waited = explained.map_or(Nanos::new(i64::MAX), |at| work.start() - at);
        // The longer the wait, the less likely that something else ends near its end by chance.
        let near =
            near.map(|near| near.max(Nanos::new(waited.get() / 10).min(Nanos::new(CLOSE_TO_KNOWN_WAIT))));
        if waited > Nanos::new(UNEXPLAINED_WAIT)
            && let Some(near) = near
            && let Some(source) = self.fitting_source(work, explained, near)
        {
            return Some(Cause::Event { source, recorded: false });
        }
        best.map(|(_, cause)| cause)
    }

    /// Waits that this work's stream was asked for after the work before it was launched; those before are
    /// behind that one too.
    fn waits_before(
        &self,
        work: &Event<'a>,
        launched: Timestamp,
        since: Option<Timestamp>,
    ) -> impl Iterator<Item = &'f StreamWait> + use<'f, 'a> {
        let waits = self.waits.of_stream.get(&work.track_id()).map_or(&[][..], Vec::as_slice);
        let asked = waits.partition_point(|wait| wait.asked <= launched);
        let recent =
            waits[..asked].iter().rev().take_while(move |wait| since.is_none_or(|since| wait.asked > since));
        recent.take(PATIENCE)
    }

    /// The last work that a stream was given before `given` and that ended by `end`.
    fn given_before(&self, stream: TrackId, end: Timestamp, given: Timestamp) -> Option<Event<'a>> {
        self.last_ended(stream, end, |work| {
            self.facts.host.call_behind(work).is_none_or(|call| call.start() < given)
        })
    }

    /// Of one stream, the work that ended last by `end`.
    fn last_ended(
        &self,
        stream: TrackId,
        end: Timestamp,
        wanted: impl Fn(&Event<'a>) -> bool,
    ) -> Option<Event<'a>> {
        let track = self.facts.trace.track(stream);
        track
            .events_before(end + Nanos::new(1))
            .filter(|event| event.kind().is_gpu_work())
            .take(PATIENCE)
            .find(|event| event.end() <= end && wanted(event))
    }

    /// Work of another stream of the device that ends just as this one begins, and later than what else
    /// this one waited for.
    fn fitting_source(
        &self,
        work: &Event<'a>,
        explained: Option<Timestamp>,
        near: Nanos,
    ) -> Option<Event<'a>> {
        let Place::Stream { device, .. } = work.place() else { return None };
        let others = self.streams(Some(device)).filter(|stream| *stream != work.track_id());
        let ended = others.filter_map(|stream| self.last_ended(stream, work.start(), |_| true));
        ended
            .filter(|other| work.start() - other.end() <= near)
            .filter(|other| explained.is_none_or(|explained| other.end() > explained))
            .max_by_key(|other| (other.end(), other.id()))
    }

    /// Back to what the thread last waited for: the device, or another thread.
    fn back_on_thread(&mut self, thread: TrackId, goal: Option<EventId>) -> Option<Position<'a>> {
        let blocking = self.waits.blocking.get(&thread).map_or(&[][..], Vec::as_slice);
        let last = blocking.partition_point(|blocking| blocking.call.start() < self.at).checked_sub(1);
        let last = last.map(|i| blocking[i]).filter(|blocking| blocking.call.end() > self.from);
        let since = last.map_or(self.from, |blocking| blocking.call.end()).min(self.at).max(self.from);
        if let Some((other, left)) = self.other_thread(thread, since) {
            self.edges.wait(false);
            self.cover_host(thread, left, goal);
            return Some(Position::Thread(other, goal));
        }
        self.cover_host(thread, since, goal);
        let blocking = last?;
        self.back_from_blocking(thread, blocking)
    }

    fn back_from_blocking(&mut self, thread: TrackId, blocking: Blocking<'a>) -> Option<Position<'a>> {
        let call = blocking.call;
        let (target, recorded) = match blocking.copy {
            Some(copy) => (Some(copy), false),
            None => self.waited_for(&call),
        };
        // It waited only for what ended after it began.
        if let Some(work) = target.filter(|work| work.end() > call.start()) {
            self.edges.wait(recorded);
            self.cover(PathClass::Synchronisation, work.end(), Some(call.id()));
            return Some(Position::Work(work));
        }
        self.cover(PathClass::Synchronisation, call.start(), Some(call.id()));
        Some(Position::Thread(thread, Some(call.id())))
    }

    /// The work whose end let a synchronisation return, and whether the trace says so.
    fn waited_for(&self, call: &Event<'a>) -> (Option<Event<'a>>, bool) {
        let known = call.correlation().and_then(|id| self.waits.of_host.get(&id)).copied();
        let on_device = |device: Option<i32>| {
            self.streams(device)
                .filter_map(|stream| self.given_before(stream, call.end(), call.start()))
                .max_by_key(|work| (work.end(), work.id()))
        };
        match known {
            Some(HostWait::Stream { stream, until }) => (self.given_before(stream, call.end(), until), true),
            Some(HostWait::Device(device)) => (on_device(Some(device)), true),
            Some(HostWait::Unknown) | None => (on_device(None), false),
        }
    }

    /// Whether the thread stood still before `self.at` while another one that launches worked, and when
    /// that one left off.
    fn other_thread(&self, thread: TrackId, since: Timestamp) -> Option<(TrackId, Timestamp)> {
        let own = &self.facts.host.thread(thread)?.worked;
        let window = Interval::new(since, self.at);
        let free = IntervalSet::from_unsorted([window]).difference(&own.within(window));
        let worked = |gap: Interval| {
            let others = self.waits.launching.iter().filter(|(track, _)| *track != thread);
            others
                .filter_map(|(track, worked)| Some((*track, worked.within(gap).hull()?.end)))
                .max_by_key(|(track, left)| (*left, std::cmp::Reverse(*track)))
        };
        free.iter().rev().filter(|gap| gap.length() >= Nanos::new(THREAD_GAP)).find_map(worked)
    }

    /// Host time back to `since`, parted into calls, waiting for input and the rest.
    fn cover_host(&mut self, thread: TrackId, since: Timestamp, goal: Option<EventId>) {
        let since = since.max(self.from);
        if since >= self.at {
            return;
        }
        let host = &self.facts.host;
        let class_of = |event: &Event<'a>| match host.call_kind(event) {
            Call::Launch | Call::Memset => Some(PathClass::Launch),
            Call::Copy => Some(PathClass::Staging),
            _ => None,
        };
        let none = IntervalSet::default();
        let input = host.thread(thread).map_or(&none, |times| &times.input);
        let mut parts: Vec<(PathClass, Interval, Option<EventId>)> = Vec::new();
        // Host time is named for the call that it leads to.
        let between = |parts: &mut Vec<_>, from: Timestamp, until: Timestamp, goal: Option<EventId>| {
            let window = Interval::new(from, until);
            let waited = input.within(window);
            let worked = IntervalSet::from_unsorted([window]).difference(&waited);
            parts.extend(waited.iter().map(|interval| (PathClass::Input, interval, goal)));
            parts.extend(worked.iter().map(|interval| (PathClass::Host, interval, goal)));
        };
        let mut from = since;
        for call in self.facts.trace.track(thread).events_between(since, self.at) {
            let Some(class) = class_of(&call) else { continue };
            let (start, end) = (call.start().max(from), call.end().min(self.at));
            if end <= start {
                continue;
            }
            between(&mut parts, from, start, Some(call.id()));
            parts.push((class, Interval::new(start, end), Some(call.id())));
            from = end;
        }
        between(&mut parts, from, self.at, goal);
        parts.sort_by_key(|(_, interval, _)| std::cmp::Reverse(interval.start));
        for (class, interval, what) in parts {
            self.cover(class, interval.start, what);
            if class == PathClass::Host
                && let Some(piece) = self.pieces.last_mut()
            {
                piece.thread = Some(thread);
            }
        }
    }
}
