//! How long is each step? From the end of the previous step to its own end.
//!
//! A recording begins with an idle GPU and usually ends with a synchronization. If the host runs ahead, the first step has a wait for
//! its launches that no later step has; if copies run beside the next step's kernels, those of the last step run alone. Both are left
//! out: a run that goes on has neither.

use busbound_machine::median;
use busbound_trace::{Interval, Nanos, Timestamp};

use super::{Beginnings, Work};

/// Fewer steps do not show what is usual.
const FEWEST: usize = 3;

#[derive(Debug)]
pub(super) struct Lengths {
    pub(super) steps: Vec<Interval>,
    /// When the work launched in each step has ended.
    pub(super) work_ends: Vec<Timestamp>,
    /// From here on, copies of the last step run alone.
    pub(super) drain: Option<Timestamp>,
    /// What is left out before the first step.
    pub(super) fill: Nanos,
}

impl Lengths {
    /// `from` is when the first step begins, if that is known.
    pub(super) fn of(begin: &Beginnings, work: &Work, from: Option<Timestamp>) -> Self {
        let drains = copies_outlast(begin, work);
        let mut ends: Vec<Timestamp> =
            (0..begin.starts.len()).map(|step| end(begin, work, step, drains)).collect();
        if drains {
            leave_out_drain(begin, work, &mut ends);
        }
        let first = first_start(begin, work);
        let fill = if from.is_some() { Nanos::ZERO } else { fill(begin, work, first, &ends) };
        let mut start = from.unwrap_or(first + fill);
        let mut steps: Vec<Interval> = Vec::with_capacity(ends.len());
        for end in ends {
            steps.push(Interval::new(start, end.max(start)));
            start = end.max(start);
        }
        let ended = |(step, hull): (&Interval, &Option<Interval>)| {
            hull.map_or(step.end, |hull| hull.end.max(step.end))
        };
        let work_ends = steps.iter().zip(&work.hulls).map(ended).collect();
        let drain = steps.last().filter(|_| drains).map(|last| last.end);
        Self { steps, work_ends, drain, fill }
    }
}

/// Whether the copies of most steps still run when the next step's kernels begin.
fn copies_outlast(begin: &Beginnings, work: &Work) -> bool {
    let all = begin.starts.len();
    if begin.marked_by.is_none() || all < FEWEST {
        return false;
    }
    let outlasts = |step: &usize| match (work.hulls[*step], work.kernels[*step], work.kernels[*step + 1]) {
        (Some(all), Some(own), Some(next)) => all.end > own.end && all.end > next.start,
        _ => false,
    };
    2 * (0..all - 1).filter(outlasts).count() > all - 1
}

/// When a step ends: with its work, and not before the host has left it.
fn end(begin: &Beginnings, work: &Work, step: usize, copies_outlast: bool) -> Timestamp {
    let left = begin.ends[step];
    // A copy that still runs after the next step's kernels have ended does not delay its own step.
    let next_kernels = work.kernels.get(step + 1).copied().flatten();
    let own = match (work.hulls[step], work.kernels[step], next_kernels) {
        (_, Some(kernels), _) if copies_outlast => Some(kernels),
        (Some(work), Some(kernels), Some(next)) if work.end > next.end => Some(kernels),
        (work, ..) => work,
    };
    let next_start = begin.starts.get(step + 1).copied();
    own.map_or(next_start.unwrap_or(left), |work| work.end.max(left))
}

/// The host waits for the last copies, within the last step or after it: that step ends as soon after its kernels as usual.
fn leave_out_drain(begin: &Beginnings, work: &Work, ends: &mut [Timestamp]) {
    let Some((last, before)) = ends.split_last_mut() else { return };
    let after_kernels =
        |(end, kernels): (&Timestamp, &Option<Interval>)| kernels.map(|kernels| *end - kernels.end);
    let usual = middle(before.iter().zip(&work.kernels).filter_map(after_kernels));
    if let Some(kernels) = work.kernels[begin.starts.len() - 1] {
        *last = (*last).min(kernels.end + usual);
    }
}

/// When the first step begins.
fn first_start(begin: &Beginnings, work: &Work) -> Timestamp {
    let (began, several) = (begin.starts[0], begin.starts.len() > 1);
    // Work queued before the first step may still be running when it begins.
    let was_queued = begin.marked_by.is_none() || several && work.first_was_queued;
    work.hulls[0].filter(|_| was_queued).map_or(began, |hull| hull.start.max(began))
}

/// How much longer than usual an idle GPU waits for the first work: later steps are launched ahead.
fn fill(begin: &Beginnings, work: &Work, first: Timestamp, ends: &[Timestamp]) -> Nanos {
    let Some(hull) = work.hulls[0].filter(|_| begin.starts.len() >= FEWEST) else { return Nanos::ZERO };
    if work.before > 0 || work.without_launch.iter().any(|work| work.start < hull.start) {
        return Nanos::ZERO;
    }
    let waits = work.hulls[1..].iter().zip(ends);
    let usual = middle(waits.filter_map(|(hull, before)| Some(hull.as_ref()?.start - *before)));
    (hull.start - first - usual.max(Nanos::ZERO)).max(Nanos::ZERO)
}

/// The median; nothing if there is none.
fn middle(times: impl Iterator<Item = Nanos>) -> Nanos {
    let nanos = median(times.map(|time| time.get() as f64));
    Nanos::new(nanos.unwrap_or(0.0) as i64)
}
