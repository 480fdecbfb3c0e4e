//! What does recording cost the host? The same calls with and without `busbound record`'s activity.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Evidence, Phase, SuiteCase, Topic, five_digits};
use crate::bench::figures::{FigureUnit, MeasuredFigure};
use crate::bench::identity::Identity;
use crate::bench::plan::{Limits, Mode};
use crate::profile::MachineProfile;
use crate::profiler_cost::{ProfilerCost, ProfilerTool};
use crate::quantile::median;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProfilerTask {
    /// Calls per repetition.
    pub calls: u32,
    pub repetitions: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfilerCase {
    #[serde(flatten)]
    pub task: ProfilerTask,
    /// Where CUPTI was found.
    pub library: String,
    pub loops: Vec<RecordedLoop>,
}

/// The host time of a loop of calls, per repetition. Repetition `i` ran in all three states, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedLoop {
    pub what: RecordedCall,
    /// Before CUPTI was loaded; these repetitions are separate.
    pub before_ns: Vec<u64>,
    pub off_ns: Vec<u64>,
    /// Only the launch calls are recorded.
    pub calls_ns: Vec<u64>,
    /// Everything is recorded.
    pub on_ns: Vec<u64>,
}

/// What a loop calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedCall {
    KernelLaunch,
    SmallCopy,
    EventRecord,
}

impl RecordedCall {
    pub const ALL: [Self; 3] = [Self::KernelLaunch, Self::SmallCopy, Self::EventRecord];

    fn id_and_words(self) -> (&'static str, &'static str) {
        match self {
            Self::KernelLaunch => ("record_launch", "extra host time per recorded kernel launch"),
            Self::SmallCopy => ("record_copy", "extra host time per recorded copy"),
            Self::EventRecord => ("record_event", "extra host time per recorded event record"),
        }
    }
}

/// Fewer than the queue of a stream holds: the host must not wait for the GPU.
const CALLS: u32 = 256;

impl BenchSuite for ProfilerTask {
    const NAME: &'static str = "profiler";
    const PHASE: Phase = Phase::Intrusive;
    const TOPIC: Topic = Topic::Recording;

    fn plan(mode: Mode, _limits: &Limits) -> Vec<Self> {
        let repetitions = match mode {
            Mode::Quick => 30,
            Mode::Full => 100,
        };
        vec![Self { calls: CALLS, repetitions }]
    }

    fn keep(cases: &[&ProfilerCase], identity: &Identity, profile: &mut MachineProfile) {
        let measured = format!("{}, host {}", profile.measured, identity.host_cpu);
        profile.profiler.extend(cases.iter().filter_map(|case| {
            let launches = case.of(RecordedCall::KernelLaunch)?;
            Some(ProfilerCost {
                tool: ProfilerTool::BusboundRecord,
                operator_us: 0.0,
                call_us: case.extra_us(&launches.off_ns, &launches.calls_ns)?,
                work_us: case.extra_us(&launches.calls_ns, &launches.on_ns)?,
                shapes_us: 0.0,
                frame_us: 0.0,
                step_us: 0.0,
                node_us: 0.0,
                copy_us: ProfilerCost::usual_copy_us(),
                measured: measured.clone(),
            })
        }));
    }

    fn figures(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        let figure = |case: &ProfilerCase, one: &RecordedLoop| {
            let (id, words) = one.what.id_and_words();
            let us = case.extra_us(&one.off_ns, &one.on_ns)?;
            Some(MeasuredFigure::fact(id, words, us, FigureUnit::Microseconds))
        };
        let cases = evidence.cases.iter().filter_map(<Self as super::Registered>::of);
        cases.flat_map(|case| case.loops.iter().filter_map(move |one| figure(case, one))).collect()
    }
}

impl ProfilerCase {
    fn of(&self, what: RecordedCall) -> Option<&RecordedLoop> {
        self.loops.iter().find(|one| one.what == what)
    }

    /// The median over repetitions of what a call takes longer, in microseconds. Noise can make it negative where
    /// recording costs nothing.
    fn extra_us(&self, without_ns: &[u64], with_ns: &[u64]) -> Option<f64> {
        let pairs = without_ns.iter().zip(with_ns);
        let extra_ns = median(pairs.map(|(without, with)| *with as f64 - *without as f64))?;
        let per_call = extra_ns / f64::from(self.task.calls.max(1)) / 1e3;
        Some(five_digits(per_call.max(0.0)))
    }
}

impl fmt::Display for ProfilerTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("profiler: what recording costs")
    }
}

impl SuiteCase for ProfilerCase {
    fn series(&self) -> Vec<&[u64]> {
        let all = self.loops.iter().flat_map(|one| [&one.before_ns, &one.off_ns, &one.calls_ns, &one.on_ns]);
        all.map(Vec::as_slice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(what: RecordedCall, off: u64, calls: u64, on: u64) -> RecordedLoop {
        // The machine becomes slower from one repetition to the next; differences within a repetition stay the same.
        let series = |ns: u64| (0..5).map(|drift| ns + 100_000 * drift).collect::<Vec<_>>();
        RecordedLoop {
            what,
            before_ns: series(off),
            off_ns: series(off),
            calls_ns: series(calls),
            on_ns: series(on),
        }
    }

    #[test]
    fn costs_are_differences_within_a_repetition_and_never_negative() {
        let case = ProfilerCase {
            task: ProfilerTask { calls: 100, repetitions: 5 },
            library: "libcupti.so.13".to_owned(),
            loops: vec![
                repeated(RecordedCall::KernelLaunch, 200_000, 250_000, 325_000),
                repeated(RecordedCall::SmallCopy, 300_000, 299_000, 360_000),
                repeated(RecordedCall::EventRecord, 90_000, 90_000, 85_000),
            ],
        };
        let identity = Identity { host_cpu: "Xeon".to_owned(), ..Identity::default() };
        let mut profile = MachineProfile { measured: "by hand".to_owned(), ..MachineProfile::default() };
        ProfilerTask::keep(&[&case], &identity, &mut profile);
        let cost = profile.profiler_cost(ProfilerTool::BusboundRecord).unwrap();
        assert_eq!((cost.call_us, cost.work_us), (0.5, 0.75));
        assert_eq!((cost.operator_us, cost.shapes_us, cost.frame_us), (0.0, 0.0, 0.0));
        assert_eq!(cost.measured, "by hand, host Xeon");
        let cases = [case.into()];
        let figures =
            ProfilerTask::figures(&Evidence { identity: &identity, profile: &profile, cases: &cases });
        let shown: Vec<(&str, f64)> = figures.iter().map(|figure| (figure.id, figure.measured)).collect();
        assert_eq!(shown, [("record_launch", 1.25), ("record_copy", 0.6), ("record_event", 0.0)]);
    }
}
