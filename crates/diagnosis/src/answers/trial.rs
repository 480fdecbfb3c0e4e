//! What did a program gain from staged copies? Runs without and with them, compared.

use busbound_machine::median;
use serde::Serialize;

/// The schema of `busbound try --format json`.
pub const TRIAL_SCHEMA: &str = "busbound.trial/1";

/// Differences below this are not called one, however little the runs vary.
const LEAST_DIFFERENCE: f64 = 0.02;
/// As above, with one run of each: nothing says how much runs vary, and the first one is the cold one.
const LEAST_OF_ONE: f64 = 0.2;
/// Runs whose bytes differ by more than this share did different work.
const SAME_WORK: f64 = 0.05;

/// What the times are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TimeOf {
    /// Steps that the program marks: by heartbeats, or by annotations in its recording. Never detected iterations, which may be layers.
    Step,
    /// From the first large copy of pageable memory to the end of the program.
    SinceFirstCopy,
    /// The whole run: the program makes no such copies.
    Run,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    Faster,
    /// The difference is within the noise.
    Same,
    Slower,
    /// The program makes no copies that staging would take over.
    NothingToStage,
    /// There were such copies, and all were left to the driver.
    NothingStaged,
    /// The runs copied different amounts, so they did different work.
    NotComparable,
    /// No process that uses CUDA had the library: the program is linked statically, or drops it.
    NotLoaded,
}

/// One run of the program.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialRun {
    pub ms: f64,
    /// Copies of pageable memory that are large enough, in both directions.
    pub copies: u64,
    pub bytes: u64,
    /// Of them, carried by busbound.
    pub staged_bytes: u64,
    /// Time that the program spent in these calls.
    pub copy_ms: f64,
}

/// The runs of one kind together.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialSide {
    /// The median.
    pub ms: f64,
    pub low_ms: f64,
    pub high_ms: f64,
    /// Bytes over time in the calls; `null` without copies.
    pub gbps: Option<f64>,
    /// Bytes of copies per step: of the steps themselves if they are recorded, else of the whole run over its heartbeats; `null` without steps.
    pub bytes_per_step: Option<u64>,
    pub runs: Vec<TrialRun>,
}

/// The answer of `busbound try`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    pub schema: &'static str,
    pub outcome: TrialOutcome,
    pub time_of: TimeOf,
    /// Time before over time after; `null` without a run after.
    pub speedup: Option<f64>,
    /// How much runs of one kind differ, as a share of their median; `null` with one run of each.
    pub noise: Option<f64>,
    pub before: TrialSide,
    /// `null` if there was nothing to stage.
    pub after: Option<TrialSide>,
    /// Threads that copied, per process.
    pub threads: u64,
    /// Recordings of both, for `compare`.
    pub recordings: Vec<String>,
}

impl TrialSide {
    /// `None` without runs.
    #[must_use]
    pub fn of(runs: Vec<TrialRun>) -> Option<Self> {
        let times = || runs.iter().map(|run| run.ms);
        let ms = median(times())?;
        let (low_ms, high_ms) = (times().reduce(f64::min)?, times().reduce(f64::max)?);
        let bytes: u64 = runs.iter().map(|run| run.bytes).sum();
        let copy_ms: f64 = runs.iter().map(|run| run.copy_ms).sum();
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no 64 bits")]
        let gbps = (copy_ms > 0.0).then(|| bytes as f64 / copy_ms / 1e6);
        Some(Self { ms, low_ms, high_ms, gbps, bytes_per_step: None, runs })
    }

    fn noise(&self) -> Option<f64> {
        (self.runs.len() > 1 && self.ms > 0.0).then(|| (self.high_ms - self.low_ms) / self.ms)
    }

    /// Bytes of copies per run.
    #[must_use]
    pub fn bytes_per_run(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes).sum::<u64>() / self.runs.len().max(1) as u64
    }
}

/// Compares the two kinds of runs.
#[must_use]
pub fn judge_trial(time_of: TimeOf, before: TrialSide, after: Option<TrialSide>, threads: u64) -> Trial {
    let noises = [before.noise(), after.as_ref().and_then(TrialSide::noise)];
    let noise = noises.into_iter().flatten().reduce(f64::max);
    let speedup = after.as_ref().filter(|after| after.ms > 0.0).map(|after| before.ms / after.ms);
    let is_staged = after.iter().flat_map(|after| &after.runs).any(|run| run.staged_bytes > 0);
    let outcome = match speedup {
        None => TrialOutcome::NothingToStage,
        Some(_) if !is_same_work(&before, after.as_ref()) => TrialOutcome::NotComparable,
        Some(_) if !is_staged => TrialOutcome::NothingStaged,
        Some(speedup) => {
            let least = 1.0 + noise.map_or(LEAST_OF_ONE, |noise| noise.max(LEAST_DIFFERENCE));
            if speedup > least {
                TrialOutcome::Faster
            } else if speedup < 1.0 / least {
                TrialOutcome::Slower
            } else {
                TrialOutcome::Same
            }
        }
    };
    Trial {
        schema: TRIAL_SCHEMA,
        outcome,
        time_of,
        speedup,
        noise,
        before,
        after,
        threads,
        recordings: Vec::new(),
    }
}

/// True if all runs copied about the same amount.
fn is_same_work(before: &TrialSide, after: Option<&TrialSide>) -> bool {
    let bytes = || before.runs.iter().chain(after.iter().flat_map(|after| &after.runs)).map(|run| run.bytes);
    let (least, most) = (bytes().min().unwrap_or_default(), bytes().max().unwrap_or_default());
    #[expect(clippy::cast_precision_loss, reason = "a share needs no 64 bits")]
    let share = (most - least) as f64 / (most.max(1)) as f64;
    share <= SAME_WORK
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(times: &[f64], staged_bytes: u64) -> TrialSide {
        let run = |&ms: &f64| TrialRun { ms, copies: 1, bytes: 1_000_000, staged_bytes, copy_ms: 0.1 };
        TrialSide::of(times.iter().map(run).collect()).unwrap()
    }

    fn outcome(before: &[f64], after: &[f64]) -> TrialOutcome {
        judge_trial(TimeOf::Step, side(before, 0), Some(side(after, 1)), 8).outcome
    }

    #[test]
    fn a_difference_counts_only_beyond_the_noise() {
        assert_eq!(outcome(&[100.0, 102.0], &[50.0, 51.0]), TrialOutcome::Faster);
        assert_eq!(outcome(&[100.0, 130.0], &[90.0, 95.0]), TrialOutcome::Same);
        assert_eq!(outcome(&[100.0], &[90.0]), TrialOutcome::Same, "one run of each shows no noise");
        assert_eq!(outcome(&[100.0], &[50.0]), TrialOutcome::Faster);
        assert_eq!(outcome(&[100.0, 101.0], &[120.0, 121.0]), TrialOutcome::Slower);
    }

    #[test]
    fn runs_that_copied_different_amounts_are_not_compared() {
        let (before, mut after) = (side(&[100.0], 0), side(&[10.0], 1));
        after.runs[0].bytes = 100;
        assert_eq!(judge_trial(TimeOf::Step, before, Some(after), 8).outcome, TrialOutcome::NotComparable);
    }

    #[test]
    fn nothing_to_stage_differs_from_nothing_staged() {
        assert_eq!(judge_trial(TimeOf::Run, side(&[1.0], 0), None, 0).outcome, TrialOutcome::NothingToStage);
        let trial = judge_trial(TimeOf::Run, side(&[2.0], 0), Some(side(&[1.0], 0)), 0);
        assert_eq!(trial.outcome, TrialOutcome::NothingStaged);
    }

    #[test]
    fn a_side_is_its_median_and_the_rate_of_all_its_copies() {
        let side = side(&[3.0, 1.0, 2.0, 10.0], 0);
        assert!(
            (side.ms - 2.5).abs() < 1e-9
                && (side.low_ms - 1.0).abs() < 1e-9
                && (side.high_ms - 10.0).abs() < 1e-9
        );
        assert!((side.gbps.unwrap() - 10.0).abs() < 1e-9);
        assert_eq!(TrialSide::of(Vec::new()), None);
    }
}
