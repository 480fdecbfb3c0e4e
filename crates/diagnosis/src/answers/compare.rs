//! What changed between runs? Every figure side by side, per step, and what grew faster than it should.

use serde::Serialize;

use crate::activity::copies::kind_of;
use crate::answers::compare_stages::{self, StageChange};
use crate::answers::diagnosis::Diagnosis;
use crate::figures::{CopyFigure, FigureId, FigureUnit};
use crate::findings::FindingId;
use crate::quantity::milliseconds;
use crate::unit::Unit;

pub const COMPARISON_SCHEMA: &str = "busbound.comparison/2";

/// Two runs, or a sweep over a label.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    pub schema: &'static str,
    pub statement: String,
    pub runs: Vec<ComparedRun>,
    pub figures: Vec<Figure>,
    /// Findings of the last run that the first had not, and the reverse.
    pub appeared: Vec<FindingId>,
    pub gone: Vec<FindingId>,
    pub stayed: Vec<FindingId>,
    pub sweep: Option<Sweep>,
    /// What became of the stages of a pipeline, where both ends of the comparison have the same.
    pub stages: Option<StageChange>,
    pub limitations: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedRun {
    pub path: String,
    pub label: String,
    pub verdict: String,
    pub steps: Option<usize>,
    pub complete: bool,
}

/// One figure of each run, in the order of the runs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    pub name: String,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub unit: FigureUnit,
    pub values: Vec<f64>,
    /// Last minus first.
    pub delta: f64,
    /// `null` where the first is zero.
    pub delta_pct: Option<f64>,
}

/// How figures follow the label.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sweep {
    pub key: String,
    pub values: Vec<f64>,
    /// Label units a second: samples, if the label is the batch.
    pub throughput: Vec<f64>,
    /// Parts of the step that grew more than the label did, most added time first.
    pub grew_faster: Vec<Growth>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Growth {
    pub part: String,
    /// `null` where it was zero at first.
    pub factor: Option<f64>,
    pub added_ms: f64,
    /// Time beyond what growing with the label would have given.
    pub beyond_ms: f64,
}

/// What the runs differ in, e.g. `batch` = 2, 4, 8.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    pub key: String,
    pub values: Vec<f64>,
}

/// Compares two runs or more, in the order given.
pub fn compare(runs: &[Diagnosis], labels: Option<&Labels>) -> Comparison {
    let comparable = cannot_be_compared(runs).is_none();
    let figures = if comparable { figures(runs) } else { Vec::new() };
    let ids = |run: Option<&Diagnosis>| -> Vec<FindingId> {
        run.map(|run| run.findings.iter().map(|finding| finding.id).collect()).unwrap_or_default()
    };
    let (before, after) = (ids(runs.first()), ids(runs.last()));
    let only = |these: &[FindingId], others: &[FindingId], wanted: bool| -> Vec<FindingId> {
        these.iter().copied().filter(|id| others.contains(id) == wanted).collect()
    };
    let sweep = labels.filter(|_| comparable).map(|labels| sweep(runs, labels));
    Comparison {
        schema: COMPARISON_SCHEMA,
        statement: statement(runs, labels, sweep.as_ref()),
        runs: runs
            .iter()
            .enumerate()
            .map(|(i, run)| ComparedRun {
                path: run.source.path.clone(),
                label: label(labels, i, runs.len()),
                verdict: run.verdict.statement.clone(),
                steps: run.window.steps.as_ref().map(|steps| steps.count),
                complete: run.source.complete,
            })
            .collect(),
        appeared: only(&after, &before, false),
        gone: only(&before, &after, false),
        stayed: only(&after, &before, true),
        figures,
        sweep,
        stages: compare_stages::change(
            runs.first().and_then(|run| run.stages.as_ref()),
            runs.last().and_then(|run| run.stages.as_ref()),
        ),
        limitations: limitations(runs),
    }
}

/// Why figures of these runs must not stand side by side.
fn cannot_be_compared(runs: &[Diagnosis]) -> Option<&'static str> {
    let some_but_not_all = |has: &dyn Fn(&Diagnosis) -> bool| runs.iter().any(has) && !runs.iter().all(has);
    if runs.windows(2).any(|pair| pair[0].unit() != pair[1].unit()) {
        Some("some runs mark steps and some do not, so a step would stand beside something else")
    } else if some_but_not_all(&|run| !run.devices.is_empty()) {
        Some("some runs recorded the GPU and some did not")
    } else if runs.iter().any(|run| step_ms(run) <= 0.0) {
        Some("a run has no length")
    } else {
        None
    }
}

fn label(labels: Option<&Labels>, index: usize, runs: usize) -> String {
    match (labels, index) {
        (Some(labels), i) => format!("{}={}", labels.key, labels.values[i]),
        (None, 0) if runs == 2 => "before".to_owned(),
        (None, 1) if runs == 2 => "after".to_owned(),
        (None, i) => format!("run {}", i + 1),
    }
}

fn step_ms(run: &Diagnosis) -> f64 {
    FigureId::AnalyzedStepP50.of(run).unwrap_or(0.0)
}

/// The parts of a step.
fn parts(run: &Diagnosis) -> impl Iterator<Item = (FigureId, f64)> + '_ {
    FigureId::PARTS.iter().map(|&figure| (figure, figure.of(run).unwrap_or(0.0)))
}

/// What is shown before the figures of copies and after them.
const STEP_FIGURES: [FigureId; 3] =
    [FigureId::AnalyzedStepP50, FigureId::AnalyzedStepMin, FigureId::AnalyzedStepMax];
const WORK_FIGURES: [FigureId; 5] = [
    FigureId::CopyMs,
    FigureId::CommMs,
    FigureId::CopyComputeMs,
    FigureId::CommComputeMs,
    FigureId::CopyCommMs,
];
const HOST_FIGURES: [FigureId; 4] =
    [FigureId::Kernels, FigureId::KernelUs, FigureId::LaunchCallUs, FigureId::SyncMs];

fn figures(runs: &[Diagnosis]) -> Vec<Figure> {
    let one = |figure: &FigureId| {
        let values = runs.iter().map(|run| figure.of(run).unwrap_or(0.0)).collect();
        row(figure.label().to_owned(), figure.unit(), values)
    };
    let mut list: Vec<Figure> =
        STEP_FIGURES.iter().chain(FigureId::PARTS).chain(&WORK_FIGURES).filter_map(one).collect();
    list.extend(copy_figures(runs));
    list.extend(HOST_FIGURES.iter().filter_map(one));
    list
}

/// The figures of each kind of copies.
fn copy_figures(runs: &[Diagnosis]) -> Vec<Figure> {
    let mut kinds: Vec<_> = runs
        .iter()
        .flat_map(|run| &run.copies)
        .map(|group| (group.direction, group.src, group.dst))
        .collect();
    kinds.sort();
    kinds.dedup();
    let mut list = Vec::new();
    for kind in kinds {
        let is_kind = |group: &&crate::CopyGroup| (group.direction, group.src, group.dst) == kind;
        for figure in CopyFigure::ALL {
            let value = |run: &Diagnosis| {
                let group = run.copies.iter().find(is_kind);
                group.map_or(0.0, |group| figure.of(group, run.step_count()))
            };
            let name = format!("{}: {}", kind_of(kind), figure.label());
            list.extend(row(name, figure.unit(), runs.iter().map(value).collect()));
        }
    }
    list
}

/// `None` where all runs have nothing of it.
fn row(name: String, unit: FigureUnit, values: Vec<f64>) -> Option<Figure> {
    let (first, last) = (*values.first()?, *values.last()?);
    if values.iter().all(|value| *value == 0.0) {
        return None;
    }
    let delta_pct = (first != 0.0).then(|| 100.0 * (last / first - 1.0));
    Some(Figure { name, unit, values, delta: last - first, delta_pct })
}

/// Whether two runs differ by more than their own steps do among themselves.
fn exceeds_spread(before: &Diagnosis, after: &Diagnosis) -> Option<bool> {
    let (a, b) = (before.window.steps.as_ref()?, after.window.steps.as_ref()?);
    if a.count < 2 || b.count < 2 {
        return None;
    }
    Some(a.max_ms < b.min_ms || b.max_ms < a.min_ms)
}

fn statement(runs: &[Diagnosis], labels: Option<&Labels>, sweep: Option<&Sweep>) -> String {
    let (Some(first), Some(last)) = (runs.first(), runs.last()) else { return String::new() };
    if let Some(why) = cannot_be_compared(runs) {
        return format!("Cannot be compared: {why}.");
    }
    if let (Some(labels), Some(sweep)) = (labels, sweep) {
        return sweep_statement(first, last, labels, sweep);
    }
    let (a, b) = (step_ms(first), step_ms(last));
    let times = format!("{} → {} a {}", milliseconds(a), milliseconds(b), first.unit());
    let change = 100.0 * (b / a - 1.0);
    if change.abs() < 0.5 {
        return format!("No difference: {times}.");
    }
    let faster = if b < a { "faster" } else { "slower" };
    let spread = match exceeds_spread(first, last) {
        Some(true) => "more than steps differ within either run",
        Some(false) => "no more than steps differ within a run: not a difference to build on",
        None => "too few steps to say whether that is more than chance",
    };
    let part = largest_change(first, last);
    format!("{:.0} % {faster}: {times}, {spread}; the largest part of it: {part}.", change.abs())
}

fn sweep_statement(first: &Diagnosis, last: &Diagnosis, labels: &Labels, sweep: &Sweep) -> String {
    let (a, b, what) = (step_ms(first), step_ms(last), first.unit());
    let ratio = labels.values.last().copied().unwrap_or(1.0) / labels.values[0];
    let rate = sweep.throughput.last().copied().unwrap_or(0.0) / sweep.throughput[0];
    let cause = match sweep.grew_faster.first() {
        Some(part) => {
            let factor = part.factor.map_or("from nothing".to_owned(), |f| format!("× {f:.2}"));
            let more = milliseconds(part.added_ms);
            format!("{} grew most beyond it ({factor}, {more} more a {what})", part.part)
        }
        None => "no part of it grew faster than that".to_owned(),
    };
    format!(
        "{} × {ratio:.2}: {} → {} a {what} (× {:.2}), throughput × {rate:.2}; {cause}.",
        labels.key,
        milliseconds(a),
        milliseconds(b),
        b / a,
    )
}

fn largest_change(first: &Diagnosis, last: &Diagnosis) -> String {
    // Parts that changed the other way do not explain the change.
    let faster = step_ms(last) < step_ms(first);
    let changes = parts(first)
        .zip(parts(last))
        .map(|((part, a), (_, b))| (part, a, b))
        .filter(|(_, a, b)| (b < a) == faster);
    let largest = changes.max_by(|x, y| (x.2 - x.1).abs().total_cmp(&(y.2 - y.1).abs()));
    largest.map_or(String::new(), |(part, a, b)| {
        format!("{} {} → {}", part.label(), milliseconds(a), milliseconds(b))
    })
}

fn sweep(runs: &[Diagnosis], labels: &Labels) -> Sweep {
    let throughput =
        runs.iter().zip(&labels.values).map(|(run, label)| label / (step_ms(run) / 1e3)).collect();
    let mut grew = Vec::new();
    if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
        let ratio = labels.values.last().copied().unwrap_or(1.0) / labels.values[0];
        for ((part, a), (_, b)) in parts(first).zip(parts(last)) {
            let beyond = b - a * ratio;
            // Less than a percent of the step is noise.
            if beyond > 0.01 * step_ms(last) {
                let factor = (a > 0.0).then(|| b / a);
                grew.push(Growth {
                    part: part.label().to_owned(),
                    factor,
                    added_ms: b - a,
                    beyond_ms: beyond,
                });
            }
        }
        grew.sort_by(|x, y| y.beyond_ms.total_cmp(&x.beyond_ms));
    }
    Sweep { key: labels.key.clone(), values: labels.values.clone(), throughput, grew_faster: grew }
}

fn limitations(runs: &[Diagnosis]) -> Vec<String> {
    let mut list = Vec::new();
    for run in runs {
        if !run.source.complete {
            list.push(format!("{} was read in part: its figures speak of that part.", run.source.path));
        }
        match run.unit() {
            Unit::Trace => {
                list.push(format!(
                    "{} marks no steps: its figures are for the whole trace.",
                    run.source.path
                ));
            }
            Unit::Iteration => list.push(format!(
                "{} marks no steps: its figures are for a round of {}.",
                run.source.path,
                run.window.steps.as_ref().map_or("", |steps| steps.pattern.as_str())
            )),
            Unit::Step => {}
        }
        if run.devices.is_empty() {
            list.push(format!(
                "{} has no GPU events: nothing of the device can be compared.",
                run.source.path
            ));
        }
    }
    let gpus: Vec<_> =
        runs.iter().filter_map(|run| run.machine.gpus.first()).map(|gpu| gpu.name.as_deref()).collect();
    if gpus.windows(2).any(|pair| pair[0] != pair[1]) {
        list.push("The runs are from different GPUs.".to_owned());
    }
    list
}
