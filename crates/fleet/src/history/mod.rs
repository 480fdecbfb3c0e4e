//! How did a job change over time? The summaries of its ranks in the order of their recording, and where the step time or a
//! part of the step changes its level.

mod change_points;
mod together;

use std::collections::BTreeMap;

use busbound_diagnosis::FigureId;
use serde::Serialize;

use crate::fleet::Unread;
use crate::name::RankName;
use crate::spread::median;
use crate::summary::{RankSummary, is_window};
use change_points::{ChangePoint, change_points};
use together::together;

pub const HISTORY_SCHEMA: &str = "busbound.history/1";

/// A smaller change of the step, as a share of it, is not reported: changes of 5% and more have to be found, and what is
/// found of them varies with the noise.
pub(crate) const SMALLEST_SHARE: f64 = 0.03;
/// A part explains a change of the step if its own change is at least this share of the step.
const SMALLEST_PART: f64 = 0.01;
/// A part whose change does not change the step is reported from this share of the step on.
const SMALLEST_ALONE: f64 = 0.05;
/// Recordings of a rank that are needed: two levels.
const FEWEST_RECORDINGS: usize = 10;
/// Recordings by which the changes of a part and of its step may be apart.
const SAME_PLACE: usize = 3;
/// Standard errors on each side of a change, for a range that holds it 95% of the time.
const RANGE_ERRORS: f64 = 1.96;

/// The recordings of one job.
#[derive(Debug, Clone)]
pub struct Job {
    pub name: String,
    pub recordings: Vec<RankSummary>,
}

/// The output of `busbound history`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct History {
    pub schema: &'static str,
    pub jobs: Vec<JobHistory>,
    /// In the order of time.
    pub changes: Vec<HistoryChange>,
    pub unread: Vec<Unread>,
    /// What was left out, and why.
    pub limitations: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobHistory {
    pub job: String,
    pub ranks: usize,
    /// Recordings that count, of all ranks.
    pub recordings: usize,
    /// Milliseconds since 1970 of the first recording.
    pub from_unix_ms: i64,
    pub to_unix_ms: i64,
    /// The median step of the first and of the last recordings.
    pub first_ms: f64,
    pub last_ms: f64,
}

/// A change of the level of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryChange {
    pub job: String,
    /// `span_ms` is the step; others are parts of it that changed while the step did not.
    pub figure: String,
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub ranks: Vec<RankName>,
    /// Milliseconds since 1970 of the last recording before the change, and of the first one after it.
    pub before_unix_ms: i64,
    pub after_unix_ms: i64,
    /// Medians of up to 24 recordings before and after; of the rank with the largest change.
    pub before_ms: f64,
    pub after_ms: f64,
    /// The difference, from low to high, with 95% confidence.
    pub low_ms: f64,
    pub high_ms: f64,
    /// The parts of the step that changed with it, largest first.
    pub parts: Vec<PartShift>,
    /// The trace of the last recording before the change, and of the first one after it, as their summaries name them.
    pub trace_before: String,
    pub trace_after: String,
    /// The same two as files that are there now; `null` unless both were found.
    pub compare: Option<[String; 2]>,
    /// Ring dumps written between the two recordings, by name.
    pub dumps: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartShift {
    pub figure: String,
    pub label: &'static str,
    pub before_ms: f64,
    pub after_ms: f64,
}

impl HistoryChange {
    /// What changed, in words.
    pub fn label(&self) -> &'static str {
        match FigureId::named(&self.figure) {
            Some(FigureId::SpanMs) | None => "step",
            Some(part) => part.label(),
        }
    }

    /// Whether the step itself changed.
    pub fn is_step(&self) -> bool {
        self.figure == FigureId::SpanMs.name()
    }

    /// Whether the recordings are windows of `record --every`, which deletes them without `--keep`.
    pub fn is_of_windows(&self) -> bool {
        [&self.trace_before, &self.trace_after].into_iter().any(|path| is_window(path))
    }

    pub(crate) fn difference(&self) -> f64 {
        self.after_ms - self.before_ms
    }
}

impl History {
    /// The changes in these jobs.
    pub fn of(jobs: Vec<Job>, unread: Vec<Unread>) -> Self {
        let mut history = Self {
            schema: HISTORY_SCHEMA,
            jobs: Vec::new(),
            changes: Vec::new(),
            unread,
            limitations: Vec::new(),
        };
        for job in jobs {
            history.add(job);
        }
        history.changes.sort_by_key(|change| (change.after_unix_ms, change.before_unix_ms));
        history
    }

    fn add(&mut self, job: Job) {
        let count = job.recordings.len();
        let is_usable = |one: &RankSummary| one.complete && one.has_device() && one.step_ms() > 0.0;
        let mut usable: Vec<(i64, RankSummary)> = Vec::new();
        let mut undated = 0;
        for one in job.recordings.into_iter().filter(is_usable) {
            match one.recorded_ms {
                Some(at) => usable.push((at, one)),
                None => undated += 1,
            }
        }
        self.say_left_out(&job.name, count - usable.len() - undated, undated);
        let mut ranks: BTreeMap<RankName, Vec<(i64, RankSummary)>> = BTreeMap::new();
        for (at, one) in usable {
            ranks.entry(one.label()).or_default().push((at, one));
        }
        let mut changes = Vec::new();
        let mut short = 0;
        for (rank, series) in &mut ranks {
            series.sort_by(|(at, one), (other_at, other)| (at, &one.path).cmp(&(other_at, &other.path)));
            short += usize::from(series.len() < FEWEST_RECORDINGS);
            changes.extend(changes_of(&job.name, rank, series));
        }
        if short > 0 {
            let why = format!(
                "{}: {short} of {} ranks have fewer than {FEWEST_RECORDINGS} recordings, too few to find a change",
                job.name,
                ranks.len()
            );
            self.limitations.push(why);
        }
        self.jobs.extend(job_history(&job.name, &ranks));
        self.changes.extend(together(changes));
    }

    fn say_left_out(&mut self, job: &str, incomplete: usize, undated: usize) {
        if incomplete > 0 {
            self.limitations.push(format!(
                "{job}: {incomplete} recordings are incomplete or have no GPU events; they do not count"
            ));
        }
        if undated > 0 {
            self.limitations.push(format!(
                "{job}: {undated} summaries do not say when they were recorded; write them again with `busbound summarize`"
            ));
        }
    }
}

fn job_history(name: &str, ranks: &BTreeMap<RankName, Vec<(i64, RankSummary)>>) -> Option<JobHistory> {
    let mut all: Vec<(i64, f64)> = ranks.values().flatten().map(|(at, one)| (*at, one.step_ms())).collect();
    all.sort_by_key(|(at, _)| *at);
    let (first, last) = (all.first()?.0, all.last()?.0);
    let few = (all.len() / 2).clamp(1, ranks.len() * FEWEST_RECORDINGS / 2);
    let steps = |part: &[(i64, f64)]| median(&part.iter().map(|(_, ms)| *ms).collect::<Vec<_>>());
    Some(JobHistory {
        job: name.to_owned(),
        ranks: ranks.len(),
        recordings: all.len(),
        from_unix_ms: first,
        to_unix_ms: last,
        first_ms: steps(&all[..few]),
        last_ms: steps(&all[all.len() - few..]),
    })
}

/// The changes of one rank: those of the step with the parts that explain them, and those of parts alone.
fn changes_of(job: &str, rank: &RankName, series: &[(i64, RankSummary)]) -> Vec<HistoryChange> {
    if series.len() < FEWEST_RECORDINGS {
        return Vec::new();
    }
    let values = |figure: FigureId| -> Vec<f64> {
        series.iter().map(|(_, one)| one.figure(figure).unwrap_or(0.0)).collect()
    };
    let steps = values(FigureId::SpanMs);
    let step = median(&steps);
    let change = |figure: FigureId, found: &ChangePoint, parts: Vec<PartShift>| {
        let (before, after) = (&series[found.at - 1], &series[found.at]);
        let difference = found.after - found.before;
        HistoryChange {
            job: job.to_owned(),
            figure: figure.name().to_owned(),
            ranks: vec![rank.clone()],
            before_unix_ms: before.0,
            after_unix_ms: after.0,
            before_ms: found.before,
            after_ms: found.after,
            low_ms: difference - RANGE_ERRORS * found.error,
            high_ms: difference + RANGE_ERRORS * found.error,
            parts,
            trace_before: before.1.path.clone(),
            trace_after: after.1.path.clone(),
            compare: None,
            dumps: Vec::new(),
        }
    };
    let mut parts: Vec<(FigureId, ChangePoint)> = Vec::new();
    for &figure in FigureId::PARTS {
        parts.extend(
            change_points(&values(figure), SMALLEST_PART * step).into_iter().map(|found| (figure, found)),
        );
    }
    let mut changes = Vec::new();
    for found in change_points(&steps, SMALLEST_SHARE * step) {
        let is_near = |part: &ChangePoint| part.at.abs_diff(found.at) <= SAME_PLACE;
        let (with, rest): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(_, part)| is_near(part));
        parts = rest;
        changes.push(change(FigureId::SpanMs, &found, shifts(with)));
    }
    for (figure, part) in parts {
        if (part.after - part.before).abs() >= SMALLEST_ALONE * step {
            changes.push(change(figure, &part, Vec::new()));
        }
    }
    changes
}

/// The largest change of a part first.
fn shifts(mut parts: Vec<(FigureId, ChangePoint)>) -> Vec<PartShift> {
    let size = |part: &ChangePoint| (part.after - part.before).abs();
    parts.sort_by(|(_, a), (_, b)| size(b).total_cmp(&size(a)));
    let shift = |(figure, part): (FigureId, ChangePoint)| PartShift {
        figure: figure.name().to_owned(),
        label: figure.label(),
        before_ms: part.before,
        after_ms: part.after,
    };
    parts.into_iter().map(shift).collect()
}
