//! Which suites are there, and what does each measure? One file a suite; [`suites!`] is the registry.
//!
//! A suite is the type of its tasks with [`BenchSuite`] implemented: what to run, what the profile keeps of the
//! times, and which figures are judged. The `gpu` crate runs its tasks, in a file of the same name.

mod all_reduce;
mod copy;
mod double_buffer;
mod duplex;
mod hbm;
mod latency;
mod offload;
mod overlap;
mod peer_to_peer;
mod power;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::figures::MeasuredFigure;
use super::identity::Identity;
use super::plan::{Limits, Mode};
use super::statistics::Spread;
use crate::catalog;
use crate::link::PcieLink;
use crate::profile::{MachineProfile, MeasuredCurve};

pub use all_reduce::{AllReduceCase, AllReduceTask};
pub use copy::{CopyCase, CopyTask, PAGEABLE_H2D, PINNED_D2H, PINNED_H2D};
pub use double_buffer::{DoubleBufferCase, DoubleBufferTask};
pub use duplex::{DuplexCase, DuplexTask};
pub use hbm::{HbmCase, HbmTask};
pub use latency::{LatencyCase, LatencyTask};
pub use offload::{OffloadCase, OffloadTask};
pub use overlap::{OverlapCase, OverlapTask};
pub use peer_to_peer::{PeerToPeerCase, PeerToPeerTask};
pub use power::{PowerCase, PowerSample, PowerTask};

/// What a suite says of itself, as the type of its tasks. [`fmt::Display`] is what people who wait read.
pub trait BenchSuite: Registered + fmt::Display + Copy {
    /// As it is given on the command line.
    const NAME: &'static str;
    /// When it is measured.
    const PHASE: Phase;
    /// Where its figures appear in the answer.
    const TOPIC: Topic;

    /// Everything that it measures on such a machine.
    fn plan(mode: Mode, limits: &Limits) -> Vec<Self>;

    /// Why it, or a part of it, is left out on such a machine.
    fn left_out(_mode: Mode, _limits: &Limits) -> Option<&'static str> {
        None
    }

    /// Adds what the profile keeps of these cases, none of which got wrong data.
    fn keep(_cases: &[&Self::Case], _identity: &Identity, _profile: &mut MachineProfile) {}

    /// The figures that the answer judges.
    fn figures(_evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        Vec::new()
    }
}

/// One task with the times of its repetitions, in nanoseconds.
pub trait SuiteCase {
    /// Every series of times that it holds.
    fn series(&self) -> Vec<&[u64]>;

    /// Whether the data arrived; `None` where none was moved.
    fn verified(&self) -> Option<bool> {
        None
    }
}

/// What the registry knows of a suite.
pub trait Registered: Sized {
    type Case: SuiteCase + 'static;
    const SUITE: Suite;

    fn of(case: &Case) -> Option<&Self::Case>;
    fn into_task(self) -> Task;
}

/// What other suites rest on is measured first, what heats the GPU last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Basis,
    Pattern,
    Heat,
}

/// What a suite's figures are about, in the order of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    Bus,
    DeviceMemory,
    Power,
    Latency,
    Peers,
}

/// A suite as the registry hands it out.
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
                    // Data that did not arrive says nothing of how fast it was.
                    .filter(|case| case.verified() != Some(false))
                    .collect();
                S::keep(&its, identity, profile);
            },
            figures: S::figures,
        }
    }
}

/// Makes the enums of suites, of tasks and of cases from one list. The names of cases in a file of samples are those
/// of the variants in snake case.
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

        /// What is measured now, for people who wait.
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

// The registry, in the order in which suites are listed for people.
suites! {
    Copy(CopyTask, CopyCase),
    Duplex(DuplexTask, DuplexCase),
    PeerToPeer(PeerToPeerTask, PeerToPeerCase),
    Latency(LatencyTask, LatencyCase),
    Overlap(OverlapTask, OverlapCase),
    DoubleBuffer(DoubleBufferTask, DoubleBufferCase),
    Offload(OffloadTask, OffloadCase),
    AllReduce(AllReduceTask, AllReduceCase),
    Power(PowerTask, PowerCase),
    Hbm(HbmTask, HbmCase),
}

impl Suite {
    /// As it is given on the command line.
    pub fn name(self) -> &'static str {
        self.declaration().name
    }

    /// Why it, or a part of it, is left out on such a machine.
    pub fn left_out(self, mode: Mode, limits: &Limits) -> Option<&'static str> {
        (self.declaration().left_out)(mode, limits)
    }
}

impl Case {
    /// Whether the data arrived; `None` where none was moved.
    pub fn verified(&self) -> Option<bool> {
        self.measured().verified()
    }

    pub(super) fn series(&self) -> Vec<&[u64]> {
        self.measured().series()
    }
}

/// Everything to measure, in the order in which it is best measured.
pub fn tasks(mode: Mode, suites: &[Suite], limits: &Limits) -> Vec<Task> {
    let mut order = suites.to_vec();
    order.sort_by_key(|suite| (suite.declaration().phase, *suite));
    order.dedup();
    order.into_iter().flat_map(|suite| (suite.declaration().plan)(mode, limits)).collect()
}

/// Fills in what each suite's cases come to.
pub(super) fn keep_all(cases: &[Case], identity: &Identity, profile: &mut MachineProfile) {
    for suite in Suite::ALL {
        (suite.declaration().keep)(cases, identity, profile);
    }
}

/// The figures of every suite, in the order of the answer.
pub(super) fn figures_of_all(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
    let mut order = Suite::ALL.to_vec();
    order.sort_by_key(|suite| (suite.declaration().topic, *suite));
    order.into_iter().flat_map(|suite| (suite.declaration().figures)(evidence)).collect()
}

/// What figures are judged by.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    pub identity: &'a Identity,
    pub profile: &'a MachineProfile,
    pub cases: &'a [Case],
}

/// Copies of this size no longer feel what each costs besides its bytes.
const LARGE_COPY: u64 = 16 << 20;

impl Evidence<'_> {
    /// The link that the GPU should have and its peak in GB/s: by its data sheet, else by what both ends say they
    /// can; `None` where neither is known.
    fn due_link(&self) -> Option<(String, f64)> {
        Some(match catalog::gpu_of_name(&self.profile.gpu) {
            Some(gpu) if gpu.c2c_gbps > 0.0 => ("NVLink-C2C".to_owned(), gpu.c2c_gbps),
            Some(gpu) => (gpu.pcie.name(), gpu.pcie.peak_gbps()),
            None => {
                let seen = self.identity.link.filter(|seen| seen.max_generation > 0 && seen.max_lanes > 0)?;
                let generation = u8::try_from(seen.max_generation).ok()?;
                let link = PcieLink { generation, lanes: u8::try_from(seen.max_lanes).ok()? };
                (link.name(), link.peak_gbps())
            }
        })
    }
}

/// What the largest copies reach; `None` where only small ones were made.
fn plateau_of_large(curve: &MeasuredCurve) -> Option<f64> {
    let large = curve.points.iter().filter(|point| point.bytes >= LARGE_COPY).map(|point| point.gbps);
    large.max_by(f64::total_cmp)
}

/// GB/s of copies that each moved this many bytes, in the middle.
fn median_gbps(ns: &[u64], bytes: u64) -> Option<f64> {
    Spread::of_rates(ns, bytes).map(|rate| five_digits(rate.median))
}

/// No clock tells more, and the profile is for people too.
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

    /// A machine with all there is to measure.
    pub(super) const H200: Limits = Limits { gpus: 1, largest: 1 << 30, managed: true };

    #[test]
    fn what_others_rest_on_is_measured_first_and_heat_comes_last() {
        let four = Limits { gpus: 4, ..H200 };
        let mut reversed = Suite::ALL.to_vec();
        reversed.reverse();
        let mut order: Vec<Suite> = tasks(Mode::Quick, &reversed, &four).iter().map(Task::suite).collect();
        order.dedup();
        use Suite::*;
        let expected =
            [Copy, Duplex, Latency, Hbm, PeerToPeer, Overlap, DoubleBuffer, Offload, AllReduce, Power];
        assert_eq!(order, expected);
        // A suite that is asked for twice is measured once.
        let twice = tasks(Mode::Quick, &[Suite::Power, Suite::Power], &H200);
        assert_eq!(twice, tasks(Mode::Quick, &[Suite::Power], &H200));
    }

    /// A new suite's tasks say which suite they are of, and no two suites share a name.
    #[test]
    fn every_suite_plans_tasks_of_its_own_under_a_name_of_its_own() {
        let four = Limits { gpus: 4, ..H200 };
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
    fn figures_keep_five_digits() {
        assert_eq!(five_digits(55.412_345), 55.412);
        assert_eq!(five_digits(4_187.654_3), 4187.7);
        assert_eq!(five_digits(0.0), 0.0);
    }
}
