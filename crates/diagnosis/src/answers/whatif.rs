//! How long would this run take with a change? Replays the steady steps of a trace with changes.

use busbound_cause::Model;
use busbound_cause::parallel::join;
use busbound_machine::Machine;
use busbound_trace::{Direction, Timestamp, Trace};
use busbound_whatif::replay::{About, Change, Confidence, Moved, Predicted, RangeFrom, Replay};
use serde::Serialize;

use crate::activity::copies::Copy;
use crate::analysis::attribution::attribution;
use crate::analysis::candidates::candidates;
use crate::analysis::confidential;
use crate::analysis::facts::Facts;
use crate::analysis::replay;
use crate::analysis::start_up;
use crate::analysis::unprofiled::is_worth_saying;
use crate::answers::diagnosis::{AnalysisScope, Diagnosis, diagnose_and};
use crate::answers::survey::withheld::why_incomplete;
use crate::answers::survey::{Source, survey};
use crate::limits::part_of_long_trace;
use crate::misfits::{Misfit, misfits};
use crate::options::Options;
use crate::steps::basis::Basis;
use crate::steps::steady::{LeftOut, steady};
use crate::unit::Unit;

pub const WHATIF_SCHEMA: &str = "busbound.whatif/2";

/// How long a run takes, and how long it would take with changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatIf {
    pub schema: &'static str,
    pub path: String,
    /// The rank that the changes are made on, if the times are of a step of the whole job; else `null`.
    pub rank: Option<u32>,
    /// The ranks of the job that are replayed together; `null` if the times are of one trace.
    pub ranks: Option<usize>,
    /// The answer in a sentence.
    pub statement: String,
    /// Milliseconds of the mean step, without the profiler where that is known.
    pub baseline_ms: f64,
    /// The same as recorded.
    pub recorded_ms: f64,
    /// What the times are per.
    pub unit: Unit,
    /// Error of a replay without changes, relative to the trace.
    pub replay_error: f64,
    /// Waits between streams and threads that the trace recorded.
    pub recorded_waits: usize,
    /// Waits between streams and threads inferred from timing.
    pub inferred_waits: usize,
    /// Share of the time in which the GPU waited for something not visible in this trace.
    pub unexplained: f64,
    pub link: String,
    /// Whether the machine profile includes the effect of the power limit.
    pub knows_power: bool,
    /// In the requested order, or best first.
    pub scenarios: Vec<Scenario>,
    /// Assumptions and unknowns of the prediction.
    pub notes: Vec<String>,
    /// Whether the rates of copies are those of a measured machine.
    #[serde(skip)]
    pub is_measured: bool,
    /// The options that do not fit this trace.
    #[serde(skip)]
    pub misfits: Vec<Misfit>,
}

/// A set of changes, applied in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scenario {
    /// The changes; `apply` has them as text.
    #[serde(skip)]
    pub changes: Vec<Change>,
    /// As the replay predicted it.
    #[serde(skip)]
    predicted: Predicted,
    pub apply: Vec<String>,
    pub step_ms: f64,
    pub low_ms: f64,
    pub high_ms: f64,
    /// Milliseconds saved per step.
    pub gain_ms: f64,
    /// Additional device memory.
    pub extra_bytes: u64,
    /// Slowdown of matrix kernels because the GPU is idle less and reaches its power limit, as a factor of their time.
    pub power: f64,
    /// Whether the trace contains anything that the changes affect.
    pub applies: bool,
    /// What the range from `low_ms` to `high_ms` mostly comes from.
    pub range_from: RangeFrom,
    /// What to implement.
    pub effort: String,
    /// What the prediction assumes.
    pub precondition: String,
}

impl Scenario {
    /// Whether it only prefetches, and finds no copies to move.
    fn only_prefetches_nothing(&self) -> bool {
        !self.applies && self.changes.iter().all(|change| matches!(change, Change::Prefetch(_)))
    }
}

/// Why the trace cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoReplay(String);

/// Replays the steady steps with each set of changes. Without any, tries the changes that suit the trace, best
/// first.
///
/// # Errors
/// If the trace has no GPU work, or is not consistent enough to replay.
pub fn what_if(
    trace: &Trace,
    path: &str,
    machine: &Machine,
    options: &Options,
    wanted: &[Vec<Change>],
) -> Result<WhatIf, NoReplay> {
    let (why, answer) = join(
        || why_incomplete(trace, &survey(trace, &Source::named(path))),
        || from_steady(trace, path, machine, options, wanted),
    );
    match why {
        Some(withheld) => Err(NoReplay::incomplete(&withheld.why)),
        None => answer,
    }
}

impl NoReplay {
    pub(crate) fn incomplete(why: &str) -> Self {
        Self(format!("nothing can be predicted from this trace: {why}"))
    }
}

fn from_steady(
    trace: &Trace,
    path: &str,
    machine: &Machine,
    options: &Options,
    wanted: &[Vec<Change>],
) -> Result<WhatIf, NoReplay> {
    of_steady(trace, machine, options, |facts, left_out| {
        // What a program does at its start says nothing about its steps.
        if let Some(withheld) = start_up::reason(facts).filter(|_| !facts.timelines.is_empty()) {
            return Err(NoReplay::incomplete(&withheld.why));
        }
        let has_blocks = || attribution(facts, &options.blocks).is_some();
        let misfits = misfits(facts, options, left_out, has_blocks);
        Ok(WhatIf { misfits, ..of_replay(facts, replayed(facts)?, path, wanted) })
    })
}

/// The dependency graph of the steps that the figures cover; `None` without GPU work.
pub fn steady_model(trace: &Trace, machine: &Machine, options: &Options) -> Option<Model> {
    of_steady(trace, machine, options, |facts, _| facts.recorded_model().cloned())
}

/// Applies `of` to the steps that the figures cover.
pub(super) fn of_steady<T>(
    trace: &Trace,
    machine: &Machine,
    options: &Options,
    of: impl FnOnce(&Facts<'_>, &LeftOut) -> T,
) -> T {
    let mut basis = Basis::of(trace, options);
    let (part, left_out) = steady(&mut basis, options);
    match part {
        Some(part) => {
            let basis = basis.of_part(&part, options, &left_out.steady);
            of(&Facts::on(basis, machine, options), &left_out)
        }
        None => of(&Facts::on(basis, machine, options), &left_out),
    }
}

/// When the GPU work would run with the best change.
#[derive(Debug)]
pub(crate) struct BestReplay {
    pub(crate) changes: Vec<Change>,
    /// When the first step begins on the host: the origin of its times.
    pub(crate) begin: Timestamp,
    pub(crate) moved: Vec<Moved>,
}

/// Diagnoses one trace and predicts it with each set of changes, as [`diagnose`](crate::diagnose) and [`what_if`] do, from one analysis.
pub fn diagnose_and_predict(
    trace: &Trace,
    source: &Source,
    machine: &Machine,
    options: &Options,
    wanted: &[Vec<Change>],
) -> (Diagnosis, Result<WhatIf, NoReplay>) {
    diagnose_and(trace, source, machine, options, |analyzed| {
        predict(analyzed, &source.path, wanted).map(|(answer, _)| answer)
    })
}

/// The steps of a diagnosis with each set of changes, and their replay.
fn predict<'s>(
    analyzed: &'s AnalysisScope<'_, '_>,
    path: &str,
    wanted: &[Vec<Change>],
) -> Result<(WhatIf, &'s Replay), NoReplay> {
    let verdict = &analyzed.diagnosis.verdict;
    if verdict.withheld.is_some() {
        return Err(NoReplay::incomplete(verdict.because.trim_end_matches('.')));
    }
    let replay = replayed(analyzed.facts)?;
    let misfits = analyzed.diagnosis.misfits.clone();
    Ok((WhatIf { misfits, ..of_replay(analyzed.facts, replay, path, wanted) }, replay))
}

/// The answer, and the timeline of its first scenario if that affects anything in the trace.
pub(crate) fn with_timeline(
    analyzed: &AnalysisScope<'_, '_>,
    path: &str,
    wanted: &[Vec<Change>],
) -> (Result<WhatIf, NoReplay>, Option<BestReplay>) {
    let (answer, replay) = match predict(analyzed, path, wanted) {
        Ok(predicted) => predicted,
        Err(why) => return (Err(why), None),
    };
    let facts = analyzed.facts;
    let best = answer.scenarios.first().filter(|best| best.applies).and_then(|best| {
        let begin = facts.replayed_part()?.range.starts.first().copied()?;
        Some(BestReplay { begin, moved: replay.timeline(&best.changes), changes: best.changes.clone() })
    });
    (Ok(answer), best)
}

pub(super) fn replayed<'f>(facts: &'f Facts<'_>) -> Result<&'f Replay, NoReplay> {
    if facts.timelines.is_empty() {
        return Err(NoReplay(
            "the trace has no GPU events, so there is nothing to predict (record with CUDA activity)"
                .to_owned(),
        ));
    }
    let inconsistent = "the trace is not consistent enough to replay: its calls, GPU work and waits do not explain its timing";
    facts.replay().ok_or_else(|| NoReplay(inconsistent.to_owned()))
}

pub(super) fn of_replay(facts: &Facts<'_>, replay: &Replay, path: &str, wanted: &[Vec<Change>]) -> WhatIf {
    // Without GPU work, only a replay with collectives knows the step.
    let has_gpu = !facts.timelines.is_empty();
    let baseline_ms = if has_gpu { facts.own_step_ms() } else { replay.step_ms() };
    let mut scenarios: Vec<Scenario> = if wanted.is_empty() {
        let tried = candidates(facts).into_iter().map(|changes| scenario(replay, &changes, baseline_ms));
        let mut useful: Vec<Scenario> =
            tried.filter(|one| one.applies && one.gain_ms > 0.01 * baseline_ms).collect();
        useful.sort_by(|a, b| a.step_ms.total_cmp(&b.step_ms));
        settings_first(worth_their_effort(useful))
    } else {
        wanted.iter().map(|changes| scenario(replay, changes, baseline_ms)).collect()
    };
    scenarios.truncate(SHOWN);
    for one in &mut scenarios {
        one.range_from = replay.range_from(&one.changes, &one.predicted);
    }
    let confidence = replay.confidence();
    let knows_power = facts.link.measured().is_some_and(|profile| profile.power.is_some());
    let mut answer = WhatIf {
        schema: WHATIF_SCHEMA,
        path: path.to_owned(),
        rank: None,
        ranks: None,
        statement: String::new(),
        baseline_ms,
        recorded_ms: facts.step_ms(),
        unit: facts.unit(),
        replay_error: confidence.error,
        recorded_waits: confidence.recorded_waits,
        inferred_waits: confidence.inferred_waits,
        unexplained: confidence.unexplained,
        link: facts.link.name.clone(),
        knows_power,
        is_measured: facts.link.measured().is_some(),
        scenarios,
        notes: notes(facts, &confidence, knows_power),
        misfits: Vec::new(),
    };
    let is_prefetched = are_copies_ahead(facts);
    answer.statement = match answer.scenarios.first() {
        Some(one) if is_prefetched && one.only_prefetches_nothing() => format!(
            "`{}` changes nothing: the H2D copies already have a stream of their own, and the host does not wait for them: {}/{}.",
            one.apply.join(" + "),
            crate::quantity::milliseconds(answer.baseline_ms),
            answer.unit
        ),
        _ => answer.sentence(wanted.is_empty()),
    };
    answer
}

/// Whether there are large H2D copies, and all of them have a stream without kernels.
fn are_copies_ahead(facts: &Facts<'_>) -> bool {
    let is_inbound = |copy: &&Copy<'_>| {
        copy.transfer.direction == Direction::HostToDevice && copy.is_large() && !copy.is_migration()
    };
    let mut copies = facts.copies.iter().filter(is_inbound).peekable();
    copies.peek().is_some() && copies.all(|copy| facts.shares_stream_with_kernels(copy) == Some(false))
}

/// Assumptions and unknowns of the prediction.
fn notes(facts: &Facts<'_>, confidence: &Confidence, knows_power: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if confidential::is_on(facts.trace) {
        notes.push(confidential::NOTE.to_owned());
    }
    let has_gpu = !facts.timelines.is_empty();
    if has_gpu && !knows_power {
        notes.push("Kernel times stay the same. A GPU that is idle less may lower its clocks: pass a `busbound bench` profile with --machine to include that.".to_owned());
    }
    if has_gpu && facts.link.source != busbound_machine::LinkSource::Measured {
        notes.push(format!(
            "Copies use the expected rates of {} ({}); pass a `busbound bench` profile with --machine for measured rates.",
            facts.link.name,
            facts.link.source.describe()
        ));
    }
    if facts.copies.iter().any(Copy::is_migration) {
        notes.push(
            "Migrations of managed memory, and the kernels that wait for them, stay the same: no change tested here affects them; see the findings."
                .to_owned(),
        );
    }
    // Work that starts late does not keep a GPU waiting that runs other work meanwhile.
    let idle = facts.idle.iter().map(|idle| idle.ms).sum::<f64>() / facts.time.analyzed_ms;
    let unexplained = confidence.unexplained.min(idle);
    if unexplained > 0.02 {
        notes.push(format!(
            "For {:.0}% of the time the GPU waited for something not visible in this trace; that time stays the same.",
            100.0 * unexplained
        ));
    }
    if confidence.without_call > 0.05 {
        notes.push(format!(
            "The launch calls of {:.0}% of the GPU work are not in the trace: the host time for them stays the same.",
            100.0 * confidence.without_call
        ));
    }
    let (run, all) = (replay::steps_replayed(facts.trace, &facts.window), facts.window.steps.len());
    if run < all {
        notes.push(format!(
            "The trace is long: only the first {run} of the {all} analyzed steps are replayed."
        ));
    }
    if let Some(sampled) = part_of_long_trace(facts) {
        notes.push(sampled);
    } else if facts.window.times().is_none() {
        notes.push("No steps are marked or detected: the whole trace counts as one step.".to_owned());
    }
    notes
}

/// Most scenarios listed.
const SHOWN: usize = 8;

fn scenario(replay: &Replay, changes: &[Change], baseline_ms: f64) -> Scenario {
    let predicted = replay.predict(changes);
    let Predicted { step_ms, low_ms, high_ms, extra_bytes, applies, power, .. } = predicted;
    Scenario {
        changes: changes.to_vec(),
        predicted,
        apply: changes.iter().map(Change::to_string).collect(),
        step_ms,
        low_ms,
        high_ms,
        gain_ms: baseline_ms - step_ms,
        range_from: RangeFrom::Replay,
        extra_bytes,
        power,
        applies,
        effort: joined(changes, |about| about.effort),
        precondition: joined(changes, |about| about.precondition),
    }
}

/// The texts of several changes, joined.
fn joined(changes: &[Change], words: fn(About) -> &'static str) -> String {
    changes.iter().map(|change| words(change.about())).collect::<Vec<_>>().join("; ")
}

/// Drops scenarios that need more effort than another one that is as fast.
fn worth_their_effort(ranked: Vec<Scenario>) -> Vec<Scenario> {
    let mut kept: Vec<Scenario> = Vec::new();
    for one in &ranked {
        let simpler = ranked.iter().any(|other| {
            let cheaper = (other.apply.len(), other.extra_bytes) < (one.apply.len(), one.extra_bytes);
            cheaper && other.step_ms <= one.step_ms * 1.02
        });
        if !simpler {
            kept.push(one.clone());
        }
    }
    kept
}

/// A setting of the data loader comes before a change of the code, if the predictions do not show which of them is faster: a code that
/// launches faster only lets the host begin the next batch earlier.
fn settings_first(mut ranked: Vec<Scenario>) -> Vec<Scenario> {
    let is_within = |one: &Scenario, other: &Scenario| (other.low_ms..=other.high_ms).contains(&one.step_ms);
    let is_as_fast = |one: &Scenario, best: &Scenario| is_within(one, best) && is_within(best, one);
    let is_setting = |one: &Scenario| one.changes.iter().all(Change::is_loader_setting);
    if let Some(best) = ranked.first()
        && let Some(at) = ranked.iter().position(|one| is_setting(one) && is_as_fast(one, best))
    {
        ranked[..=at].rotate_right(1);
    }
    ranked
}

impl WhatIf {
    /// Whether the profiler made the recorded steps clearly longer.
    pub fn is_slowed(&self) -> bool {
        is_worth_saying(self.baseline_ms, self.recorded_ms)
    }

    pub(super) fn sentence(&self, searched: bool) -> String {
        let now = crate::quantity::milliseconds(self.baseline_ms);
        let recorded = match self.is_slowed() {
            true => {
                format!(
                    " without the profiler ({} recorded)",
                    crate::quantity::milliseconds(self.recorded_ms)
                )
            }
            false => String::new(),
        };
        let unit = self.unit;
        let Some(best) = self.scenarios.first() else {
            return format!("No tested change makes this run faster: {now}/{unit}{recorded}.");
        };
        let change = best.apply.join(" + ");
        if !best.applies {
            return format!("`{change}` affects nothing in this trace: {now}/{unit}{recorded}.");
        }
        let range = format!(
            "{}/{unit} ({}) instead of {now}{recorded}",
            crate::quantity::milliseconds(best.step_ms),
            crate::quantity::milliseconds_range(best.low_ms, best.high_ms)
        );
        if best.low_ms <= self.baseline_ms && self.baseline_ms <= best.high_ms {
            return format!(
                "`{change}` may make no difference: {range}; the predicted range includes the current time."
            );
        }
        let times = self.baseline_ms / best.step_ms;
        let by = if times > 1.0 { format!("{times:.1}x faster") } else { "which is slower".to_owned() };
        let best_of = if searched { "Best tested change: " } else { "" };
        format!("{best_of}`{change}` gives {range}, {by}.")
    }
}
