//! What changed between runs? Every figure of each run per step, and what explains the difference.

mod blocks;
mod change;
mod copies;
mod figures;
mod host_copies;
mod kernels;
mod parts;
mod stages;
mod sweep;

use busbound_trace::Environment;
use serde::Serialize;

use crate::answers::diagnosis::Diagnosis;
use crate::figures::{FigureId, FigureUnit};
use crate::findings::FindingId;
use crate::unit::Unit;

pub use change::{Change, Outcome};
pub use parts::PartChange;
pub use stages::StageChange;
pub use sweep::{Growth, Labels, Series, SeriesLabel, Sweep};

pub const COMPARISON_SCHEMA: &str = "busbound.comparison/2";

/// Two runs, or a sweep over a label.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    pub schema: &'static str,
    pub statement: String,
    /// How the step of the last run differs from the first; `null` if the runs cannot be compared.
    pub change: Option<Change>,
    pub runs: Vec<ComparedRun>,
    pub figures: Vec<Figure>,
    /// Findings of the last run that the first run does not have.
    pub appeared: Vec<FindingId>,
    /// Findings of the first run that the last run does not have.
    pub gone: Vec<FindingId>,
    pub stayed: Vec<FindingId>,
    pub sweep: Option<Sweep>,
    /// How the stages of a pipeline changed; `null` unless the first and the last run have the same stages.
    pub stages: Option<StageChange>,
    /// What differs in the environment of the runs, as far as their traces have it.
    pub environment: Vec<String>,
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

words! {
    /// What a figure of a comparison describes.
    pub enum FigureGroup: "group of figures" {
        /// The median step.
        Step = "step",
        /// A part of the step. The differences of all parts sum to the difference of the step.
        Part = "part",
        /// Copies, by direction and host memory.
        Copies = "copies",
        /// A block that the program annotates.
        Block = "block",
        /// A kernel, by name. The differences sum to the difference in kernel time.
        Kernel = "kernel",
        /// What torch.compile did.
        Compiled = "compiled",
        Other = "other",
    }
}

/// One figure of each run, in the order of the runs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    pub name: String,
    pub group: FigureGroup,
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub unit: FigureUnit,
    pub values: Vec<f64>,
    /// Last minus first.
    pub delta: f64,
    /// `null` if the first is zero.
    pub delta_pct: Option<f64>,
    /// Whether these copies use another kind of memory in the last run: a change, even if no figure changes.
    #[serde(skip)]
    pub has_moved: bool,
}

impl Figure {
    /// `None` if every run has zero.
    fn new(group: FigureGroup, name: String, unit: FigureUnit, values: Vec<f64>) -> Option<Self> {
        let (first, last) = (*values.first()?, *values.last()?);
        if values.iter().all(|value| *value == 0.0) {
            return None;
        }
        let delta_pct = (first != 0.0).then(|| 100.0 * (last / first - 1.0));
        Some(Self { name, group, unit, values, delta: last - first, delta_pct, has_moved: false })
    }

    /// Milliseconds per step.
    fn of_time(group: FigureGroup, name: String, values: Vec<f64>) -> Option<Self> {
        Self::new(group, name, FigureUnit::MillisecondsPerStep, values)
    }
}

/// Compares two or more runs, in the order given.
pub fn compare(runs: &[Diagnosis], labels: Option<&Labels>) -> Comparison {
    let not_comparable = why_not_comparable(runs);
    let comparable = not_comparable.is_none();
    let change = if comparable { change::change(runs) } else { None };
    let sweep = labels.filter(|_| comparable).map(|labels| sweep::sweep(runs, labels));
    let ids = |run: Option<&Diagnosis>| -> Vec<FindingId> {
        run.map(|run| run.findings.iter().map(|finding| finding.id).collect()).unwrap_or_default()
    };
    let (before, after) = (ids(runs.first()), ids(runs.last()));
    let only = |these: &[FindingId], others: &[FindingId], wanted: bool| -> Vec<FindingId> {
        these.iter().copied().filter(|id| others.contains(id) == wanted).collect()
    };
    let statement = match (not_comparable, &sweep, &change) {
        (Some(why), ..) => format!("Cannot compare these runs: {why}."),
        (None, Some(sweep), _) => sweep::statement(runs, sweep),
        (None, None, Some(change)) => change::statement(runs, change),
        (None, None, None) => String::new(),
    };
    Comparison {
        schema: COMPARISON_SCHEMA,
        statement,
        change,
        runs: compared_runs(runs, labels),
        appeared: only(&after, &before, false),
        gone: only(&before, &after, false),
        stayed: only(&after, &before, true),
        figures: if comparable { figures::figures(runs) } else { Vec::new() },
        sweep,
        stages: stages::change(
            runs.first().and_then(|run| run.stages.as_ref()),
            runs.last().and_then(|run| run.stages.as_ref()),
        ),
        environment: environment(runs, labels),
        limitations: limitations(runs),
    }
}

/// Why the figures of these runs do not describe the same thing.
fn why_not_comparable(runs: &[Diagnosis]) -> Option<&'static str> {
    let some_but_not_all = |has: &dyn Fn(&Diagnosis) -> bool| runs.iter().any(has) && !runs.iter().all(has);
    if runs.windows(2).any(|pair| pair[0].unit() != pair[1].unit()) {
        Some("some of them mark steps and others do not, so their figures are not for the same unit")
    } else if some_but_not_all(&|run| !run.devices.is_empty()) {
        Some("some of them recorded the GPU and others did not")
    } else if runs.iter().any(|run| step_ms(run) <= 0.0) {
        Some("one of them has no duration")
    } else {
        None
    }
}

fn compared_runs(runs: &[Diagnosis], labels: Option<&Labels>) -> Vec<ComparedRun> {
    let compared = |(i, run): (usize, &Diagnosis)| ComparedRun {
        path: run.source.path.clone(),
        label: label(labels, i, runs.len()),
        verdict: run.verdict.statement.clone(),
        steps: run.window.steps.as_ref().map(|steps| steps.count),
        complete: run.source.complete,
    };
    runs.iter().enumerate().map(compared).collect()
}

fn environment(runs: &[Diagnosis], labels: Option<&Labels>) -> Vec<String> {
    let one = |(i, run)| {
        let run: &Diagnosis = run;
        (label(labels, i, runs.len()), &run.environment)
    };
    Environment::differences(&runs.iter().enumerate().map(one).collect::<Vec<_>>())
}

fn label(labels: Option<&Labels>, index: usize, runs: usize) -> String {
    match (labels, index) {
        (Some(labels), i) => labels.of_run(i),
        (None, 0) if runs == 2 => "before".to_owned(),
        (None, 1) if runs == 2 => "after".to_owned(),
        (None, i) => format!("run {}", i + 1),
    }
}

/// What a step takes: the mean, which its parts sum to; without a GPU, the median.
const STEP: [FigureId; 2] = [FigureId::SpanMs, FigureId::AnalyzedStepP50];

fn step_ms(run: &Diagnosis) -> f64 {
    STEP.iter().find_map(|figure| figure.of(run)).unwrap_or(0.0)
}

fn limitations(runs: &[Diagnosis]) -> Vec<String> {
    let mut list = Vec::new();
    for run in runs {
        let path = &run.source.path;
        if !run.source.complete {
            list.push(format!("Only a part of {path} could be read. Its figures are for that part."));
        }
        match run.unit() {
            Unit::Trace => {
                list.push(format!("{path} marks no steps. Its figures are for the whole trace."));
            }
            Unit::Iteration => list.push(format!(
                "{path} marks no steps. Its figures are per detected iteration of {}.",
                run.window.steps.as_ref().map_or("", |steps| steps.pattern.as_str())
            )),
            Unit::Step => {}
        }
        if run.devices.is_empty() {
            list.push(format!("{path} has no GPU events, so no GPU figures can be compared."));
        }
    }
    let gpus: Vec<_> =
        runs.iter().filter_map(|run| run.machine.gpus.first()).map(|gpu| gpu.name.as_deref()).collect();
    if gpus.windows(2).any(|pair| pair[0] != pair[1]) {
        list.push("The runs used different GPUs.".to_owned());
    }
    list.extend(blocks::limitation(runs));
    list
}
