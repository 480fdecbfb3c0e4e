//! How much slower is a pinned copy while something else runs, and how do those that copy at the same time share the link?

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Evidence, Phase, SuiteCase, Topic, five_digits, median_gbps};
use crate::bench::figures::{FigureUnit, MeasuredFigure};
use crate::bench::identity::Identity;
use crate::bench::plan::{Limits, MIB, Mode};
use crate::bench::terms::{ContentionLoad, Direction};
use crate::profile::{ContentionFacts, MachineProfile};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentionTask {
    pub load: ContentionLoad,
    pub direction: Direction,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContentionCase {
    #[serde(flatten)]
    pub task: ContentionTask,
    /// Copies per repetition.
    pub copies: u32,
    /// Of the copies on this GPU, in this process, while the load runs.
    pub ns: Vec<u64>,
    /// Of others that make the same copies at the same time: another process, or each of the other GPUs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherCopies>,
    pub verified: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherCopies {
    /// Copies per repetition.
    pub copies: u32,
    pub ns: Vec<u64>,
}

impl BenchSuite for ContentionTask {
    const NAME: &'static str = "contention";
    const PHASE: Phase = Phase::Intrusive;
    const TOPIC: Topic = Topic::Contention;

    fn plan(_mode: Mode, limits: &Limits) -> Vec<Self> {
        // Large enough for the full rate, small enough that the load outlasts several of them.
        let bytes = (64 * MIB).min(limits.largest);
        let loads =
            ContentionLoad::ALL.into_iter().filter(|load| limits.gpus > 1 || !load.needs_several_gpus());
        let both = |load| [Direction::H2d, Direction::D2h].map(|direction| Self { load, direction, bytes });
        loads.flat_map(both).collect()
    }

    fn left_out(_mode: Mode, limits: &Limits) -> Option<&'static str> {
        (limits.gpus == 1)
            .then_some("CUDA reports only one GPU, so copies on all GPUs and beside P2P are skipped")
    }

    fn keep(cases: &[&ContentionCase], _identity: &Identity, profile: &mut MachineProfile) {
        let rate = |case: &ContentionCase| {
            median_gbps(&case.ns, case.task.bytes * u64::from(case.copies)).filter(|gbps| *gbps > 0.0)
        };
        for case in cases {
            let ContentionTask { load, direction, bytes } = case.task;
            let is_baseline = |other: &&&ContentionCase| {
                other.task == ContentionTask { load: ContentionLoad::Nothing, ..case.task }
            };
            // Without its baseline, a rate says nothing about the load.
            let Some(alone_gbps) = cases.iter().rev().find(is_baseline).and_then(|case| rate(case)) else {
                continue;
            };
            let Some(gbps) = rate(case) else { continue };
            let of_other =
                |other: &OtherCopies| median_gbps(&other.ns, case.task.bytes * u64::from(other.copies));
            let others_gbps = case.others.iter().filter_map(of_other).collect();
            let slowdown = five_digits(alone_gbps / gbps);
            // The last measurement counts.
            profile.contention.retain(|known| (known.load, known.direction) != (load, direction));
            profile.contention.push(ContentionFacts {
                load,
                direction,
                bytes,
                alone_gbps,
                gbps,
                slowdown,
                others_gbps,
            });
        }
    }

    fn figures(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        evidence.profile.contention.iter().map(figure).collect()
    }
}

fn figure(facts: &ContentionFacts) -> MeasuredFigure {
    let unit = FigureUnit::GigabytesPerSecond;
    let (direction, alone) = (facts.direction.words(), facts.alone_gbps);
    let what = match facts.load {
        ContentionLoad::Nothing => {
            return MeasuredFigure::fact(
                "contention",
                format!("pinned {direction} copies with nothing else running"),
                facts.gbps,
                unit,
            );
        }
        load => format!(
            "pinned {direction} copies {} ({}; alone {alone:.1} GB/s)",
            load.while_it_runs(facts.direction),
            slower(facts.slowdown)
        ),
    };
    if facts.others_gbps.is_empty() {
        return MeasuredFigure::fact("contention", what, facts.gbps, unit);
    }
    let shares: Vec<String> = facts.shares().iter().map(|share| format!("{:.0}%", 100.0 * share)).collect();
    let what = format!("{what}, total; shares {}", shares.join(", "));
    MeasuredFigure::fact("contention", what, facts.total_gbps(), unit)
}

/// Differences below this are within the noise of a measurement.
const NOISE: f64 = 0.01;

fn slower(slowdown: f64) -> String {
    if slowdown < 1.0 + NOISE { "not slower".to_owned() } else { format!("{slowdown:.2}x as long") }
}

impl fmt::Display for ContentionTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "contention: {} {}", self.direction.words(), self.load.while_it_runs(self.direction))
    }
}

impl SuiteCase for ContentionCase {
    fn series(&self) -> Vec<&[u64]> {
        std::iter::once(&self.ns)
            .chain(self.others.iter().map(|other| &other.ns))
            .map(Vec::as_slice)
            .collect()
    }

    fn verified(&self) -> Option<bool> {
        Some(self.verified)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::H200;
    use super::*;

    fn case(load: ContentionLoad, ns: u64, others: &[u64]) -> ContentionCase {
        let task = ContentionTask { load, direction: Direction::H2d, bytes: 1_000_000 };
        let other = |ns: &u64| OtherCopies { copies: 1, ns: vec![*ns] };
        let others = others.iter().map(other).collect();
        ContentionCase { task, copies: 1, ns: vec![ns], others, verified: true }
    }

    fn kept(cases: &[ContentionCase]) -> MachineProfile {
        let mut profile = MachineProfile::default();
        let cases: Vec<&ContentionCase> = cases.iter().collect();
        ContentionTask::keep(&cases, &Identity::default(), &mut profile);
        profile
    }

    #[test]
    fn slowdowns_are_against_the_same_copies_alone() {
        let cases = [
            case(ContentionLoad::Nothing, 20_000, &[]),
            case(ContentionLoad::MemoryKernel, 25_000, &[]),
            case(ContentionLoad::SecondProcess, 50_000, &[30_000]),
        ];
        let profile = kept(&cases);
        let [alone, kernel, second] = &profile.contention[..] else { panic!("{profile:?}") };
        assert_eq!((alone.gbps, alone.slowdown), (50.0, 1.0));
        assert_eq!((kernel.gbps, kernel.slowdown, kernel.total_gbps()), (40.0, 1.25, 40.0));
        assert_eq!((second.slowdown, second.total_gbps()), (2.5, 53.333));
        let shares = second.shares();
        assert!((shares[0] - 0.375).abs() < 1e-4 && (shares[1] - 0.625).abs() < 1e-4, "{shares:?}");
        assert_eq!(
            figure(second).what,
            "pinned H2D copies while a second process does the same on this GPU (2.50x as long; alone 50.0 GB/s), total; shares 38%, 62%"
        );
    }

    #[test]
    fn without_a_baseline_nothing_is_kept() {
        assert!(kept(&[case(ContentionLoad::MemoryKernel, 25_000, &[])]).contention.is_empty());
    }

    #[test]
    fn one_gpu_leaves_out_what_needs_several() {
        let four = Limits { gpus: 4, ..H200 };
        let loads = |limits: &Limits| ContentionTask::plan(Mode::Quick, limits).len();
        assert_eq!((loads(&H200), loads(&four)), (2 * 5, 2 * 8));
        assert!(ContentionTask::left_out(Mode::Quick, &H200).is_some());
        assert_eq!(ContentionTask::left_out(Mode::Quick, &four), None);
    }
}
