//! Does the run evaluate between its training steps, without a name for it? Then forward passes follow each other, with no
//! backward pass and no optimizer between them.
//!
//! Training is recognized by names: of autograd's functions, of the optimizer, and of kernels. Between the optimizer of a step and
//! the next backward pass is one forward pass. Where several times as many of the same kernels are launched there, the program
//! evaluates. Other work there (generating text, compiling, metrics) is not called evaluation.

use std::collections::BTreeMap;
use std::ops::Range;

use busbound_cause::training::is_training;
use busbound_machine::median;
use busbound_trace::{EventKind, Interval, IntervalSet, NameId, Nanos, Timestamp};

use super::{FoundPhase, PhaseFound, PhaseKind};
use crate::steps::basis::Basis;

/// With fewer training steps, nobody knows what a usual one launches.
const FEWEST_STEPS: usize = 5;
/// A forward pass has more kernels.
const FEWEST_KERNELS: usize = 5;
/// Forward passes in a row, including that of the next training step: at least two without a backward pass. A little less,
/// because the loss is not always computed.
const PASSES: f64 = 2.8;
/// Most training steps launch the same number of kernels, give or take this share: otherwise nothing is usual.
const SPREAD: f64 = 0.1;
const REGULAR: f64 = 0.5;
/// At least this share of what is launched is also launched in usual forward passes.
const KNOWN: f64 = 0.5;
/// A program evaluates after several training steps. What it does before each of them is a part of training.
const STEPS_PER_EVALUATION: usize = 4;

/// When the host shows that it trains, and what it launches.
struct Seen {
    /// Operators and calls, by their start.
    signs: Vec<Interval>,
    /// Other kernels, by their call.
    launches: Vec<(Timestamp, NameId)>,
}

/// What the host did between two signs of training.
#[derive(Clone)]
struct Between {
    time: Interval,
    /// The kernels that it launched.
    launches: Range<usize>,
}

/// How many kernels of each name.
type Kernels = BTreeMap<NameId, usize>;

/// How many times as many of the usual kernels were launched: of half of them, at least so many. And which share of all kernels is
/// usual.
fn passes(kernels: &Kernels, usual: &Kernels) -> (f64, f64) {
    let of = |name: &NameId| kernels.get(name).copied().unwrap_or(0);
    let mut times: Vec<(f64, usize)> =
        usual.iter().map(|(name, count)| (of(name) as f64 / *count as f64, *count)).collect();
    times.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut left = usual.values().sum::<usize>().div_ceil(2);
    let half = times.into_iter().find_map(|(times, count)| {
        left = left.saturating_sub(count);
        (left == 0).then_some(times)
    });
    let known: usize = usual.keys().map(of).sum();
    (half.unwrap_or(0.0), known as f64 / kernels.values().sum::<usize>().max(1) as f64)
}

/// Evaluation between training steps.
pub(super) fn inferred(basis: &Basis<'_>) -> Option<FoundPhase> {
    let seen = Seen::of(basis)?;
    let forward = seen.forward_passes(basis);
    let mut by_count: Vec<&Between> = forward.values().collect();
    by_count.sort_by_key(|between| between.launches.len());
    let usual = *by_count.get(by_count.len() / 2)?;
    let count = usual.launches.len();
    let is_like = |one: &&&Between| one.launches.len().abs_diff(count) as f64 <= SPREAD * count as f64;
    let alike: Vec<&Between> = by_count.iter().filter(is_like).copied().collect();
    let is_regular = alike.len() as f64 >= REGULAR * by_count.len() as f64;
    if by_count.len() < FEWEST_STEPS || count < FEWEST_KERNELS || !is_regular {
        return None;
    }
    let kernels = seen.kernels(usual);
    let evaluates = |between: &&Between| {
        let (passes, known) = passes(&seen.kernels(between), &kernels);
        passes >= PASSES && known >= KNOWN
    };
    let more = forward.values().filter(|between| between.launches.len() > 2 * count);
    let found: Vec<&Between> = more.filter(evaluates).collect();
    if found.is_empty() || found.len() * STEPS_PER_EVALUATION > by_count.len() {
        return None;
    }
    let usual_ms = median(alike.iter().map(|one| one.time.length().as_millis()))?;
    let times = found.iter().filter_map(|between| evaluation_in(between.time, usual_ms, basis));
    let times = IntervalSet::from_unsorted(times);
    let (kind, name) = (PhaseKind::Evaluation, "forward passes without a backward pass".to_owned());
    Some(FoundPhase { kind, name, found: PhaseFound::Inferred, times })
}

/// The time between two signs of training without the end of the step before it and the forward pass after it.
fn evaluation_in(time: Interval, usual_ms: f64, basis: &Basis<'_>) -> Option<Interval> {
    let starts: Vec<Timestamp> = basis
        .window
        .starts
        .iter()
        .copied()
        .filter(|start| *start > time.start && *start <= time.end)
        .collect();
    let forward = Nanos::new(-(usual_ms * 1e6) as i64);
    let (begin, end) = match starts[..] {
        // Steps of their own, and the training step after them.
        [first, .., last] => (first, last),
        // Within a step.
        [next] => (time.start, next),
        [] => (time.start, time.end + forward),
    };
    (begin < end).then(|| Interval::new(begin, end))
}

impl Seen {
    /// `None` if nothing is a sign of training.
    fn of(basis: &Basis<'_>) -> Option<Self> {
        let names = basis.trace.names();
        let of_kind = |kind| -> Vec<bool> { names.iter().map(|name| is_training(kind, name)).collect() };
        let [kernels, operators] = [EventKind::Kernel, EventKind::Operator].map(of_kind);
        if !kernels.iter().chain(&operators).any(|is_training| *is_training) {
            return None;
        }
        let mut seen = Self { signs: Vec::new(), launches: Vec::new() };
        for event in basis.trace.events() {
            let name = event.name_id();
            match event.kind() {
                EventKind::Operator | EventKind::Annotation if operators[name.index()] => {
                    seen.signs.push(event.interval());
                }
                EventKind::Kernel => {
                    let Some(call) = basis.host.call_behind(&event) else { continue };
                    match kernels[name.index()] {
                        true => seen.signs.push(call.interval()),
                        false => seen.launches.push((call.start(), name)),
                    }
                }
                _ => {}
            }
        }
        seen.signs.sort_by_key(|sign| sign.start);
        seen.launches.sort_by_key(|(at, _)| *at);
        Some(seen)
    }

    /// By step, what is between two signs of training and has most kernels: the forward pass, and what is before it.
    fn forward_passes(&self, basis: &Basis<'_>) -> BTreeMap<usize, Between> {
        let mut forward: BTreeMap<usize, Between> = BTreeMap::new();
        let Some(mut last) = self.signs.first().map(|sign| sign.end) else { return forward };
        let mut next = 0;
        for sign in &self.signs {
            let from = next + self.launches[next..].partition_point(|(at, _)| *at <= last);
            let until = from + self.launches[from..].partition_point(|(at, _)| *at < sign.start);
            let between = Between { time: Interval::new(last, sign.start), launches: from..until };
            if from < until
                && let Some(step) = basis.window.step_at(sign.start)
            {
                let known = forward.entry(step).or_insert_with(|| between.clone());
                if between.launches.len() > known.launches.len() {
                    *known = between;
                }
            }
            (next, last) = (from, last.max(sign.end));
        }
        forward
    }

    fn kernels(&self, between: &Between) -> Kernels {
        let mut kernels = Kernels::new();
        for (_, name) in &self.launches[between.launches.clone()] {
            *kernels.entry(*name).or_default() += 1;
        }
        kernels
    }
}
