//! What would this run take if …? The steady steps of a trace, run again with changes.

use busbound_machine::Machine;
use busbound_trace::{Direction, Timestamp, Trace};
use busbound_whatif::replay::{
    About, Async, Change, Coalesce, Confidence, Moved, NoSync, Pin, Predicted, Prefetch, Replay, Resident,
};
use serde::Serialize;

use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::analysis::replay;
use crate::options::Options;
use crate::steps::basis::Basis;
use crate::steps::steady::steady;
use crate::unit::Unit;

pub const WHATIF_SCHEMA: &str = "busbound.whatif/2";

/// What a run takes, and what it would take.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatIf {
    pub schema: &'static str,
    pub path: String,
    /// The answer in a sentence.
    pub statement: String,
    /// Milliseconds of the middle step as measured, from one step's end to the next one's.
    pub baseline_ms: f64,
    /// What the milliseconds are of.
    pub unit: Unit,
    /// How far the unchanged replay is from the trace, as a share.
    pub replay_error: f64,
    /// Waits between streams and threads: named by the trace, and told by the times alone.
    pub recorded_waits: usize,
    pub inferred_waits: usize,
    /// Share of the time in which the device waited for something that the trace does not tell.
    pub unexplained: f64,
    pub link: String,
    /// Whether the machine's profile says what the power limit does.
    pub knows_power: bool,
    /// In the order asked for, or the best first.
    pub scenarios: Vec<Scenario>,
    /// What the answer rests on and cannot know.
    pub notes: Vec<String>,
}

/// Some changes, made in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Scenario {
    /// The changes themselves; `apply` is how they are written.
    #[serde(skip)]
    pub changes: Vec<Change>,
    pub apply: Vec<String>,
    pub step_ms: f64,
    pub low_ms: f64,
    pub high_ms: f64,
    /// Milliseconds a step less than now.
    pub gain_ms: f64,
    /// Device memory that it takes beyond what the run takes now.
    pub extra_bytes: u64,
    /// What matrix kernels lose because the device rests less, as a multiple of their time.
    pub power: f64,
    /// Whether the trace has anything that the changes could change.
    pub applies: bool,
    /// What has to be written.
    pub effort: String,
    /// What has to be so.
    pub precondition: String,
}

/// Why nothing can be said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoReplay(&'static str);

/// Runs the steady steps again under each set of changes; without any, under those that the trace gives
/// reason to try, the best first.
///
/// # Errors
/// Where the trace has no work of a device to run again.
pub fn what_if(
    trace: &Trace,
    path: &str,
    machine: &Machine,
    options: &Options,
    wanted: &[Vec<Change>],
) -> Result<WhatIf, NoReplay> {
    of_steady(trace, machine, options, |facts| Ok(of_replay(facts, replayed(facts)?, path, wanted)))
}

/// What `of` makes of the steps that are spoken of.
fn of_steady<T>(trace: &Trace, machine: &Machine, options: &Options, of: impl FnOnce(&Facts<'_>) -> T) -> T {
    let basis = Basis::of(trace, options);
    match steady(&basis, options).0 {
        Some(part) => of(&Facts::on(basis.of_part(&part, options), machine, options)),
        None => of(&Facts::on(basis, machine, options)),
    }
}

/// Where the device's work would be with the best of the changes.
#[derive(Debug)]
pub(crate) struct BestReplay {
    pub(crate) changes: Vec<Change>,
    /// When the first step begins on the host: what its times are counted from.
    pub(crate) begin: Timestamp,
    pub(crate) moved: Vec<Moved>,
}

/// The answer, and the timeline of its first scenario where the trace has anything for it to change.
pub(crate) fn with_timeline(
    facts: &Facts<'_>,
    path: &str,
    wanted: &[Vec<Change>],
) -> (Result<WhatIf, NoReplay>, Option<BestReplay>) {
    let replay = match replayed(facts) {
        Ok(replay) => replay,
        Err(why) => return (Err(why), None),
    };
    let answer = of_replay(facts, replay, path, wanted);
    let best = answer.scenarios.first().filter(|best| best.applies).and_then(|best| {
        let begin = facts.replayed_stretch()?.starts.first().copied()?;
        Some(BestReplay { begin, moved: replay.timeline(&best.changes), changes: best.changes.clone() })
    });
    (Ok(answer), best)
}

fn replayed<'f>(facts: &'f Facts<'_>) -> Result<&'f Replay, NoReplay> {
    if facts.timelines.is_empty() {
        return Err(NoReplay(
            "the trace has no GPU events: there is nothing whose time could be predicted (record with CUDA activity)",
        ));
    }
    facts.replay().ok_or(NoReplay(
        "the trace does not hold together well enough to be run again: its calls, work and waits do not give its times",
    ))
}

fn of_replay(facts: &Facts<'_>, replay: &Replay, path: &str, wanted: &[Vec<Change>]) -> WhatIf {
    let baseline_ms = replay.step_ms();
    let mut scenarios: Vec<Scenario> = if wanted.is_empty() {
        let tried = candidates(facts).into_iter().map(|changes| scenario(replay, &changes, baseline_ms));
        let mut useful: Vec<Scenario> =
            tried.filter(|one| one.applies && one.gain_ms > 0.01 * baseline_ms).collect();
        useful.sort_by(|a, b| a.step_ms.total_cmp(&b.step_ms));
        worth_their_effort(useful)
    } else {
        wanted.iter().map(|changes| scenario(replay, changes, baseline_ms)).collect()
    };
    scenarios.truncate(SHOWN);
    let confidence = replay.confidence();
    let knows_power = facts.link.measured().is_some_and(|profile| profile.power.is_some());
    let mut answer = WhatIf {
        schema: WHATIF_SCHEMA,
        path: path.to_owned(),
        statement: String::new(),
        baseline_ms,
        unit: facts.unit(),
        replay_error: confidence.error,
        recorded_waits: confidence.recorded_waits,
        inferred_waits: confidence.inferred_waits,
        unexplained: confidence.unexplained,
        link: facts.link.name.clone(),
        knows_power,
        scenarios,
        notes: notes(facts, &confidence, knows_power),
    };
    answer.statement = answer.sentence(wanted.is_empty());
    answer
}

/// What the answer rests on and cannot know.
fn notes(facts: &Facts<'_>, confidence: &Confidence, knows_power: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if !knows_power {
        notes.push("Kernel times are kept. A GPU that rests less may clock down: a profile by `busbound bench` says how far (--machine).".to_owned());
    }
    if facts.link.source != busbound_machine::LinkSource::Measured {
        notes.push(format!(
            "Copies are taken at what {} reaches {}; --machine with a profile of `busbound bench` knows better.",
            facts.link.name,
            facts.link.source.describe()
        ));
    }
    if facts.copies.iter().any(Copy::is_migration) {
        notes.push(
            "Migrations of managed memory and the kernels that wait for them stay as they are: no change tried here moves them; the findings say what would."
                .to_owned(),
        );
    }
    if confidence.unexplained > 0.02 {
        notes.push(format!(
            "In {:.0} % of the time the GPU waited for something that the trace does not tell; that stays as it is.",
            100.0 * confidence.unexplained
        ));
    }
    if confidence.without_call > 0.05 {
        notes.push(format!(
            "The calls behind {:.0} % of the GPU's work are not in the trace: what the host does there stays as it is.",
            100.0 * confidence.without_call
        ));
    }
    let (run, all) = (replay::steps_run_again(facts.trace, &facts.window), facts.window.steps.len());
    if run < all {
        notes.push(format!("The trace is long: the first {run} of the {all} steps judged are run again."));
    }
    if facts.window.times().is_none() {
        notes.push("No steps are marked or found: the whole trace counts as one.".to_owned());
    }
    notes
}

/// Scenarios that are listed.
const SHOWN: usize = 8;

fn scenario(replay: &Replay, changes: &[Change], baseline_ms: f64) -> Scenario {
    let Predicted { step_ms, low_ms, high_ms, extra_bytes, applies, power, .. } = replay.predict(changes);
    Scenario {
        changes: changes.to_vec(),
        apply: changes.iter().map(Change::to_string).collect(),
        step_ms,
        low_ms,
        high_ms,
        gain_ms: baseline_ms - step_ms,
        extra_bytes,
        power,
        applies,
        effort: joined(changes, |about| about.effort),
        precondition: joined(changes, |about| about.precondition),
    }
}

/// The words of several changes in one sentence.
fn joined(changes: &[Change], words: fn(About) -> &'static str) -> String {
    changes.iter().map(|change| words(change.about())).collect::<Vec<_>>().join("; ")
}

/// What the trace gives reason to try.
fn candidates(facts: &Facts<'_>) -> Vec<Vec<Change>> {
    let pageable = facts
        .copies
        .iter()
        .any(|copy| [copy.transfer.src, copy.transfer.dst].contains(&busbound_trace::MemoryKind::Pageable));
    let mut all: Vec<Vec<Change>> = Vec::new();
    let mut bases: Vec<Vec<Change>> = vec![vec![]];
    if pageable {
        bases.push(vec![Pin.into()]);
    }
    for base in &bases {
        let mut add = |more: &[Change]| all.push(base.iter().cloned().chain(more.iter().cloned()).collect());
        add(&[]);
        for depth in [1, 2, 4] {
            add(&[Prefetch(depth).into()]);
        }
        add(&[Async.into()]);
        add(&[NoSync.into()]);
        add(&[Coalesce.into()]);
        add(&[NoSync.into(), Prefetch(1).into()]);
        if is_offloading(facts) {
            add(&[Resident(0.5).into()]);
            add(&[Resident(0.5).into(), Prefetch(1).into()]);
        }
    }
    all.retain(|changes| !changes.is_empty());
    all
}

/// Whether so many large copies come in each step that they look like weights and not like a batch.
fn is_offloading(facts: &Facts<'_>) -> bool {
    let large = facts.issued_copies().filter(|copy| {
        copy.transfer.direction == Direction::HostToDevice && copy.bytes().unwrap_or(0) >= 1 << 20
    });
    large.count() as f64 >= 4.0 * facts.steps()
}

/// Without those that more is written for than for another one that is as fast.
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

impl WhatIf {
    fn sentence(&self, searched: bool) -> String {
        let now = crate::quantity::milliseconds(self.baseline_ms);
        let unit = self.unit;
        let Some(best) = self.scenarios.first() else {
            return format!("Nothing that was tried would make this run faster: {now} a {unit}.");
        };
        let change = best.apply.join(" + ");
        if !best.applies {
            return format!("Nothing in this trace that `{change}` could change: {now} a {unit}.");
        }
        let range = format!(
            "{} a {unit} ({} to {}) instead of {now}",
            crate::quantity::milliseconds(best.step_ms),
            crate::quantity::milliseconds(best.low_ms),
            crate::quantity::milliseconds(best.high_ms)
        );
        if best.low_ms <= self.baseline_ms && self.baseline_ms <= best.high_ms {
            return format!("`{change}` may change little: {range}; the range holds what it takes now.");
        }
        let times = self.baseline_ms / best.step_ms;
        let by = if times > 1.0 { format!("{times:.1} times as fast") } else { "slower".to_owned() };
        let best_of = if searched { "The best of what was tried: " } else { "" };
        format!("{best_of}`{change}` would give {range}, {by}.")
    }
}
