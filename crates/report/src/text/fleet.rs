//! The sentences and tables of merged ranks.

use std::collections::BTreeSet;

use busbound_diagnosis::quantity::{count, milliseconds, milliseconds_range};
use busbound_diagnosis::{Bound, FigureId, FigureUnit, Saving, Unit};
use busbound_fleet::{
    FleetAnswer, LateRank, Meantime, PipelineStage, RankName, RankSummary, SharedFinding, Spread, Unread,
};

use super::{Table, plural};

/// Up to this many ranks, each gets a row; beyond it, only the notable ones do.
const ROWS: usize = 32;
/// With fewer ranks, the rows already show the spread.
const FEW: usize = 5;
/// Share of a step: a time below this on every rank gets no row.
const NOTHING: f64 = 0.005;

/// One row per rank, without empty columns.
pub(crate) fn ranks(answer: &FleetAnswer) -> Table {
    if answer.not_one_run.is_some() {
        return runs(&answer.ranks);
    }
    let shown = worth_a_row(answer);
    let title = if shown.len() < answer.ranks.len() { "some ranks" } else { "rank" };
    table(title, &shown, |rank| {
        let label = rank.label();
        // Only part of the file was read; a limitation explains it.
        let mark = if rank.complete { "" } else { "*" };
        format!("{}{mark}", label.short())
    })
}

/// One row per run, for files that are not ranks of one run.
pub(crate) fn runs(summaries: &[RankSummary]) -> Table {
    table("run", &summaries.iter().collect::<Vec<_>>(), |run| {
        // The full path is above the run's diagnosis; a table has little room.
        let name = run.path.rsplit(['/', '\\']).next().unwrap_or_default();
        name.trim_end_matches(".gz").trim_end_matches(".json").to_owned()
    })
}

fn table(title: &'static str, ranks: &[&RankSummary], name: impl Fn(&RankSummary) -> String) -> Table {
    type Column = (&'static str, fn(&RankSummary) -> Option<String>);
    let columns: [Column; 8] = [
        ("bound by", |rank| Some(bound(rank.verdict.bound).to_owned())),
        ("step", |rank| rank.steps.as_ref().map(|_| milliseconds(rank.step_ms()))),
        ("compute", |rank| time(rank, rank.time.compute_ms)),
        ("copying only", |rank| time(rank, rank.time.exposed_bus_copy_ms)),
        ("comm. only", |rank| time(rank, rank.time.exposed_comm_ms)),
        ("idle", |rank| time(rank, rank.time.idle_ms)),
        ("H2D GB/s", |rank| rank.figure(FigureId::H2dGbps).map(|gbps| format!("{gbps:.1}"))),
        ("comm. overlapped", |rank| rank.comm_compute_pct_of_comm.map(|share| format!("{share:.2}%"))),
    ];
    let has_values = |(_, of): &&Column| ranks.iter().any(|rank| of(rank).is_some());
    let columns: Vec<&Column> = columns.iter().filter(has_values).collect();
    let row = |rank: &&RankSummary| {
        let cells = columns.iter().map(|(_, of)| of(rank).unwrap_or("–".to_owned()));
        std::iter::once(name(rank)).chain(cells).collect()
    };
    Table {
        titles: std::iter::once(title).chain(columns.iter().map(|(title, _)| *title)).collect(),
        rows: ranks.iter().map(row).collect(),
    }
}

fn is_time(unit: FigureUnit) -> bool {
    matches!(unit, FigureUnit::MillisecondsPerStep)
}

fn quantity(value: f64, unit: FigureUnit) -> String {
    match unit {
        unit if is_time(unit) => milliseconds(value),
        FigureUnit::Percent => format!("{value:.1}%"),
        unit => format!("{value:.1} {}", unit.symbol()),
    }
}

/// `None` if it is negligible compared with the rank's step.
fn time(rank: &RankSummary, ms: f64) -> Option<String> {
    (ms > 0.001 * rank.time.span_ms).then(|| milliseconds(ms))
}

fn bound(bound: Bound) -> &'static str {
    match bound {
        Bound::Transfer => "transfer",
        Bound::Communication => "comm.",
        Bound::Compute => "compute",
        Bound::Launch => "launch",
        Bound::Host => "host work",
        Bound::Sync => "sync",
        Bound::Input => "input",
        Bound::Mixed => "mixed",
        Bound::Unknown => "inconclusive",
    }
}

/// All ranks; if there are many, the stragglers, the outliers of each figure, and those read only in part.
pub(crate) fn worth_a_row(answer: &FleetAnswer) -> Vec<&RankSummary> {
    if answer.ranks.len() <= ROWS {
        return answer.ranks.iter().collect();
    }
    let mut wanted: BTreeSet<&RankName> = answer.stragglers.iter().take(8).map(|one| &one.rank).collect();
    // The first two are the step time and the time without waiting for other ranks.
    for figure in answer.figures.iter().take(2) {
        wanted.extend([&figure.min_rank, &figure.max_rank]);
    }
    for figure in &answer.figures {
        wanted.extend(figure.outliers.iter().take(2).map(|one| &one.rank));
    }
    let is_wanted = |rank: &&RankSummary| !rank.complete || wanted.contains(&rank.label());
    answer.ranks.iter().filter(is_wanted).take(ROWS).collect()
}

/// The distribution of each figure over the ranks; no rows if there are few ranks.
pub(crate) fn spreads(answer: &FleetAnswer) -> Table {
    let title = match answer.unit {
        Unit::Step => "by rank, per step",
        Unit::Iteration => "by rank, per iteration",
        Unit::Trace => "by rank, per trace",
    };
    let row = |spread: &Spread| {
        let value = |value: f64| quantity(value, spread.unit);
        let ends = [spread.min, spread.p10, spread.p50, spread.p90, spread.max].map(value);
        let most = spread.max_rank.short();
        std::iter::once(spread.figure.clone()).chain(ends).chain([most]).collect()
    };
    let step = answer.figures.first().map_or(0.0, |step| step.max);
    let is_worth_it = |spread: &&Spread| !is_time(spread.unit) || spread.max > NOTHING * step;
    let worth = answer.figures.iter().filter(is_worth_it);
    let rows = if answer.ranks.len() < FEW { Vec::new() } else { worth.map(row).collect() };
    Table { titles: vec![title, "min", "p10", "median", "p90", "max", "max on"], rows }
}

/// The evidence that the ranks are one run, and the steps of all ranks.
pub(crate) fn facts(answer: &FleetAnswer) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(evidence) = &answer.evidence {
        let hosts: BTreeSet<&str> = answer.ranks.iter().filter_map(|rank| rank.host.as_deref()).collect();
        let on = match hosts.len() {
            0 => String::new(),
            n => format!(", on {}", plural(n as u64, "host", "hosts")),
        };
        facts.push(("ranks", format!("{} of one run, {evidence}{on}", answer.ranks.len())));
    }
    // Quantiles of a few steps are the extremes, which the rows show.
    if let Some(steps) = answer.steps.filter(|steps| steps.count >= 20) {
        facts.push((
            "steps",
            format!(
                "{} over all ranks, durations to within 1%: median {}, p90 {}, p99 {}",
                count(steps.count),
                milliseconds(steps.p50_ms),
                milliseconds(steps.p90_ms),
                milliseconds(steps.p99_ms)
            ),
        ));
    }
    facts
}

/// Whether the clocks are aligned, and who arrives last at collectives.
pub(crate) fn arrivals(answer: &FleetAnswer) -> Vec<String> {
    let clocks = answer.alignment.iter().map(|alignment| alignment.statement.clone());
    clocks.chain(answer.arrivals.iter().map(|arrivals| arrivals.statement.clone())).collect()
}

/// The ranks that others wait for at collectives.
pub(crate) fn late(answer: &FleetAnswer) -> Table {
    let row = |late: &LateRank| {
        let more = |part: &Meantime| {
            format!("{} {} vs. {}", part.part.describe(), milliseconds(part.ms), milliseconds(part.median_ms))
        };
        vec![
            late.rank.short(),
            count(late.last_in as u64),
            milliseconds(late.delay_ms),
            late.meantime.first().map_or("–".to_owned(), more),
        ]
    };
    let step = answer.figures.first().map_or(0.0, |step| step.p50);
    let late = answer.arrivals.iter().flat_map(|arrivals| &arrivals.late);
    let rows = late.filter(|late| late.delay_ms > NOTHING * step).map(row).collect();
    Table { titles: vec!["arrives last", "collectives", "delay", "before (median rank)"], rows }
}

/// The stages of a pipeline over several ranks.
pub(crate) fn pipeline(answer: &FleetAnswer) -> Table {
    let row = |stage: &PipelineStage| {
        let ranks: Vec<String> = stage.ranks.iter().take(4).map(RankName::short).collect();
        let more = if stage.ranks.len() > 4 { ", …" } else { "" };
        vec![
            stage.name.clone(),
            format!("{}{more}", ranks.join(", ")),
            count(stage.items as u64),
            milliseconds(stage.median_ms),
            milliseconds(stage.idle_ms),
        ]
    };
    let rows = answer.pipeline.iter().flat_map(|pipeline| &pipeline.stages).map(row).collect();
    Table { titles: vec!["pipeline stage", "ranks", "items", "time per item", "idle per item"], rows }
}

/// What a step of the job would take if a rank were on time.
pub(crate) fn job(answer: &FleetAnswer) -> impl Iterator<Item = String> {
    answer.job.iter().map(|scenario| scenario.statement.clone())
}

/// Outliers of each figure, without the ranks that are already listed as stragglers.
pub(crate) fn outliers(answer: &FleetAnswer) -> Vec<String> {
    const LISTED: usize = 4;
    // Compares paths: files without a rank may have the same name.
    let is_straggler = |path: &str| answer.stragglers.iter().any(|straggler| straggler.path == path);
    let mut lines = Vec::new();
    for figure in &answer.figures {
        let outliers: Vec<_> = figure.outliers.iter().filter(|one| !is_straggler(&one.path)).collect();
        if outliers.is_empty() {
            continue;
        }
        let value = |value: f64| quantity(value, figure.unit);
        let listed = outliers.iter().take(LISTED).map(|one| format!("{} {}", one.rank, value(one.value)));
        let listed = listed.collect::<Vec<_>>().join(", ");
        let more = outliers.len().saturating_sub(LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("{}: {listed}{more}; median {}", figure.figure, value(figure.p50)));
    }
    lines
}

/// `Copies from pageable memory: on 8 of 8 ranks, saves 161–176 ms/step (median rank)`.
pub(crate) fn finding(finding: &SharedFinding, answer: &FleetAnswer) -> String {
    let Saving { low, high } = finding.saves_ms_per_step;
    let unit = answer.unit;
    // The median of one is that one.
    let median = match (finding.ranks, answer.not_one_run.is_some()) {
        (0 | 1, _) => "",
        (_, true) => " (median run)",
        (_, false) => " (median rank)",
    };
    let saves = if high <= 0.0 {
        "saves nothing on its own".to_owned()
    } else if low < 0.01 * high {
        format!("saves up to {}/{unit}{median}", milliseconds(high))
    } else {
        format!("saves {}/{unit}{median}", milliseconds_range(low, high))
    };
    let all = answer.ranks.len() as u64;
    let all =
        if answer.not_one_run.is_some() { plural(all, "run", "runs") } else { plural(all, "rank", "ranks") };
    let note = finding.note.as_ref().map_or(String::new(), |note| format!("; {note}"));
    format!("{}: on {} of {all}, {saves}{note}", finding.title, finding.ranks,)
}

/// Why a file is missing from the result.
pub(crate) fn unread(unread: &Unread) -> String {
    let rank = unread.rank.map_or(String::new(), |rank| format!("rank {rank}: "));
    format!("{rank}{}", unread.why)
}
