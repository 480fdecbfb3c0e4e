//! Which events of a file cannot be right? Those at an impossible time, and those that are in it twice.
//!
//! They are left out of the trace and counted. Everything else keeps its number.

use crate::hash::{HashMap, HashSet};
use crate::model::events::{EventId, Events};
use crate::model::kind::EventKind;
use crate::model::stats::{LossKind, Repair};
use crate::model::time::Timestamp;
use crate::model::trace::Recorded;

/// A recording with a longer pause than this, in which nothing at all happens, has a wrong timestamp before or after it: an
/// hour.
const LONGEST_PAUSE: i64 = 3_600_000_000_000;
/// The pause is also this many times longer than the rest of the recording.
const TIMES_THE_REST: i64 = 10;
/// Places at which the recording is cut at most.
const MOST_CUTS: usize = 64;
/// At most this share of the events has wrong timestamps; if there are more, nobody knows which ones are right.
const FEW: f64 = 0.01;

/// Leaves out what cannot be right. Returns the events that stay; `None` for all.
pub(crate) fn keep_possible(recorded: &mut Recorded) -> Option<Vec<EventId>> {
    let mut impossible = at_impossible_times(&recorded.events);
    // Mostly there are none, and then there is nothing to look for.
    let rows = if impossible.is_empty() { 0..0 } else { 0..recorded.events.len() };
    for row in rows.filter(|row| impossible.contains(row)) {
        recorded.stats.lose_several(LossKind::StrayTime, 1);
        let kind = recorded.events.kind[row];
        if kind.is_gpu_work() {
            *recorded.stats.lost_work.stray.entry(kind).or_default() += 1;
        }
    }
    let twice = in_it_twice(&recorded.events);
    if !twice.is_empty() {
        *recorded.stats.repairs.entry(Repair::DuplicateEvent).or_default() += twice.len() as u64;
        impossible.extend(twice);
    }
    if impossible.is_empty() {
        return None;
    }
    let ids = (0..recorded.events.len()).filter(|row| !impossible.contains(row));
    Some(ids.map(EventId::of_row).collect())
}

/// The profiler's own span may be longer than what it recorded.
fn has_own_time(kind: EventKind) -> bool {
    !matches!(kind, EventKind::ProfilerSpan | EventKind::ProfilerOverhead)
}

/// The few events that are far from all others, or that last far beyond them.
fn at_impossible_times(events: &Events) -> HashSet<usize> {
    let rows = || (0..events.len()).filter(|&row| has_own_time(events.kind[row]));
    let end = |row: usize| events.start[row].as_nanos().saturating_add(events.duration.get(row).get());
    let (first, last) = rows().fold((i64::MAX, i64::MIN), |(first, last), row| {
        (first.min(events.start[row].as_nanos()), last.max(end(row)))
    });
    if last.saturating_sub(first) < LONGEST_PAUSE {
        return HashSet::default();
    }
    let mut starts: Vec<i64> = rows().map(|row| events.start[row].as_nanos()).collect();
    starts.sort_unstable();
    let (from, until) = main_part(&starts);
    let pause = LONGEST_PAUSE.max(until.saturating_sub(from).saturating_mul(TIMES_THE_REST));
    let is_stray = |&row: &usize| {
        let start = events.start[row].as_nanos();
        start < from || start > until || end(row) > until.saturating_add(pause)
    };
    let stray: HashSet<usize> = rows().filter(is_stray).collect();
    // With one event, or with many wrong ones, it is not known which time is the right one.
    let few = (FEW * starts.len() as f64).max(1.0);
    if starts.len() > 2 && stray.len() as f64 <= few { stray } else { HashSet::default() }
}

/// From the first to the last start of the largest part that no impossible pause cuts.
fn main_part(starts: &[i64]) -> (i64, i64) {
    let ends = |part: &[i64]| (part[0], part[part.len() - 1]);
    let mut largest = starts;
    // More cuts than this are not a few stray events.
    for _ in 0..MOST_CUTS {
        let pauses = largest.windows(2).enumerate().map(|(i, pair)| (pair[1].saturating_sub(pair[0]), i + 1));
        let Some((pause, at)) = pauses.max() else { return ends(largest) };
        let (before, after) = largest.split_at(at);
        let rest = if before.len() > after.len() { before } else { after };
        let (from, until) = ends(rest);
        if pause < LONGEST_PAUSE || pause < until.saturating_sub(from).saturating_mul(TIMES_THE_REST) {
            return ends(largest);
        }
        largest = rest;
    }
    ends(starts)
}

/// The same work at the same time with the same id is one event. Of host events only if GPU work is in the file twice: nested
/// functions may have the same name and times.
fn in_it_twice(events: &Events) -> Vec<usize> {
    let is_sure = |row: usize| events.kind[row].is_gpu_work() && events.correlation.get(row).is_some();
    if is_in_order(events, is_sure) {
        return Vec::new();
    }
    let mut twice = repeated(events, is_sure);
    if !twice.is_empty() {
        twice.extend(repeated(events, |row| !is_sure(row)));
    }
    twice
}

/// Whether each of these rows starts after all earlier ones of its kind and track. Work of one stream does, in most files: then none is in
/// it twice, and there is nothing to search.
fn is_in_order(events: &Events, is_wanted: impl Fn(usize) -> bool) -> bool {
    let mut last: Vec<Option<Timestamp>> = Vec::new();
    (0..events.len()).filter(|&row| is_wanted(row)).all(|row| {
        let kind = events.kind[row] as usize;
        let (at, start) = (events.track(row).index() * EventKind::ALL.len() + kind, events.start[row]);
        if last.len() <= at {
            last.resize(at + 1, None);
        }
        last[at].replace(start).is_none_or(|before| before < start)
    })
}

/// Everything that makes an event the same as another.
fn key(events: &Events, row: usize) -> (EventKind, u32, usize, Timestamp, i64, Option<u64>) {
    (
        events.kind[row],
        events.name(row).number(),
        events.track(row).index(),
        events.start[row],
        events.duration.get(row).get(),
        events.correlation.get(row),
    )
}

/// The rows that repeat an earlier one. A table of bits, sixteen per row, finds the few rows worth comparing.
fn repeated(events: &Events, is_wanted: impl Fn(usize) -> bool) -> Vec<usize> {
    use std::hash::BuildHasher as _;
    let hashes = HashMap::<u64, ()>::default();
    let rows = || (0..events.len()).filter(|&row| is_wanted(row));
    let bits = rows().count().saturating_mul(16).next_power_of_two().max(64);
    let mut seen = vec![0u64; bits / 64];
    let place = |row: usize| hashes.hasher().hash_one(key(events, row)) as usize & (bits - 1);
    let mut candidates: HashSet<usize> = HashSet::default();
    for row in rows() {
        let at = place(row);
        if seen[at / 64] & (1 << (at % 64)) != 0 {
            candidates.insert(at);
        }
        seen[at / 64] |= 1 << (at % 64);
    }
    if candidates.is_empty() {
        return Vec::new();
    }
    let mut first = HashSet::default();
    rows().filter(|&row| candidates.contains(&place(row)) && !first.insert(key(events, row))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builder::TraceBuilder;

    /// A thousand kernels within 10 ms, from a day in 2026 on.
    fn steady() -> TraceBuilder {
        const BEGIN: i64 = 1_790_000_000_000_000_000;
        let mut trace = TraceBuilder::default();
        let stream = trace.stream(0, 7);
        for i in 0..1_000 {
            let start = BEGIN + 10_000 * i;
            trace.kernel(stream, "gemm", start..start + 9_000).correlation(i as u64);
        }
        trace
    }

    fn left(mut trace: TraceBuilder) -> (usize, TraceBuilder) {
        let kept = keep_possible(&mut trace.trace);
        (kept.map_or(trace.len(), |kept| kept.len()), trace)
    }

    #[test]
    fn a_sound_trace_stays_as_it_is() {
        assert_eq!(keep_possible(&mut steady().trace), None);
    }

    #[test]
    fn one_stray_timestamp_is_left_out_and_counted() {
        for time in [0..10, 1_798_640_000_000_000_000..1_798_640_000_000_000_010] {
            let mut trace = steady();
            let stream = trace.stream(0, 7);
            trace.kernel(stream, "gemm", time);
            let (left, trace) = left(trace);
            assert_eq!(left, 1_000);
            assert_eq!(trace.stats().lost_work.stray[&EventKind::Kernel], 1);
            assert_eq!(trace.stats().losses[0].what, LossKind::StrayTime);
        }
    }

    #[test]
    fn a_duration_of_a_hundred_days_is_left_out() {
        let mut trace = steady();
        let stream = trace.stream(0, 7);
        trace.kernel(stream, "gemm", 1_790_000_000_000_000_500..1_798_640_000_000_000_000);
        assert_eq!(left(trace).0, 1_000);
    }

    /// An hour without events is unusual, and not impossible.
    #[test]
    fn a_long_pause_in_a_long_recording_stays() {
        let mut trace = TraceBuilder::default();
        let host = trace.thread(1, 1);
        const HOUR: i64 = 3_600_000_000_000;
        for hour in [0, 1, 2, 3, 8] {
            trace.operator(host, "aten::mm", hour * HOUR..hour * HOUR + 1_000);
        }
        assert_eq!(left(trace).0, 5);
    }

    #[test]
    fn half_of_the_events_at_another_time_all_stay() {
        let mut trace = steady();
        let host = trace.thread(1, 1);
        for i in 0..1_000 {
            trace.operator(host, "aten::mm", i * 1_000..i * 1_000 + 500);
        }
        assert_eq!(left(trace).0, 2_000);
    }

    #[test]
    fn events_that_are_in_the_file_twice_count_once() {
        let mut trace = steady();
        let (stream, host) = (trace.stream(0, 7), trace.thread(1, 1));
        for i in 0..1_000 {
            let start = 1_790_000_000_000_000_000 + 10_000 * i;
            trace.kernel(stream, "gemm", start..start + 9_000).correlation(i as u64);
        }
        for _ in 0..2 {
            trace.operator(host, "aten::mm", 1_790_000_000_000_000_000..1_790_000_000_000_000_100);
        }
        let (left, trace) = left(trace);
        assert_eq!(left, 1_001);
        assert_eq!(trace.stats().repairs[&Repair::DuplicateEvent], 1_001);
    }

    /// Recursive functions have frames with the same name and the same times, at the resolution of a microsecond.
    #[test]
    fn frames_with_equal_times_stay_if_no_gpu_work_repeats() {
        let mut trace = steady();
        let host = trace.thread(1, 1);
        for _ in 0..2 {
            trace.python_frame(host, "fib", 1_790_000_000_000_000_000..1_790_000_000_000_001_000);
        }
        assert_eq!(left(trace).0, 1_002);
    }
}
