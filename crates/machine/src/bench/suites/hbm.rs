//! How fast is device memory?

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Evidence, Phase, SuiteCase, Topic, median_gbps};
use crate::bench::figures::{Cause, FigureUnit, MeasuredFigure};
use crate::bench::identity::Identity;
use crate::bench::plan::{Limits, MIB, Mode};
use crate::bench::terms::Engine;
use crate::catalog::gpu_of_name;
use crate::profile::{HbmFacts, MachineProfile};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HbmTask {
    pub bytes: u64,
    pub engine: Engine,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HbmCase {
    #[serde(flatten)]
    pub task: HbmTask,
    pub copies: u32,
    pub ns: Vec<u64>,
    pub verified: bool,
}

/// Share of the data sheet's memory rate that a D2D copy reaches (H200: 4187 of 4800).
const HBM_REACHED: f64 = 0.87;
/// Buffers of this size are several times the largest cache.
const BEYOND_CACHES: u64 = 256 << 20;

impl BenchSuite for HbmTask {
    const NAME: &'static str = "hbm";
    const PHASE: Phase = Phase::Basis;
    const TOPIC: Topic = Topic::DeviceMemory;

    fn plan(_mode: Mode, limits: &Limits) -> Vec<Self> {
        let bytes = (512 * MIB).min(limits.largest);
        [Engine::CopyEngine, Engine::Kernel].map(|engine| Self { bytes, engine }).to_vec()
    }

    fn keep(cases: &[&HbmCase], _identity: &Identity, profile: &mut MachineProfile) {
        profile.hbm.extend(cases.iter().filter_map(|case| {
            let HbmTask { bytes, engine } = case.task;
            // Each byte is read once and written once.
            let gbps = median_gbps(&case.ns, 2 * bytes * u64::from(case.copies))?;
            Some(HbmFacts { engine, bytes, gbps })
        }));
    }

    fn figures(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        let profile = evidence.profile;
        let unit = FigureUnit::GigabytesPerSecond;
        let Some(best) = profile.hbm.iter().max_by(|a, b| a.gbps.total_cmp(&b.gbps)) else {
            return Vec::new();
        };
        let what = "D2D copies, bytes read plus written";
        let figure = MeasuredFigure::fact("hbm", what, best.gbps, unit);
        let mut figures = vec![match gpu_of_name(&profile.gpu) {
            // Smaller buffers may stay in a cache.
            Some(gpu) if best.bytes >= BEYOND_CACHES => {
                let from = format!(
                    "{:.0}% of the {:.0} GB/s in the data sheet",
                    100.0 * HBM_REACHED,
                    gpu.memory_gbps
                );
                figure.judged(HBM_REACHED * gpu.memory_gbps, from, || causes(evidence.identity))
            }
            _ => figure,
        }];
        let by = |engine: Engine| profile.hbm.iter().find(|one| one.engine == engine);
        if let (Some(_), Some(kernel)) = (by(Engine::CopyEngine), by(Engine::Kernel)) {
            figures.push(MeasuredFigure::fact(
                "hbm_kernel",
                "D2D copies by a kernel, bytes read plus written",
                kernel.gbps,
                unit,
            ));
        }
        figures
    }
}

fn causes(identity: &Identity) -> Vec<Cause> {
    let mut causes = vec![
        Cause::likely(
            "another process on the GPU",
            "`nvidia-smi` lists processes; repeat the benchmark when the GPU is idle",
        ),
        Cause::likely(
            "throttled memory clocks",
            "run `nvidia-smi -q -d CLOCK,PERFORMANCE` during the benchmark",
        ),
    ];
    if identity.memory_bytes > 0 {
        causes.push(Cause::likely(
            "ECC on a card where it costs bandwidth, or a slice of a GPU (MIG)",
            "run `nvidia-smi -q -d ECC` and `nvidia-smi -L`",
        ));
    }
    causes
}

impl fmt::Display for HbmTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("hbm: device memory")
    }
}

impl SuiteCase for HbmCase {
    fn series(&self) -> Vec<&[u64]> {
        vec![&self.ns]
    }

    fn verified(&self) -> Option<bool> {
        Some(self.verified)
    }
}
