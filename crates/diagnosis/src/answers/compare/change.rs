//! Is the last run faster than the first, by what factor, and by more than its steps vary?

use std::collections::BTreeSet;

use busbound_machine::median;
use serde::Serialize;

use super::parts::{self, PartChange};
use super::step_ms;
use crate::analysis::unprofiled::UnprofiledSource;
use crate::answers::diagnosis::Diagnosis;
use crate::figures::FigureId;
use crate::quantity::{count, milliseconds};
use crate::steps::window::StepTimes;
use crate::unit::Unit;

words! {
    /// How the last run compares with the first.
    pub enum Outcome: "outcome" {
        Faster = "faster",
        Slower = "slower",
        /// They differ by no more than steps vary within a run.
        NoClearDifference = "no_clear_difference",
    }
}

/// How the step of the last run differs from that of the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    pub outcome: Outcome,
    /// The longer mean step divided by the shorter one, at least 1.
    pub factor: f64,
    pub before_ms: f64,
    pub after_ms: f64,
    /// How far a step typically is from the median of its run (median absolute deviation; the larger one of both runs).
    /// `null` if a run has fewer than two steps.
    pub spread_ms: Option<f64>,
    /// The part of the step that changed most in the same direction; `null` without a clear difference.
    pub largest_part: Option<PartChange>,
}

/// Below this factor the difference would read "1.00x".
const SMALLEST_FACTOR: f64 = 1.005;

/// Steps that differ by more than this many deviations differ clearly. For steps that vary like a normal distribution it
/// is two standard deviations of a single step. One slow step does not move it, unlike the longest step.
const CLEAR_DEVIATIONS: f64 = 3.0;

pub(super) fn change(runs: &[Diagnosis]) -> Option<Change> {
    let (first, last) = (runs.first()?, runs.last()?);
    let (before_ms, after_ms) = (step_ms(first), step_ms(last));
    let factor = (before_ms / after_ms).max(after_ms / before_ms);
    let spread_ms = spread(first).zip(spread(last)).map(|(a, b)| a.max(b));
    let is_within_spread =
        spread_ms.is_some_and(|spread| (after_ms - before_ms).abs() <= CLEAR_DEVIATIONS * spread);
    let outcome = match () {
        () if factor < SMALLEST_FACTOR || is_within_spread => Outcome::NoClearDifference,
        () if after_ms < before_ms => Outcome::Faster,
        () => Outcome::Slower,
    };
    let largest_part = if outcome == Outcome::NoClearDifference { None } else { parts::largest_change(runs) };
    Some(Change { outcome, factor, before_ms, after_ms, spread_ms, largest_part })
}

/// Median absolute deviation of the steps; `None` with fewer than two.
fn spread(run: &Diagnosis) -> Option<f64> {
    let StepTimes { each_ms, p50_ms, .. } = run.window.steps.as_ref()?;
    if each_ms.len() < 2 {
        return None;
    }
    median(each_ms.iter().map(|step| (step - p50_ms).abs()))
}

/// `4.8x faster (1.14 s → 238 ms). Largest change per step: …`
pub(super) fn statement(runs: &[Diagnosis], change: &Change) -> String {
    let times = format!("{} → {}", milliseconds(change.before_ms), milliseconds(change.after_ms));
    let between = if runs.len() > 2 { format!(" from run 1 to run {}", runs.len()) } else { String::new() };
    if change.outcome == Outcome::NoClearDifference {
        let spread = change.spread_ms.filter(|_| change.factor >= SMALLEST_FACTOR);
        let why = match spread {
            Some(spread) => format!("steps vary by ±{} within a run", milliseconds(spread)),
            None => "they are within 0.5% of each other".to_owned(),
        };
        let other = other_work(runs).unwrap_or_default();
        let difference = change.after_ms - change.before_ms;
        if spread.is_some_and(|spread| difference.abs() > spread) {
            let word = if difference < 0.0 { "faster" } else { "slower" };
            return format!(
                "Possibly {word}{between} ({times}), but {why}: record more steps to be sure.{other}"
            );
        }
        return format!("No clear difference{between} ({times}): {why}.{other}");
    }
    let recorded = format!("{} {}{between} ({times})", times_of(change.factor), change.outcome);
    let mut text =
        unprofiled(runs).map_or(format!("{recorded}."), |own| format!("{own}; recorded: {recorded}."));
    let unit = runs.first().map_or(Unit::Trace, Diagnosis::unit);
    if let Some(part) = &change.largest_part {
        text.push_str(&part.statement(unit));
    }
    if let Some(sentence) = other_work(runs) {
        text.push_str(&sentence);
    }
    if change.spread_ms.is_none() {
        text.push_str(match unit {
            Unit::Trace => " The traces mark no steps, so this is one measurement of each run.",
            Unit::Step | Unit::Iteration => " One run has only one step, so its spread is unknown.",
        });
    }
    text
}

/// `Without the profiler 4.2x faster (about 3.34 ms → 804 µs)`; `None` if no run was slowed down.
fn unprofiled(runs: &[Diagnosis]) -> Option<String> {
    let (first, last) = (runs.first()?, runs.last()?);
    let known = [first, last].into_iter().filter_map(|run| run.window.unprofiled);
    let is_estimated = known.clone().any(|one| one.source == UnprofiledSource::Model);
    known.into_iter().next()?;
    let (before, after) = (first.window.baseline_ms, last.window.baseline_ms);
    let factor = (before / after).max(after / before);
    let outcome = if after < before { Outcome::Faster } else { Outcome::Slower };
    let about = if is_estimated { "about " } else { "" };
    Some(format!(
        "Without the profiler {about}{} {outcome} ({} → {})",
        times_of(factor),
        milliseconds(before),
        milliseconds(after)
    ))
}

/// Both the bytes to the GPU and the kernels' time differ by more than this factor, in the same direction.
const OTHER_BYTES: f64 = 1.5;
const OTHER_COMPUTE: f64 = 1.25;
/// The same program runs about as many kernels per step, within this share.
const SAME_KERNELS: f64 = 0.1;

/// Two runs of one program have kernels with the same names, for at least this share of the time of one of them.
const SAME_NAMES: f64 = 0.5;
/// And not this many times as many.
const MANY_MORE: f64 = 2.0;

fn kernel_names(run: &Diagnosis) -> BTreeSet<&str> {
    run.kernel_totals.iter().map(|kernel| kernel.name.as_str()).collect()
}

/// A sentence, if most kernels of one run have no counterpart in the other, and their number differs much.
fn other_program([first, last]: [&Diagnosis; 2]) -> Option<String> {
    let (before, after) = (kernel_names(first), kernel_names(last));
    if before.is_empty() || after.is_empty() {
        return None;
    }
    if before.is_disjoint(&after) {
        return Some(" These look like different programs: they have no kernel in common.".to_owned());
    }
    let shared = |run: &Diagnosis, other: &BTreeSet<&str>| {
        let sum = |is_counted: &dyn Fn(&str) -> bool| -> f64 {
            run.kernel_totals.iter().filter(|one| is_counted(&one.name)).map(|one| one.ms_per_step).sum()
        };
        sum(&|name| other.contains(name)) / sum(&|_| true).max(f64::MIN_POSITIVE)
    };
    let is_alike = shared(first, &after) >= SAME_NAMES || shared(last, &before) >= SAME_NAMES;
    let (a, b) = (FigureId::Kernels.of(first)?, FigureId::Kernels.of(last)?);
    (!is_alike && (a > MANY_MORE * b || b > MANY_MORE * a)).then(|| {
        format!(
            " Are these the same program? They run {} and {} kernels per step, and mostly different ones.",
            count(a.round() as u64),
            count(b.round() as u64)
        )
    })
}

/// A sentence, if the runs look like different programs, or like the same program with batches of different sizes: then a step
/// is not the same work.
fn other_work(runs: &[Diagnosis]) -> Option<String> {
    let (first, last) = (runs.first()?, runs.last()?);
    if let Some(sentence) = other_program([first, last]) {
        return Some(sentence);
    }
    let ratio = |figure: FigureId| Some(figure.of(last)? / figure.of(first).filter(|value| *value > 0.0)?);
    let (bytes, compute) = (ratio(FigureId::H2dMb)?, ratio(FigureId::ComputeMs)?);
    let kernels = ratio(FigureId::Kernels)?;
    let is_more = bytes >= OTHER_BYTES && compute >= OTHER_COMPUTE;
    let is_less = bytes <= 1.0 / OTHER_BYTES && compute <= 1.0 / OTHER_COMPUTE;
    ((kernels - 1.0).abs() <= SAME_KERNELS && (is_more || is_less)).then(|| {
        format!(
            " Probably not the same work: the last run copies {bytes:.1}x the bytes to the GPU per step, and its kernels take {compute:.1}x as long (another batch size?). Compare the time per sample."
        )
    })
}

/// `1.03x`, `4.8x`, `12x`: two digits that matter.
pub(super) fn times_of(factor: f64) -> String {
    match factor {
        f if f < 1.095 => format!("{f:.2}x"),
        f if f < 9.95 => format!("{f:.1}x"),
        f => format!("{f:.0}x"),
    }
}

#[cfg(test)]
mod tests {
    use super::times_of;

    #[test]
    fn factors_have_two_digits_that_matter() {
        let written: Vec<String> = [1.006, 1.094, 1.1, 1.34, 4.777, 9.96, 17.6].map(times_of).into();
        assert_eq!(written, ["1.01x", "1.09x", "1.1x", "1.3x", "4.8x", "10x", "18x"]);
    }
}
