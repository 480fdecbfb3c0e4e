//! What did the host spend its time on while the device waited for it?

use busbound_trace::{
    Call, Event, EventId, EventKind, Interval, IntervalCursor, IntervalSet, Nanos, Track, TrackId,
};
use serde::{Deserialize, Serialize};

use super::{Host, HostActivity, HostSegment, ThreadTimes, is_issuing};
use crate::Time;
use crate::few::Few;
use crate::thresholds::{HOST_STRETCH, OPERATOR_SEARCH_DEPTH, THREAD_IDLE};

/// What a stretch of host time is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum HostUse {
    /// Launch calls, and the short host work between two of them.
    Launching,
    /// Inside a copy call.
    CopyCall,
    /// Inside a call that waits for the device.
    Synchronizing,
    /// Waiting for the next batch.
    Input,
    /// The optimizer on the CPU.
    Optimizer,
    /// Gathering and indexing on the CPU.
    Gather,
    /// Copies and casts from host memory to host memory.
    Cast,
    /// Drawing random numbers on the CPU.
    Random,
    /// Calls that allocate, free or pin memory.
    Allocation,
    /// Other operators on the CPU.
    Operator,
    /// Python, and whatever else the profiler does not record.
    Python,
    /// The thread waits for another thread that launches work.
    Waiting,
    /// Reading or writing managed memory whose pages are on the device: the driver brings them back.
    Managed,
}

impl HostUse {
    /// Work that the CPU does itself, which takes this long whatever the device does.
    pub const WORK: &'static [Self] = &[
        Self::Optimizer,
        Self::Gather,
        Self::Cast,
        Self::Random,
        Self::Allocation,
        Self::Operator,
        Self::Python,
        Self::Managed,
    ];

    /// Work on data in host memory. It needs the CPU, however the work of the device is launched.
    pub fn is_on_data(self) -> bool {
        matches!(self, Self::Input | Self::Optimizer | Self::Gather | Self::Cast | Self::Random)
    }

    pub fn is_work(self) -> bool {
        Self::WORK.contains(&self)
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::Launching => "launching",
            Self::CopyCall => "copy calls",
            Self::Synchronizing => "host syncs",
            Self::Input => "waiting for input",
            Self::Optimizer => "optimizer on the CPU",
            Self::Gather => "gather and index on the CPU",
            Self::Cast => "copies and casts on the CPU",
            Self::Random => "random numbers on the CPU",
            Self::Allocation => "memory allocation",
            Self::Operator => "other operators on the CPU",
            Self::Python => "Python, or not recorded",
            Self::Waiting => "waiting for another thread",
            Self::Managed => "touching managed memory",
        }
    }
}

/// A piece of a thread's time with one use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedTime {
    pub interval: Interval,
    pub what: HostUse,
    /// The innermost event around it; `None` if nothing is recorded.
    pub event: Option<EventId>,
    /// Whether that is a call that launches or copies.
    pub is_issuing: bool,
}

impl UsedTime {
    /// Time in which a thread only launches: inside of a launch, or of none.
    fn launching(interval: Interval, launch: Option<EventId>) -> Self {
        Self { interval, what: HostUse::Launching, event: launch, is_issuing: launch.is_some() }
    }
}

/// What a thread spends a window on, found segment by segment.
struct Uses<'h> {
    thread: TrackId,
    times: Option<&'h ThreadTimes>,
    /// In order; neighbors of one use and event are one piece.
    pieces: Vec<UsedTime>,
    /// Long stretches without launches, and the time of optimizers, from the current segment on.
    long: IntervalCursor<'h>,
    optimizer: IntervalCursor<'h>,
}

impl Uses<'_> {
    fn add(&mut self, interval: Interval, what: HostUse, segment: HostSegment) {
        if interval.length().get() <= 0 {
            return;
        }
        let event = segment.event;
        let is_issuing = matches!(segment.activity, HostActivity::Call(call) if is_issuing(call));
        match self.pieces.last_mut().filter(|last| last.what == what && last.event == event) {
            Some(last) => last.interval = last.interval.hull(interval),
            None => self.pieces.push(UsedTime { interval, what, event, is_issuing }),
        }
    }
}

/// The kind of CPU work that an operator does, by its name.
pub(super) fn operator_use(name: &str) -> HostUse {
    let Some(name) = name.strip_prefix("aten::") else { return HostUse::Operator };
    const GATHERS: [&str; 8] =
        ["index", "_index", "embedding", "_embedding", "gather", "take", "scatter", "masked_select"];
    const RANDOM: [&str; 6] = ["normal", "uniform", "random", "rand", "bernoulli", "exponential"];
    match name {
        "to" | "_to_copy" | "copy_" | "clone" | "contiguous" | "cat" | "stack" | "_copy_from" => {
            HostUse::Cast
        }
        "pin_memory" | "_pin_memory" | "empty" | "empty_strided" | "resize_" => HostUse::Allocation,
        _ if GATHERS.iter().any(|start| name.starts_with(start)) => HostUse::Gather,
        _ if RANDOM.iter().any(|start| name.starts_with(start)) => HostUse::Random,
        _ => HostUse::Operator,
    }
}

fn time_without_launches(operator: Option<(Interval, bool)>) -> Nanos {
    operator.filter(|(_, launches)| !launches).map_or(Nanos::ZERO, |(operator, _)| operator.length())
}

impl Host<'_> {
    /// Whether an optimizer does its work on the CPU: it launches no kernels, or operators that launch none take most of its
    /// time (it may scale gradients on the device first).
    pub(super) fn updates_on_cpu(&self, track: &Track<'_>, optimizer: Interval) -> bool {
        let (mut launches, mut on_cpu) = (false, Nanos::ZERO);
        // The outermost operator so far, and whether it launches.
        let mut outermost: Option<(Interval, bool)> = None;
        for event in track.events_between(optimizer.start, optimizer.end) {
            let is_outside = outermost.is_none_or(|(operator, _)| event.start() >= operator.end);
            if self.call_kind(&event) == Call::Launch {
                launches = true;
                outermost = outermost.map(|(operator, so_far)| (operator, so_far || !is_outside));
            } else if event.kind() == EventKind::Operator
                && is_outside
                && !self.names.optimizers[event.name_id().index()]
            {
                on_cpu += time_without_launches(outermost.replace((event.interval(), false)));
            }
        }
        on_cpu += time_without_launches(outermost);
        !launches || on_cpu.get() * 2 > optimizer.length().get()
    }

    /// What a thread spent a window on. Short host work between two launches counts as launching.
    pub fn uses(&self, thread: TrackId, window: Interval) -> Vec<UsedTime> {
        if self.is_launching(thread, window) {
            return vec![UsedTime::launching(window, None)];
        }
        let nothing = IntervalSet::default();
        let times = self.thread(thread);
        let (long, optimizer) = match times {
            Some(times) => (&times.without_calls, &times.optimizer),
            None => (&nothing, &nothing),
        };
        let (long, optimizer) = (long.cursor(window.start), optimizer.cursor(window.start));
        let mut all = Uses { thread, times, pieces: Vec::new(), long, optimizer };
        self.each_segment(thread, window, |segment| self.add_use(segment, &mut all));
        all.pieces
    }

    /// How long a thread spent on what in a window.
    pub(crate) fn time_by_use(&self, thread: TrackId, window: Interval) -> Few<(HostUse, Time)> {
        let mut sums: Few<(HostUse, Time)> = Few::default();
        for used in self.uses(thread, window) {
            let time = used.interval.length().get();
            match sums.iter_mut().find(|(what, _)| *what == used.what) {
                Some((_, sum)) => *sum += time,
                None => sums.push((used.what, time)),
            }
        }
        sums
    }

    /// Like [`uses`](Self::uses), without the operators between launches: of those, there are the most.
    pub fn uses_and_launches(&self, thread: TrackId, window: Interval) -> Vec<UsedTime> {
        let Some(times) = self.thread(thread) else { return self.uses(thread, window) };
        if self.is_launching(thread, window) {
            return vec![UsedTime::launching(window, None)];
        }
        if self.another_works(thread, window) {
            return self.uses(thread, window);
        }
        let (mut all, mut at) = (Vec::new(), window.start);
        for other in times.not_launching.cursor(window.start).within(window) {
            self.add_launches(times, thread, Interval::new(at, other.start), &mut all);
            all.extend(self.uses(thread, other));
            at = other.end;
        }
        self.add_launches(times, thread, Interval::new(at, window.end), &mut all);
        all
    }

    /// Time in which a thread only launches: its launches, and what is between them.
    fn add_launches(&self, times: &ThreadTimes, thread: TrackId, window: Interval, all: &mut Vec<UsedTime>) {
        if window.length().get() <= 0 {
            return;
        }
        let track = self.trace.track(thread);
        let first = track.position(window.start);
        let counts = |event: &Event<'_>| is_issuing(self.call_kind(event));
        let next = times.issuing.partition_point(|position| (*position as usize) < first);
        let calls = times.issuing[next..].iter().map(|position| track.event_at(*position as usize));
        self.sweep((&track, first), window, (counts, calls), |segment| {
            all.push(UsedTime::launching(segment.interval, segment.event));
        });
    }

    /// Whether another thread that launches does anything within a window.
    fn another_works(&self, thread: TrackId, window: Interval) -> bool {
        let mut others = self.launching_threads().filter(|(track, _)| *track != thread);
        others.any(|(_, times)| times.worked.cursor(window.start).within(window).next().is_some())
    }

    /// Like [`uses`](Self::uses), with the time in which the thread waits for another one replaced by what that one did.
    pub fn uses_followed(&self, thread: TrackId, window: Interval) -> Vec<UsedTime> {
        let own = self.uses(thread, window);
        if own.iter().all(|used| used.what != HostUse::Waiting) {
            return own;
        }
        let mut all = Vec::new();
        for used in own {
            let is_waiting = used.what == HostUse::Waiting;
            match is_waiting.then(|| self.busiest_other(thread, used.interval)).flatten() {
                Some(other) => {
                    let not_waiting = |used: UsedTime| match used.what {
                        HostUse::Waiting => UsedTime { what: HostUse::Python, ..used },
                        _ => used,
                    };
                    all.extend(self.uses(other, used.interval).into_iter().map(not_waiting));
                }
                None => all.push(used),
            }
        }
        all
    }

    /// Whether a short window holds nothing but launches and the work between them. Most windows do, and looking up their
    /// segments would take most of the time of a diagnosis.
    pub(crate) fn is_launching(&self, thread: TrackId, window: Interval) -> bool {
        let Some(times) = self.thread(thread) else { return false };
        let length = window.length().get();
        (1..HOST_STRETCH).contains(&length) && times.not_launching.length_within(window).get() == 0
    }

    fn add_use(&self, segment: HostSegment, all: &mut Uses<'_>) {
        let interval = segment.interval;
        let what = match segment.activity {
            HostActivity::Call(Call::Launch | Call::Memset) => Some(HostUse::Launching),
            HostActivity::Call(Call::Copy) => Some(HostUse::CopyCall),
            HostActivity::Call(Call::Synchronize) => Some(HostUse::Synchronizing),
            HostActivity::Call(Call::Allocate) => Some(HostUse::Allocation),
            HostActivity::Input => Some(HostUse::Input),
            _ if all.times.is_none() => Some(HostUse::Python),
            HostActivity::Unrecorded if self.is_waiting(all.thread, interval) => Some(HostUse::Waiting),
            _ => None,
        };
        if let Some(what) = what {
            return all.add(interval, what, segment);
        }
        let long = all.long.length_within(interval);
        if long.get() == 0 {
            return all.add(interval, HostUse::Launching, segment);
        }
        let what = self.long_use(segment, all.optimizer.length_within(interval).get() > 0);
        if long == interval.length() {
            return all.add(interval, what, segment);
        }
        // The rest of the segment is host work between launches.
        let mut at = interval.start;
        for long in all.long.clone().within(interval) {
            all.add(Interval::new(at, long.start), HostUse::Launching, segment);
            all.add(long, what, segment);
            at = long.end;
        }
        all.add(Interval::new(at, interval.end), HostUse::Launching, segment);
    }

    /// Whether a thread with nothing recorded waits for another one.
    fn is_waiting(&self, thread: TrackId, interval: Interval) -> bool {
        interval.length().get() >= THREAD_IDLE && self.busiest_other(thread, interval).is_some()
    }

    /// The use of a segment within a long stretch without launches.
    fn long_use(&self, segment: HostSegment, in_optimizer: bool) -> HostUse {
        match segment.activity {
            HostActivity::Operator if in_optimizer => HostUse::Optimizer,
            HostActivity::Operator => segment.event.map_or(HostUse::Operator, |event| {
                let operator = self.trace.event(event);
                match self.names.operators[operator.name_id().index()] {
                    HostUse::Operator => HostUse::Operator,
                    // A gather or cast that issues device work works on the device.
                    _ if self.issues_work(&operator) => HostUse::Operator,
                    what => what,
                }
            }),
            _ => HostUse::Python,
        }
    }

    /// Whether an operator launches or copies.
    fn issues_work(&self, operator: &Event<'_>) -> bool {
        let Some(times) = self.thread(operator.track_id()) else { return false };
        let track = self.trace.track(operator.track_id());
        let first = track.position(operator.start());
        let next = times.issuing.partition_point(|position| (*position as usize) < first);
        let calls = times.issuing[next..].iter().map(|position| *position as usize);
        let mut calls = calls.take_while(|position| position - first < OPERATOR_SEARCH_DEPTH);
        // A memset is not what the operator is for.
        let call = calls.find(|position| self.call_kind(&track.event_at(*position)) != Call::Memset);
        call.is_some_and(|position| track.event_at(position).start() < operator.end())
    }

    /// Of the other threads that launch work, the one that worked most within an interval.
    fn busiest_other(&self, thread: TrackId, interval: Interval) -> Option<TrackId> {
        let others = self.launching_threads().filter(|(track, _)| *track != thread);
        let worked = others.map(|(track, times)| (times.worked.length_within(interval).get(), track));
        let (most, track) = worked.max_by_key(|(worked, track)| (*worked, std::cmp::Reverse(*track)))?;
        (most * 2 > interval.length().get()).then_some(track)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_operators_are_sorted_by_what_they_do() {
        for (name, expected) in [
            ("aten::index_select", HostUse::Gather),
            ("aten::embedding_bag", HostUse::Gather),
            ("aten::_to_copy", HostUse::Cast),
            ("aten::normal_", HostUse::Random),
            ("aten::randint", HostUse::Random),
            ("aten::sort", HostUse::Operator),
            ("aten::mm", HostUse::Operator),
            ("MyOp::index", HostUse::Operator),
            ("aten::pin_memory", HostUse::Allocation),
        ] {
            assert_eq!(operator_use(name), expected, "{name}");
        }
    }
}
