//! What rate does an all-reduce reach, over all GPUs of one process or of several processes with one each?

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Evidence, Phase, SuiteCase, Topic, five_digits};
use crate::bench::figures::{FigureUnit, MeasuredFigure};
use crate::bench::identity::Identity;
use crate::bench::plan::{KIB, Limits, MIB, Mode};
use crate::bench::statistics::Spread;
use crate::profile::{AllReduceFacts, MachineProfile, Processes};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllReduceTask {
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AllReduceCase {
    pub ranks: u32,
    #[serde(default, skip_serializing_if = "Processes::is_one")]
    pub processes: Processes,
    #[serde(flatten)]
    pub task: AllReduceTask,
    /// Of several processes, each time is that of the slowest one.
    pub ns: Vec<u64>,
    pub verified: bool,
    pub library: String,
}

impl BenchSuite for AllReduceTask {
    const NAME: &'static str = "allreduce";
    const PHASE: Phase = Phase::Pattern;
    const TOPIC: Topic = Topic::Peers;

    fn plan(mode: Mode, limits: &Limits) -> Vec<Self> {
        let sizes: &[u64] = match mode {
            Mode::Quick => &[64 * MIB],
            Mode::Full => &[64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB],
        };
        sizes.iter().map(|bytes| Self { bytes: (*bytes).min(limits.largest / 2) }).collect()
    }

    fn keep(cases: &[&AllReduceCase], _identity: &Identity, profile: &mut MachineProfile) {
        profile.allreduce.extend(cases.iter().filter_map(|case| {
            let algbw = Spread::of_rates(&case.ns, case.task.bytes)?.median;
            let exchanged = 2.0 * f64::from(case.ranks.saturating_sub(1)) / f64::from(case.ranks);
            Some(AllReduceFacts {
                ranks: case.ranks,
                processes: case.processes,
                bytes: case.task.bytes,
                algbw_gbps: five_digits(algbw),
                busbw_gbps: five_digits(algbw * exchanged),
            })
        }));
    }

    fn figures(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        let largest = evidence.profile.allreduce.iter().max_by_key(|one| one.bytes);
        largest.map(figure).into_iter().collect()
    }
}

fn figure(largest: &AllReduceFacts) -> MeasuredFigure {
    let unit = FigureUnit::GigabytesPerSecond;
    if largest.ranks == 1 {
        let what = "all-reduce with one rank (no data is exchanged; this only checks that NCCL works)";
        MeasuredFigure::fact("allreduce_algbw", what, largest.algbw_gbps, unit)
    } else {
        let gpus = largest.ranks;
        let what = match largest.processes {
            Processes::One => format!("all-reduce over {gpus} GPUs, bus bandwidth"),
            Processes::OnePerGpu { nodes: 1 } => {
                format!("all-reduce over {gpus} GPUs, one process each, bus bandwidth")
            }
            Processes::OnePerGpu { nodes } => {
                format!("all-reduce over {gpus} GPUs on {nodes} nodes, one process each, bus bandwidth")
            }
        };
        MeasuredFigure::fact("allreduce_busbw", what, largest.busbw_gbps, unit)
    }
}

impl fmt::Display for AllReduceTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "allreduce: {} bytes", self.bytes)
    }
}

impl SuiteCase for AllReduceCase {
    fn series(&self) -> Vec<&[u64]> {
        vec![&self.ns]
    }

    fn verified(&self) -> Option<bool> {
        Some(self.verified)
    }
}
