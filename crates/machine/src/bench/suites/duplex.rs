//! What rate do both directions reach at the same time, and how much does each slow down the other?

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Evidence, LARGE_COPY, Phase, SuiteCase, Topic, median_gbps, plateau_of_large};
use crate::bench::figures::{Cause, FigureUnit, MeasuredFigure};
use crate::bench::identity::Identity;
use crate::bench::plan::{Limits, MIB, Mode};
use crate::bench::terms::{Direction, Memory};
use crate::profile::{DuplexFacts, MachineProfile};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DuplexTask {
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DuplexCase {
    #[serde(flatten)]
    pub task: DuplexTask,
    pub copies: u32,
    /// From the common start of both directions to the end of the later one.
    pub together_ns: Vec<u64>,
    /// `copies` H2D copies while D2H is busy throughout.
    pub h2d_loaded_ns: Vec<u64>,
    pub d2h_loaded_ns: Vec<u64>,
    pub verified: bool,
}

/// Share of the sum of the separate rates that both directions reach at the same time (PCIe 5 x16: 100.8 of 110.7).
const DUPLEX_REACHED: f64 = 0.90;

impl BenchSuite for DuplexTask {
    const NAME: &'static str = "duplex";
    const PHASE: Phase = Phase::Basis;
    const TOPIC: Topic = Topic::Bus;

    fn plan(_mode: Mode, limits: &Limits) -> Vec<Self> {
        vec![Self { bytes: (256 * MIB).min(limits.largest / 2) }]
    }

    fn keep(cases: &[&DuplexCase], _identity: &Identity, profile: &mut MachineProfile) {
        // The last measurement counts.
        profile.duplex = cases.last().and_then(|case| {
            let moved = case.task.bytes * u64::from(case.copies);
            Some(DuplexFacts {
                bytes: case.task.bytes,
                together_gbps: median_gbps(&case.together_ns, 2 * moved)?,
                h2d_loaded_gbps: median_gbps(&case.h2d_loaded_ns, moved)?,
                d2h_loaded_gbps: median_gbps(&case.d2h_loaded_ns, moved)?,
            })
        });
    }

    fn figures(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        let profile = evidence.profile;
        let Some(duplex) = &profile.duplex else { return Vec::new() };
        let figure = MeasuredFigure::fact(
            "duplex",
            "H2D and D2H at the same time, total",
            duplex.together_gbps,
            FigureUnit::GigabytesPerSecond,
        );
        let alone: Option<f64> = [Direction::H2d, Direction::D2h]
            .map(|direction| profile.copies(direction, Memory::Pinned).and_then(plateau_of_large))
            .into_iter()
            .sum();
        vec![match alone {
            Some(alone) if duplex.bytes >= LARGE_COPY => {
                let from = format!("{:.0}% of the sum of the separate rates", 100.0 * DUPLEX_REACHED);
                figure.judged(DUPLEX_REACHED * alone, from, || causes(evidence.identity))
            }
            _ => figure,
        }]
    }
}

fn causes(identity: &Identity) -> Vec<Cause> {
    let mut causes = vec![
        Cause::likely(
            "host memory cannot sustain reads and writes at this rate",
            "run `busbound bench --suite duplex` bound to each NUMA node",
        ),
        Cause::translating_iommu(),
    ];
    if identity.virtual_machine == Some(true) {
        causes.push(Cause::likely("a virtual machine's path to memory", "measure on the host"));
    }
    causes
}

impl fmt::Display for DuplexTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("duplex: both directions")
    }
}

impl SuiteCase for DuplexCase {
    fn series(&self) -> Vec<&[u64]> {
        vec![&self.together_ns, &self.h2d_loaded_ns, &self.d2h_loaded_ns]
    }

    fn verified(&self) -> Option<bool> {
        Some(self.verified)
    }
}
