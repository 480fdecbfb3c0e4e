//! Which suites exist, and what does each measure? One file per suite; [`suites!`] is the registry.
//!
//! A suite is a task type that implements [`BenchSuite`]: what to run, what the profile stores, and which figures have
//! an expected value. The `gpu` crate runs its tasks, in a file with the same name.

mod all_reduce;
mod contention;
mod copy;
mod double_buffer;
mod duplex;
mod hbm;
mod latency;
mod numa;
mod offload;
mod overlap;
mod peer_to_peer;
mod power;
mod profiler;
mod scatter;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::figures::MeasuredFigure;
use super::identity::Identity;
use super::plan::{Limits, Mode};
use super::statistics::Spread;
use crate::bench::terms::Direction;
use crate::catalog;
use crate::link::{PcieLink, REACHED_BY_LARGE_COPIES};
use crate::profile::{MachineProfile, MeasuredCurve};
use crate::resolve::C2C_NAME;

pub use all_reduce::{AllReduceCase, AllReduceTask};
pub use contention::{ContentionCase, ContentionTask, OtherCopies};
pub use copy::{CopyCase, CopyTask, PAGEABLE_H2D, PINNED_D2H, PINNED_H2D};
pub use double_buffer::{DoubleBufferCase, DoubleBufferTask};
pub use duplex::{DuplexCase, DuplexTask};
pub use hbm::{HbmCase, HbmTask};
pub use latency::{LatencyCase, LatencyTask};
pub use numa::{NumaCase, NumaTask};
pub use offload::{OffloadCase, OffloadTask};
pub use overlap::{OverlapCase, OverlapTask};
pub use peer_to_peer::{PeerToPeerCase, PeerToPeerTask};
pub use power::{PowerCase, PowerSample, PowerTask};
pub use profiler::{ProfilerCase, ProfilerTask, RecordedCall, RecordedLoop};
pub use scatter::{FEWEST_BLOCKS, MOST_BLOCKS, ScatterCase, ScatterTask, ScatterTimes};

/// A suite, implemented by its task type. [`fmt::Display`] is the progress text.
pub trait BenchSuite: Registered + fmt::Display + Copy {
    /// The name on the command line.
    const NAME: &'static str;
    /// When it runs.
    const PHASE: Phase;
    /// Where its figures appear in the output.
    const TOPIC: Topic;

    /// Everything that it measures within these limits.
    fn plan(mode: Mode, limits: &Limits) -> Vec<Self>;

    /// Why the suite, or a part of it, is skipped within these limits.
    fn left_out(_mode: Mode, _limits: &Limits) -> Option<&'static str> {
        None
    }

    /// Adds these cases to the profile; cases with wrong data are already removed.
    fn keep(_cases: &[&Self::Case], _identity: &Identity, _profile: &mut MachineProfile) {}

    /// The figures in the output.
    fn figures(_evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        Vec::new()
    }
}

/// One task with the times of its repetitions, in nanoseconds.
pub trait SuiteCase {
    /// All of its series of times.
    fn series(&self) -> Vec<&[u64]>;

    /// Whether the data was correct; `None` if none was moved.
    fn verified(&self) -> Option<bool> {
        None
    }
}

/// What the registry generates for each suite.
pub trait Registered: Sized {
    type Case: SuiteCase + 'static;
    const SUITE: Suite;

    fn of(case: &Case) -> Option<&Self::Case>;
    fn into_task(self) -> Task;
}

/// Suites that others depend on run first, suites that heat the GPU late. Suites that attach something to the process, or start
/// another one, run last, and only if they are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Basis,
    Pattern,
    Heat,
    Intrusive,
}

/// The topic of a suite's figures, in output order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    Bus,
    DeviceMemory,
    Power,
    Latency,
    Peers,
    Contention,
    Recording,
}

/// A suite in the registry.
#[derive(Debug, Clone, Copy)]
struct Declaration {
    name: &'static str,
    phase: Phase,
    topic: Topic,
    plan: fn(Mode, &Limits) -> Vec<Task>,
    left_out: fn(Mode, &Limits) -> Option<&'static str>,
    keep: fn(&[Case], &Identity, &mut MachineProfile),
    figures: fn(&Evidence<'_>) -> Vec<MeasuredFigure>,
}

impl Declaration {
    fn of<S: BenchSuite>() -> Self {
        Self {
            name: S::NAME,
            phase: S::PHASE,
            topic: S::TOPIC,
            plan: |mode, limits| S::plan(mode, limits).into_iter().map(S::into_task).collect(),
            left_out: S::left_out,
            keep: |cases, identity, profile| {
                let its: Vec<&S::Case> = cases
                    .iter()
                    .filter_map(S::of)
                    // A rate is meaningless if the data was wrong.
                    .filter(|case| case.verified() != Some(false))
                    .collect();
                S::keep(&its, identity, profile);
            },
            figures: S::figures,
        }
    }
}

/// Generates the enums of suites, tasks and cases from one list. A samples file names cases by their variant in snake
/// case.
macro_rules! suites {
    ($($suite:ident($task:ident, $case:ident),)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum Suite {
            $($suite,)*
        }

        /// One thing to measure.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Task {
            $($suite($task),)*
        }

        /// A task with the times of its repetitions, in nanoseconds.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "suite", rename_all = "snake_case")]
        pub enum Case {
            $($suite($case),)*
        }

        impl Suite {
            pub const ALL: &[Self] = &[$(Self::$suite,)*];

            fn declaration(self) -> Declaration {
                match self {
                    $(Self::$suite => Declaration::of::<$task>(),)*
                }
            }
        }

        impl Task {
            pub fn suite(&self) -> Suite {
                match self {
                    $(Self::$suite(_) => Suite::$suite,)*
                }
            }
        }

        /// The progress text.
        impl fmt::Display for Task {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$suite(task) => task.fmt(f),)*
                }
            }
        }

        impl Case {
            pub fn suite(&self) -> Suite {
                match self {
                    $(Self::$suite(_) => Suite::$suite,)*
                }
            }

            fn measured(&self) -> &dyn SuiteCase {
                match self {
                    $(Self::$suite(case) => case,)*
                }
            }
        }

        $(
            impl Registered for $task {
                type Case = $case;
                const SUITE: Suite = Suite::$suite;

                fn of(case: &Case) -> Option<&$case> {
                    match case {
                        Case::$suite(case) => Some(case),
                        _ => None,
                    }
                }

                fn into_task(self) -> Task {
                    Task::$suite(self)
                }
            }

            impl From<$case> for Case {
                fn from(case: $case) -> Self {
                    Self::$suite(case)
                }
            }
        )*
    };
}

// The registry, in display order.
suites! {
    Copy(CopyTask, CopyCase),
    Duplex(DuplexTask, DuplexCase),
    Numa(NumaTask, NumaCase),
    PeerToPeer(PeerToPeerTask, PeerToPeerCase),
    Latency(LatencyTask, LatencyCase),
    Overlap(OverlapTask, OverlapCase),
    DoubleBuffer(DoubleBufferTask, DoubleBufferCase),
    Offload(OffloadTask, OffloadCase),
    Scatter(ScatterTask, ScatterCase),
    AllReduce(AllReduceTask, AllReduceCase),
    Power(PowerTask, PowerCase),
    Hbm(HbmTask, HbmCase),
    Contention(ContentionTask, ContentionCase),
    Profiler(ProfilerTask, ProfilerCase),
}

impl Suite {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.declaration().name
    }

    /// The suites that run if none is named.
    pub fn by_default() -> Vec<Self> {
        let all = Self::ALL.iter().copied();
        all.filter(|suite| suite.declaration().phase < Phase::Intrusive).collect()
    }

    /// Why the suite, or a part of it, is skipped within these limits.
    pub fn left_out(self, mode: Mode, limits: &Limits) -> Option<&'static str> {
        (self.declaration().left_out)(mode, limits)
    }
}

impl Case {
    /// Whether the data was correct; `None` if none was moved.
    pub fn verified(&self) -> Option<bool> {
        self.measured().verified()
    }

    pub(super) fn series(&self) -> Vec<&[u64]> {
        self.measured().series()
    }
}

/// Everything to measure, in the best order.
pub fn tasks(mode: Mode, suites: &[Suite], limits: &Limits) -> Vec<Task> {
    let mut order = suites.to_vec();
    order.sort_by_key(|suite| (suite.declaration().phase, *suite));
    order.dedup();
    order.into_iter().flat_map(|suite| (suite.declaration().plan)(mode, limits)).collect()
}

/// Adds the results of all suites to the profile.
pub(super) fn keep_all(cases: &[Case], identity: &Identity, profile: &mut MachineProfile) {
    for suite in Suite::ALL {
        (suite.declaration().keep)(cases, identity, profile);
    }
}

/// The figures of every suite, in output order.
pub(super) fn figures_of_all(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
    let mut order = Suite::ALL.to_vec();
    order.sort_by_key(|suite| (suite.declaration().topic, *suite));
    order.into_iter().flat_map(|suite| (suite.declaration().figures)(evidence)).collect()
}

/// The input for figures and their expected values.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    pub identity: &'a Identity,
    pub profile: &'a MachineProfile,
    pub cases: &'a [Case],
}

/// At this size the fixed cost of a copy no longer matters.
const LARGE_COPY: u64 = 16 << 20;

impl Evidence<'_> {
    /// The link that the GPU should have and its peak in GB/s: from its data sheet, else from the maximum that both
    /// ends report; `None` if neither is known.
    fn due_link(&self) -> Option<(String, f64)> {
        Some(match catalog::gpu_of_name(&self.profile.gpu) {
            Some(gpu) => match gpu.c2c {
                Some(c2c) => (C2C_NAME.to_owned(), c2c.peak_gbps),
                None => (gpu.pcie.name(), gpu.pcie.peak_gbps()),
            },
            None => {
                let seen = self.identity.link.filter(|seen| seen.max_generation > 0 && seen.max_lanes > 0)?;
                let generation = u8::try_from(seen.max_generation).ok()?;
                let link = PcieLink { generation, lanes: u8::try_from(seen.max_lanes).ok()? };
                (link.name(), link.peak_gbps())
            }
        })
    }
}

impl Evidence<'_> {
    /// What large pinned copies in this direction should reach, and where that comes from.
    fn due_copies(&self, direction: Direction) -> Option<(f64, String)> {
        if let Some(c2c) = catalog::gpu_of_name(&self.profile.gpu).and_then(|gpu| gpu.c2c) {
            let reached = match direction {
                Direction::H2d => c2c.h2d_gbps,
                Direction::D2h => c2c.d2h_gbps,
            };
            return Some((reached, format!("what others measured on {C2C_NAME}")));
        }
        let (link, peak) = self.due_link()?;
        let from = format!("{:.0}% of the {peak:.1} GB/s of {link}", 100.0 * REACHED_BY_LARGE_COPIES);
        Some((REACHED_BY_LARGE_COPIES * peak, from))
    }
}

/// The rate that large copies reach; `None` if only small copies were measured.
fn plateau_of_large(curve: &MeasuredCurve) -> Option<f64> {
    let large = curve.points.iter().filter(|point| point.bytes >= LARGE_COPY).map(|point| point.gbps);
    large.max_by(f64::total_cmp)
}

/// Median GB/s of repetitions that each moved this many bytes.
fn median_gbps(ns: &[u64], bytes: u64) -> Option<f64> {
    Spread::of_rates(ns, bytes).map(|rate| five_digits(rate.median))
}

/// Clocks are not more precise, and people read the profile too.
fn five_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::plan::NodeSet;

    pub(super) const H200: Limits =
        Limits { gpus: 1, largest: 1 << 30, managed: true, nodes: NodeSet::EMPTY };

    /// A machine on which everything can be measured.
    fn four() -> Limits {
        Limits { gpus: 4, nodes: NodeSet::of([0, 1]), ..H200 }
    }

    #[test]
    fn suites_that_others_depend_on_run_first_and_suites_that_disturb_others_run_last() {
        let four = four();
        let mut reversed = Suite::ALL.to_vec();
        reversed.reverse();
        let mut order: Vec<Suite> = tasks(Mode::Quick, &reversed, &four).iter().map(Task::suite).collect();
        order.dedup();
        use Suite::*;
        let basis = [Copy, Duplex, Latency, Hbm];
        let patterns = [Numa, PeerToPeer, Overlap, DoubleBuffer, Offload, Scatter, AllReduce];
        let expected = [&basis[..], &patterns, &[Power, Contention, Profiler]].concat();
        assert_eq!(order, expected);
        let by_default = Suite::by_default();
        assert!(!by_default.contains(&Profiler) && !by_default.contains(&Contention));
        assert!(by_default.contains(&Power) && by_default.contains(&Numa));
        // A suite that is requested twice runs once.
        let twice = tasks(Mode::Quick, &[Suite::Power, Suite::Power], &H200);
        assert_eq!(twice, tasks(Mode::Quick, &[Suite::Power], &H200));
    }

    /// Tasks know their suite, and suite names are unique.
    #[test]
    fn every_suite_plans_its_own_tasks_under_a_unique_name() {
        let four = four();
        for suite in Suite::ALL {
            for mode in [Mode::Quick, Mode::Full] {
                let tasks = tasks(mode, &[*suite], &four);
                assert!(!tasks.is_empty() && tasks.iter().all(|task| task.suite() == *suite), "{suite:?}");
                assert!(tasks.iter().all(|task| task.to_string().starts_with(suite.name())), "{suite:?}");
            }
            assert_eq!(Suite::ALL.iter().filter(|other| other.name() == suite.name()).count(), 1);
        }
    }

    #[test]
    fn figures_are_rounded_to_five_digits() {
        assert_eq!(five_digits(55.412_345), 55.412);
        assert_eq!(five_digits(4_187.654_3), 4187.7);
        assert_eq!(five_digits(0.0), 0.0);
    }
}
