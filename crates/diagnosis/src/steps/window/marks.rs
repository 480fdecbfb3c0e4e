//! Which annotations mark steps?

use std::collections::BTreeMap;

use busbound_trace::{Event, EventKind, Nanos, Timestamp, Trace, TrackId};
use regex_lite::Regex;

use super::{Beginnings, StepsFound};
use crate::pattern::pattern_of;
use busbound_cause::Host;
use busbound_cause::training::is_optimizer_step;

/// Steps from the annotation that looks most like a step.
pub(super) fn likely(trace: &Trace, host: &Host<'_>) -> Option<Beginnings> {
    let mut patterns: BTreeMap<(TrackId, String), Vec<Event<'_>>> = BTreeMap::new();
    for event in annotations(trace, host) {
        patterns.entry((event.track_id(), pattern_of(event.name()))).or_default().push(event);
    }
    let candidates = patterns.into_iter().filter_map(|((_, pattern), mut events)| {
        events.sort_by_key(Event::start);
        let rank = likeness(&pattern)?;
        let in_sequence = events.windows(2).all(|pair| pair[0].end() <= pair[1].start());
        in_sequence.then_some((rank, pattern, events))
    });
    // The most step-like name; among equals, the one that covers the most time.
    let (_, pattern, events) = candidates.max_by_key(|(rank, _, events)| {
        (*rank, events.last().zip(events.first()).map(|(last, first)| last.end() - first.start()))
    })?;
    Some(beginnings(StepsFound::Annotation, pattern, &events))
}

/// Steps from one optimizer, which ends each step of a training loop; torch.profiler marks its calls. Of several, one may be called less often.
pub(super) fn by_optimizer(trace: &Trace, host: &Host<'_>) -> Option<Beginnings> {
    const FEWEST: usize = 4;
    let mut calls: BTreeMap<(TrackId, &str), Vec<Event<'_>>> = BTreeMap::new();
    for event in annotations(trace, host).filter(|event| is_optimizer_step(event.name())) {
        calls.entry((event.track_id(), event.name())).or_default().push(event);
    }
    let ((track, name), mut calls) = calls.pop_first().filter(|_| calls.is_empty())?;
    calls.sort_by_key(Event::start);
    let in_sequence = calls.windows(2).all(|pair| pair[0].end() <= pair[1].start());
    if calls.len() < FEWEST || !in_sequence {
        return None;
    }
    let ends: Vec<Timestamp> = calls[1..].iter().map(Event::end).collect();
    Some(Beginnings {
        until: ends.last().copied(),
        found: StepsFound::Annotation,
        pattern: name.to_owned(),
        starts: calls[..calls.len() - 1].iter().map(Event::end).collect(),
        marked_by: Some((track, calls[1..].iter().map(Event::id).collect())),
        ends,
        last_is_whole: true,
        is_inferred: true,
    })
}

/// Steps from the annotations that the user named, on the thread where they cover the most time.
pub(super) fn given(trace: &Trace, host: &Host<'_>, wanted: &Regex) -> Option<Beginnings> {
    let matches: Vec<bool> = trace.names().iter().map(|name| wanted.is_match(name)).collect();
    let mut by_track: BTreeMap<TrackId, Vec<Event<'_>>> = BTreeMap::new();
    for event in annotations(trace, host).filter(|event| matches[event.name_id().index()]) {
        by_track.entry(event.track_id()).or_default().push(event);
    }
    let outermost = by_track.into_values().map(|mut events| {
        events.sort_by_key(|event| (event.start(), std::cmp::Reverse(event.end())));
        let mut outer: Vec<Event<'_>> = Vec::new();
        for event in events {
            if outer.last().is_none_or(|last| last.end() <= event.start()) {
                outer.push(event);
            }
        }
        outer
    });
    let events = outermost.max_by_key(|events| events.iter().map(Event::duration).sum::<Nanos>())?;
    Some(beginnings(StepsFound::Given, wanted.as_str().to_owned(), &events))
}

/// Host annotations, and the steps that traces older than 2022 record as operators.
fn annotations<'a>(trace: &'a Trace, host: &Host<'a>) -> impl Iterator<Item = Event<'a>> {
    let is_step: Vec<bool> = trace.names().iter().map(|name| name.starts_with("ProfilerStep#")).collect();
    let old: Vec<Event<'a>> = if is_step.contains(&true) {
        trace.events().filter(|e| e.kind() == EventKind::Operator && is_step[e.name_id().index()]).collect()
    } else {
        Vec::new()
    };
    host.annotations().into_iter().chain(old)
}

fn beginnings(found: StepsFound, pattern: String, events: &[Event<'_>]) -> Beginnings {
    // A step lasts until the next one begins. The last one, if the user named it, lasts as long as the steps before it.
    let mut periods: Vec<Nanos> = events.windows(2).map(|pair| pair[1].start() - pair[0].start()).collect();
    periods.sort_unstable();
    let usual = periods.get(periods.len() / 2).copied().unwrap_or(Nanos::ZERO);
    let last = events.last().filter(|_| found == StepsFound::Given);
    let until = last.map(|last| last.end().max(last.start() + usual));
    Beginnings {
        until,
        found,
        pattern,
        starts: events.iter().map(Event::start).collect(),
        marked_by: events.first().map(|first| (first.track_id(), events.iter().map(Event::id).collect())),
        ends: events.iter().map(Event::end).collect(),
        last_is_whole: true,
        is_inferred: false,
    }
}

/// How much an annotation's name pattern looks like a training step; `None` if not at all.
fn likeness(pattern: &str) -> Option<u8> {
    let lower = pattern.to_ascii_lowercase();
    if lower == "profilerstep#*" {
        return Some(9);
    }
    // vLLM and SGLang mark each pass of the engine: `execute_context_1(512)_generation_3(3)`.
    if lower.starts_with("execute_context_") {
        return Some(6);
    }
    // `step`, `step 3`, `train_step_3`, `iter#3`.
    let (word, numbered) = match lower.strip_suffix('*') {
        Some(word) => (word.trim_end_matches(['_', ' ', '#', '-', ':', '.']), true),
        None => (lower.as_str(), false),
    };
    let is_step = ["step", "train_step", "training_step", "iteration", "iter"].contains(&word);
    is_step.then_some(if numbered { 7 } else { 8 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_recognized_by_name() {
        for name in [
            "ProfilerStep#*",
            "execute_context_*(*)_generation_*(*)",
            "step",
            "Step *",
            "train_step_*",
            "train_step *",
            "iteration*",
            "iter#*",
        ] {
            assert!(likeness(name).is_some(), "{name}");
        }
        for name in ["Optimizer.step#AdamW.step", "nccl:all_reduce", "layer*", "stepper", "forward"] {
            assert!(likeness(name).is_none(), "{name}");
        }
        assert!(likeness("ProfilerStep#*") > likeness("step") && likeness("step") > likeness("iter *"));
    }
}
