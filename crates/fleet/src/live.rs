//! What do the ranks of running jobs show now? Summaries arrive one by one; the last window of each rank is compared with the
//! one of an hour before.

use std::collections::{BTreeMap, VecDeque};

use busbound_diagnosis::{FigureId, Phase};
use busbound_machine::live::{OwnProcess, RankWindow, WindowChange, WindowSteps};

use crate::name::RankName;
use crate::summary::RankSummary;

/// Windows are compared with the one nearest to this long before.
const COMPARED_MS: i64 = 3_600_000;
/// A rank without a window for longer than this has ended.
pub const LIVE_MS: i64 = 24 * 3_600_000;
/// Clocks of machines differ by this much without being wrong.
const CLOCKS_MS: i64 = 5_000;
/// More missing windows than this make a rank stale.
const MISSING: i64 = 2;

/// The windows of all ranks, oldest first, as far as they are needed.
#[derive(Debug, Default)]
pub struct LiveRanks {
    ranks: BTreeMap<(String, RankName), Series>,
    processes: usize,
}

#[derive(Debug, Default)]
struct Series {
    /// By the time of their recording.
    windows: VecDeque<RankWindow>,
    process: Option<OwnProcess>,
    every_ms: Option<i64>,
}

/// Why a summary is of no use here.
#[derive(Debug, thiserror::Error)]
#[error("does not say when it was recorded: write it again with `busbound summarize`")]
pub struct Undated;

impl LiveRanks {
    /// Adds one window of the job in this folder.
    ///
    /// # Errors
    /// If it has no date.
    pub fn see(&mut self, run: &str, summary: &RankSummary) -> Result<(), Undated> {
        let at = summary.recorded_ms.ok_or(Undated)?;
        let label = summary.label();
        let processes = &mut self.processes;
        let series = self.ranks.entry((run.to_owned(), label.clone())).or_insert_with(|| {
            let process = match label {
                RankName::Number(_) => None,
                RankName::File(name) => {
                    *processes += 1;
                    Some(OwnProcess { name, number: *processes })
                }
            };
            Series { process, ..Series::default() }
        });
        series.add(at, window(run, at, summary, series.process.clone()), summary.every_ms);
        Ok(())
    }

    /// The last window of each rank that has one within a day. `now_ms` is milliseconds since 1970.
    pub fn windows(&mut self, now_ms: i64) -> Vec<RankWindow> {
        self.ranks.values_mut().for_each(|series| series.forget(now_ms));
        let all = self.ranks.values().filter_map(|series| series.last(now_ms));
        all.filter(|window| window.recorded_unix_ms > now_ms.saturating_sub(LIVE_MS)).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }
}

fn window(run: &str, at: i64, summary: &RankSummary, process: Option<OwnProcess>) -> RankWindow {
    let step = summary.time.span_ms;
    let parts = std::iter::once(FigureId::SpanMs).chain(FigureId::PARTS.iter().copied());
    let figures = parts.filter_map(|figure| Some((figure.name().to_owned(), summary.figure(figure)?)));
    let phases = Phase::each(|figure| summary.figure(figure)).into_iter();
    let phases = phases.filter(|_| step > 0.0).map(|(phase, ms)| (phase.as_str().to_owned(), ms / step));
    let has_device = summary.has_device();
    RankWindow {
        run: run.to_owned(),
        rank: summary.label().number(),
        process,
        recorded_unix_ms: at,
        age_s: None,
        ahead_s: None,
        every_s: None,
        is_stale: false,
        complete: summary.complete,
        verdict: summary.verdict.bound.id().to_owned(),
        because: summary.verdict.because.clone(),
        unit: summary.unit.as_str().to_owned(),
        steps: summary.steps.as_ref().map(|steps| WindowSteps {
            count: steps.count,
            found: steps.found.map(|found| found.id().to_owned()),
        }),
        figures: figures.filter(|_| has_device).collect(),
        phases: phases.filter(|_| has_device).collect(),
        change: None,
    }
}

impl Series {
    fn add(&mut self, at: i64, window: RankWindow, every_ms: Option<i64>) {
        let place = self.windows.partition_point(|known| known.recorded_unix_ms < at);
        // One trace that was summarized again.
        if self.windows.get(place).is_some_and(|known| known.recorded_unix_ms == at) {
            self.windows.remove(place);
        }
        self.windows.insert(place, window);
        if place + 1 == self.windows.len() {
            self.every_ms = every_ms.filter(|every| *every > 0);
        }
    }

    /// How many windows are not in the future.
    fn past(&self, now_ms: i64) -> usize {
        let latest = now_ms.saturating_add(CLOCKS_MS);
        self.windows.partition_point(|window| window.recorded_unix_ms <= latest)
    }

    /// Keeps the hour before the last window, and one more.
    fn forget(&mut self, now_ms: i64) {
        let Some(last) = self.past(now_ms).checked_sub(1).and_then(|last| self.windows.get(last)) else {
            return;
        };
        let hour_before = last.recorded_unix_ms.saturating_sub(COMPARED_MS);
        while self.windows.get(1).is_some_and(|second| second.recorded_unix_ms <= hour_before) {
            self.windows.pop_front();
        }
    }

    /// The newest window that is not in the future; else the one that is the least ahead.
    fn last(&self, now_ms: i64) -> Option<RankWindow> {
        let past = self.past(now_ms);
        let mut window = self.windows.get(past.saturating_sub(1))?.clone();
        let at = window.recorded_unix_ms;
        let every_ms = self.every_ms.or_else(|| self.usual_gap(past));
        window.every_s = every_ms.map(seconds);
        if past == 0 {
            window.ahead_s = Some(seconds(at.saturating_sub(now_ms)));
        } else {
            let age = now_ms.saturating_sub(at).max(0);
            window.age_s = Some(seconds(age));
            window.is_stale = every_ms.is_some_and(|every| age > every.saturating_mul(MISSING));
        }
        window.change = self.change(&window, past);
        Some(window)
    }

    /// The time between windows if summaries do not say it: the lower median, because windows may be missing.
    fn usual_gap(&self, past: usize) -> Option<i64> {
        let at: Vec<i64> = self.windows.iter().take(past).map(|window| window.recorded_unix_ms).collect();
        let mut gaps: Vec<i64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        gaps.get(gaps.len().checked_sub(1)? / 2).copied()
    }

    fn change(&self, last: &RankWindow, past: usize) -> Option<WindowChange> {
        let hour_before = last.recorded_unix_ms.saturating_sub(COMPARED_MS);
        let earlier = self.windows.iter().take(past.saturating_sub(1));
        let alike = earlier.filter(|window| window.complete && last.complete && window.unit == last.unit);
        let before = alike.min_by_key(|window| window.recorded_unix_ms.abs_diff(hour_before))?;
        let span_ms = step_of(before);
        Some(WindowChange {
            before_s: seconds(last.recorded_unix_ms.saturating_sub(before.recorded_unix_ms)),
            span_ms,
            span_change: step_of(last).zip(span_ms).map(|(now, then)| now / then - 1.0),
            verdict: before.verdict.clone(),
        })
    }
}

/// `None` without steps: then the span is that of the window.
fn step_of(window: &RankWindow) -> Option<f64> {
    let span = window.steps.as_ref().and_then(|_| window.figures.get(FigureId::SpanMs.name()));
    span.copied().filter(|ms| *ms > 0.0)
}

fn seconds(ms: i64) -> f64 {
    ms as f64 / 1e3
}
