//! Without step annotations: what repeats in the sequence of launches?
//!
//! A loop launches the same work in the same order every time. The sequence is compared with itself,
//! shifted by every distance at which some launch recurs; the distance with the most matches is the
//! period. Layers repeat within a step, but the launches before and after the layers do not match at that
//! distance, so the step wins over the layer if anything differs between layers.

use busbound_trace::{Event, EventId, EventKind, NameId, Timestamp, Trace};

use super::{Beginnings, StepsFound};
use busbound_cause::Host;

/// One launch or synchronization. Small, because there are as many as events.
struct Token {
    call: EventId,
    /// What was launched: the number of its name, or beyond all of them that of a wait.
    what: u32,
}

const _: () = assert!(size_of::<Token>() <= 8);

/// The launches and synchronizations, in the order in which the host made them.
struct Tokens<'a> {
    trace: &'a Trace,
    list: Vec<Token>,
}

impl Tokens<'_> {
    fn at(&self, place: usize) -> Timestamp {
        self.trace.event(self.list[place].call).start()
    }

    fn end(&self, place: usize) -> Timestamp {
        self.trace.event(self.list[place].call).end()
    }

    /// The end of a launch, or the start of a wait.
    fn worked_until(&self, place: usize) -> Timestamp {
        let is_wait = self.list[place].what >= names_of(self.trace);
        if is_wait { self.at(place) } else { self.end(place) }
    }

    fn len(&self) -> usize {
        self.list.len()
    }
}

fn names_of(trace: &Trace) -> u32 {
    u32::try_from(trace.names().len()).unwrap_or(u32::MAX)
}

/// A period counts if it occurs this often, if this share of the sequence matches, and if it is long enough
/// to be a loop of the program rather than of one operator.
const FEWEST: usize = 3;
const AGREES: f64 = 0.75;
const SHORTEST: usize = 4;
const SHORTEST_NANOS: i64 = 200_000;
/// If two periods match almost equally well, within this share, the shorter one counts: the longer is a multiple.
const AS_GOOD: f64 = 0.01;
/// Most distances tried: those of the rarest launches first.
const TRIED: usize = 24;

pub(super) fn period(trace: &Trace, host: &Host<'_>) -> Option<Beginnings> {
    let tokens = tokens(trace, host);
    let sequence: Vec<u32> = tokens.list.iter().map(|token| token.what).collect();
    let (length, anchors) = best_period(&sequence)?;
    let anchor = anchors.first()?;
    // The sequence could be cut at any offset. Steps begin where the host pauses longest before its next launch.
    let pause = |offset: usize| -> i64 {
        let places =
            anchor.iter().map(|place| place + offset).filter(|&place| 0 < place && place < tokens.len());
        let mut pauses: Vec<i64> =
            places.map(|place| (tokens.at(place) - tokens.worked_until(place - 1)).get()).collect();
        pauses.sort_unstable();
        pauses.get(pauses.len() / 2).copied().unwrap_or(0)
    };
    let offset = (0..length).max_by_key(|&offset| (pause(offset), std::cmp::Reverse(offset)))?;
    let mut places: Vec<usize> =
        anchor.iter().map(|place| place + offset).filter(|&place| place < tokens.len()).collect();
    // Launches before the first anchor may also be whole steps, if they match.
    let mut earlier = Vec::new();
    let mut first = *places.first()?;
    while let Some(before) = first.checked_sub(length) {
        let same = (0..length).filter(|i| sequence.get(first + i) == Some(&sequence[before + i])).count();
        if (same as f64) < AGREES * length as f64 {
            break;
        }
        earlier.push(before);
        first = before;
    }
    earlier.reverse();
    places.splice(0..0, earlier);
    let (&first, &last) = (places.first()?, places.last()?);
    let span = tokens.at(last) - tokens.at(first);
    if span.get() < SHORTEST_NANOS * (places.len() as i64 - 1) {
        return None;
    }
    let starts: Vec<Timestamp> = places.iter().map(|&place| tokens.at(place)).collect();
    let rest = sequence.len() - last;
    // A program that ends waits for all of its streams: waits do not complete an iteration.
    let is_launch = |what: &&u32| **what < names_of(trace);
    let launches = |from: usize, until: usize| sequence[from..until].iter().filter(is_launch).count();
    let before = places.len().checked_sub(2).map_or(first, |place| places[place]);
    let (launched, usual) = (launches(last, sequence.len()), launches(before, last));
    let until = end_of_loop(&tokens, &places, length);
    let last_token = until.unwrap_or(tokens.len()) - 1;
    let ends = (1..places.len()).map(|i| tokens.end(places[i] - 1)).chain([tokens.end(last_token)]);
    Some(Beginnings {
        found: StepsFound::Period,
        pattern: format!("{length} repeating launches"),
        ends: ends.collect(),
        starts,
        marked_by: None,
        until: until.map(|place| tokens.at(place)),
        last_is_whole: rest * 100 >= length * 95 && launched * 100 >= usual * 95,
        is_inferred: true,
    })
}

/// What comes after the last iteration, if that launches something and takes more than this share of an iteration, is not part of it.
const TAIL: f64 = 0.05;

/// The place of the first launch or wait after the loop: what a program does before it ends, such as copying its results or saving.
/// `None` if the trace ends with the loop.
fn end_of_loop(tokens: &Tokens<'_>, places: &[usize], length: usize) -> Option<usize> {
    let (&first, &last) = (places.first()?, places.last()?);
    let after = last + length;
    let launches = tokens.list.get(after..)?.iter().any(|token| token.what < names_of(tokens.trace));
    let end = tokens.end(tokens.len() - 1);
    let usual =
        (tokens.at(last) - tokens.at(first)).get() as f64 / places.len().saturating_sub(1).max(1) as f64;
    let tail = end - tokens.end(after - 1);
    (launches && tail.get() as f64 > TAIL * usual).then_some(after)
}

/// Whether most of these are inside calls that have several of them: of one module of a model, or of one operator. Then they are its layers,
/// and no iterations of the program.
pub(super) fn are_layers(trace: &Trace, host: &Host<'_>, begin: &Beginnings) -> bool {
    let starts = &begin.starts;
    let Some(shortest) = starts.windows(2).map(|pair| pair[1] - pair[0]).min() else { return false };
    let mut inside = vec![false; starts.len()];
    for (thread, _) in host.launching_threads() {
        for event in trace.track(thread).events().filter(|event| event.duration() > shortest) {
            let first = starts.partition_point(|start| *start < event.start());
            let end = starts.partition_point(|start| *start < event.end());
            if end >= first + 2 && is_one_call(&event) {
                inside[first..end].fill(true);
            }
        }
    }
    2 * inside.iter().filter(|is_inside| **is_inside).count() > starts.len()
}

/// Whether an event is a call of one module or operator. Ranges that a program names may contain its loop.
fn is_one_call(event: &Event<'_>) -> bool {
    let name = event.name();
    match event.kind() {
        EventKind::PythonFrame => {
            name.starts_with("nn.Module: ")
                || name.contains("torch/nn/modules/module.py") && name.ends_with("_call_impl")
        }
        EventKind::Operator => name.contains("::"),
        _ => false,
    }
}

/// The launches and waits of the host, in order.
fn tokens<'a>(trace: &'a Trace, host: &Host<'_>) -> Tokens<'a> {
    let work = || trace.events().filter(|event| event.kind().is_gpu_work());
    let mut launched: Vec<(EventId, EventId)> = Vec::with_capacity(work().count());
    launched.extend(work().filter_map(|work| Some((host.call_behind(&work)?.id(), work.id()))));
    // A graph launch is one token, named after the first work of the graph. Whole numbers are sorted faster than what is looked up
    // for every comparison.
    launched.sort_unstable();
    let of_calls = launched.chunk_by(|(a, _), (b, _)| a == b);
    let number = |name: NameId| u32::try_from(name.index()).unwrap_or(u32::MAX);
    let mut list: Vec<(Timestamp, Token)> =
        Vec::with_capacity(launched.len() + host.synchronizations().len());
    list.extend(of_calls.filter_map(|of_call| {
        let first = of_call.iter().map(|(_, work)| trace.event(*work)).min_by_key(|work| work.start())?;
        let (call, _) = *of_call.first()?;
        Some((trace.event(call).start(), Token { call, what: number(first.name_id()) }))
    }));
    // Offset by the number of names, so that synchronizations never share a number with launched work.
    let names = names_of(trace);
    list.extend(host.synchronizations().map(|call| {
        (call.start(), Token { call: call.id(), what: names.saturating_add(number(call.name_id())) })
    }));
    drop(launched);
    let end = |token: &Token| trace.event(token.call).end();
    list.sort_by(|(a_start, a), (b_start, b)| {
        (a_start, a.what).cmp(&(b_start, b.what)).then_with(|| end(a).cmp(&end(b)))
    });
    let list = list.into_iter().map(|(_, token)| token).collect();
    Tokens { trace, list }
}

/// The period of a sequence, and the places of every launch that occurs once per period.
fn best_period(sequence: &[u32]) -> Option<(usize, Vec<Vec<usize>>)> {
    let different = sequence.iter().max().map_or(0, |what| *what as usize + 1);
    let mut places: Vec<Vec<usize>> = vec![Vec::new(); different];
    for (i, &what) in sequence.iter().enumerate() {
        places[what as usize].push(i);
    }
    // By the distance at which each launch usually recurs.
    let mut by_distance: Vec<(usize, Vec<usize>)> = places
        .into_iter()
        .filter(|places| places.len() >= FEWEST)
        .filter_map(|places| Some((usual_distance(&places)?, places)))
        .filter(|(distance, _)| *distance >= SHORTEST && sequence.len() >= (FEWEST - 1) * distance)
        .collect();
    by_distance.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let mut distances: Vec<usize> = by_distance.iter().map(|(distance, _)| *distance).collect();
    distances.dedup();
    let tried: Vec<(usize, f64)> =
        distances.into_iter().take(TRIED).map(|distance| (distance, agreement(sequence, distance))).collect();
    let best = tried.iter().map(|(_, agrees)| *agrees).fold(0.0, f64::max);
    if best < AGREES {
        return None;
    }
    let (length, _) =
        tried.into_iter().filter(|(_, agrees)| *agrees >= best - AS_GOOD).min_by_key(|t| t.0)?;
    let anchors = by_distance.into_iter().filter(|(distance, _)| *distance == length);
    Some((length, anchors.map(|(_, places)| places).collect()))
}

/// The distance between most neighboring places.
fn usual_distance(places: &[usize]) -> Option<usize> {
    let mut distances: Vec<usize> = places.windows(2).map(|pair| pair[1] - pair[0]).collect();
    distances.sort_unstable();
    let median = distances[distances.len() / 2];
    let same = distances.iter().filter(|&&distance| distance == median).count();
    (same * 5 >= distances.len() * 3).then_some(median)
}

/// Share of the sequence that recurs after `distance`.
fn agreement(sequence: &[u32], distance: usize) -> f64 {
    let pairs = sequence.iter().zip(&sequence[distance..]);
    let all = sequence.len() - distance;
    pairs.filter(|(a, b)| a == b).count() as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_step_wins_over_its_layers() {
        // Ten layers of four kernels, then a loss and an update.
        let step: Vec<u32> = (0..10).flat_map(|_| [1, 2, 3, 4]).chain([5, 6]).collect();
        let sequence = step.repeat(5);
        assert_eq!(best_period(&sequence).map(|(length, _)| length), Some(42));
    }

    #[test]
    fn one_operator_in_a_loop_is_not_a_step() {
        assert!(best_period(&[1, 2].repeat(500)).is_none());
    }

    #[test]
    fn a_sequence_that_does_not_repeat_has_no_period() {
        let squares: Vec<u32> = (0..2000u32).map(|i| i.wrapping_mul(i) % 97).collect();
        let odd: Vec<u32> =
            squares.iter().enumerate().map(|(i, s)| s + (i as u32 % 13) * (i as u32)).collect();
        assert!(best_period(&odd).is_none());
    }

    proptest! {
        #[test]
        fn a_loop_with_a_unique_launch_is_found(
            body in prop::collection::vec(0u32..6, 6..60),
            times in 4usize..12,
            extra in 0usize..3,
        ) {
            // One launch that occurs once per iteration, whatever repeats within it.
            let mut iteration = vec![99];
            iteration.extend(&body);
            let mut sequence = iteration.repeat(times);
            // One or two extra launches halfway, like those of an allocator or a logger.
            for _ in 0..extra.min(times / 4) {
                sequence.insert(iteration.len() * (times / 2) + 1, 77);
            }
            let found = best_period(&sequence);
            if extra.min(times / 4) == 0 {
                prop_assert_eq!(found.map(|(length, _)| length), Some(iteration.len()));
            }
        }
    }
}
