//! Which windows of `record --every` are compared? Of each rank one: ranks are compared over the same steps, windows over time by `history`.

use std::collections::{BTreeMap, BTreeSet};

use busbound_diagnosis::quantity::plural;

use crate::name::RankName;
use crate::summary::RankSummary;

/// One window of each rank.
pub(crate) struct Windows {
    /// Summaries to compare: of each rank one window, and all that are not windows.
    pub(crate) compared: Vec<RankSummary>,
    pub(crate) others: Vec<RankSummary>,
    /// A sentence about the others; `None` if there are none.
    pub(crate) left_out: Option<String>,
}

/// The period of a window: those of one period begin at the same time.
type Period = i64;

/// All ranks of a job record windows of the same periods. Processes without a rank are distinguished by their files.
type Process<'a> = (Option<&'a str>, RankName);

/// Chooses the last period of which all ranks have a window, or, without one, the last window of each rank.
pub(crate) fn one_window_each(all: &[RankSummary]) -> Windows {
    let mut of_process: BTreeMap<Process<'_>, BTreeMap<(Period, i64), usize>> = BTreeMap::new();
    for (at, summary) in all.iter().enumerate() {
        if let Some((period, recorded)) = period(summary) {
            of_process.entry(process(summary)).or_default().insert((period, recorded), at);
        }
    }
    let periods = |windows: &BTreeMap<(Period, i64), usize>| -> BTreeSet<Period> {
        windows.keys().map(|(period, _)| *period).collect()
    };
    let common = of_process.values().map(periods).reduce(|a, b| &a & &b);
    let common = common.and_then(|common| common.last().copied());
    // The last window of that period, or of all.
    let last = |windows: &BTreeMap<(Period, i64), usize>| {
        windows
            .iter()
            .rev()
            .find(|((period, _), _)| common.is_none_or(|common| common == *period))
            .map(|(_, at)| *at)
    };
    let kept: BTreeSet<usize> = of_process.values().filter_map(last).collect();
    let is_window = |at: usize| period(&all[at]).is_some();
    let (compared, others): (Vec<usize>, Vec<usize>) =
        (0..all.len()).partition(|at| !is_window(*at) || kept.contains(at));
    let of = |list: Vec<usize>| list.into_iter().map(|at| all[at].clone()).collect();
    let left_out = (!others.is_empty()).then(|| sentence(of_process.len(), common.is_some(), others.len()));
    Windows { compared: of(compared), others: of(others), left_out }
}

/// Which period a window belongs to, and when it was recorded; `None` for what is not a window.
fn period(summary: &RankSummary) -> Option<(Period, i64)> {
    let every = summary.every_ms.filter(|every| *every > 0)?;
    let recorded = summary.recorded_ms?;
    // Clocks differ a little, so a window may begin just before its period.
    Some((recorded.saturating_add(every / 2).div_euclid(every), recorded))
}

fn process(summary: &RankSummary) -> Process<'_> {
    let name = summary.label();
    let host = summary.host.as_deref().filter(|_| name.number().is_none());
    (host, name)
}

fn sentence(ranks: usize, is_common: bool, others: usize) -> String {
    let which = match (ranks, is_common) {
        (1, _) => "the last one is shown",
        (_, true) => "the last one that all ranks have is compared",
        (_, false) => "the last one of each rank is compared, and these are of different times",
    };
    let others = plural(others as u64, "other window is", "other windows are");
    format!(
        "Of the windows of `record --every`, {which}; {others} not (`busbound history` compares windows over time)."
    )
}
