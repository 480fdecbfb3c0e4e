//! What is worth keeping of one rank? A few kilobytes that stand for its diagnosis when ranks are laid side by side.

use busbound_diagnosis::{Diagnosis, GapCause, RankedAs, Saving, Unit, Verdict};
use busbound_trace::{Direction, MemoryKind};
use serde::{Deserialize, Serialize};

use crate::host::host_in_name;
use crate::name::{FindingName, RankName};
use crate::sketch::StepSketch;

pub const RANK_SCHEMA: &str = "busbound.rank/1";

/// No job has more ranks; a larger number in a trace is damage.
pub(crate) const LARGEST_WORLD: u32 = 1_000_000;

/// One rank. Times are milliseconds a step (or round, or trace: see `unit`), of several devices the mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankSummary {
    pub schema: String,
    /// `null` where neither the trace nor its name tells.
    pub rank: Option<RankedAs>,
    /// The machine it ran on, where the file's name or the user tells.
    pub host: Option<String>,
    pub path: String,
    /// Whether all of the file could be read.
    pub complete: bool,
    pub events: u64,
    /// GPUs it worked on.
    pub gpus: Vec<RankGpu>,
    /// GPUs that its trace lists, used or not.
    pub gpus_listed: usize,
    pub verdict: Verdict,
    pub unit: Unit,
    /// `null` where no steps are found.
    pub steps: Option<RankSteps>,
    pub time: Parts,
    /// Share of communication that compute ran beside, in percent; `null` without communication.
    pub comm_compute_pct_of_comm: Option<f64>,
    pub copies: Vec<RankCopies>,
    pub kernels: RankKernels,
    pub findings: Vec<RankFinding>,
    /// How many things its diagnosis says that it cannot tell.
    pub limitations: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankGpu {
    /// As its process counts them.
    pub device: i32,
    pub name: Option<String>,
    pub link: String,
    pub peak_gbps: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankSteps {
    pub count: usize,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub min_ms: f64,
    pub max_ms: f64,
    /// The lengths of all steps, of more than a thousand the first.
    pub lengths: StepSketch,
}

/// Where the device's time goes. All but `comm_ms` and `copy_ms` lie beside each other and add up to `span_ms`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Parts {
    /// From the first work of the device to the last.
    pub span_ms: f64,
    pub compute_ms: f64,
    /// Communication with no compute beside it.
    pub exposed_comm_ms: f64,
    /// Copies over the bus with no kernel beside them.
    pub exposed_copy_ms: f64,
    /// Copies within the device and memsets with nothing else beside them.
    pub device_copy_ms: f64,
    /// Copies of which the trace does not tell whether they cross the bus, with no other copy and no kernel beside them.
    #[serde(default)]
    pub unplaced_copy_ms: f64,
    pub idle_ms: f64,
    /// `idle_ms` by cause.
    pub idle: Vec<IdlePart>,
    /// All communication.
    pub comm_ms: f64,
    /// All copies.
    pub copy_ms: f64,
}

impl Parts {
    /// Time that the rank does not spend in communication alone: its own work, copies and idleness. Where ranks keep step, the
    /// one with most of it is the one that the others wait for.
    pub fn own_ms(&self) -> f64 {
        self.span_ms - self.exposed_comm_ms
    }

    pub fn idle_for(&self, cause: GapCause) -> f64 {
        self.idle.iter().find(|part| part.cause == cause).map_or(0.0, |part| part.ms)
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdlePart {
    pub cause: GapCause,
    pub ms: f64,
}

/// Copies that go the same way between the same kinds of memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankCopies {
    /// `H2D pageable`.
    pub kind: String,
    pub direction: Direction,
    pub src: MemoryKind,
    pub dst: MemoryKind,
    pub count: f64,
    pub bytes: f64,
    pub ms: f64,
    pub exposed_ms: f64,
    /// All bytes over all time; `null` where bytes are not told.
    pub gbps: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankKernels {
    pub count: f64,
    pub median_us: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankFinding {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub id: FindingName,
    pub title: String,
    pub saves_ms_per_step: Saving,
}

impl RankSummary {
    /// What is kept of a diagnosis.
    pub fn of(diagnosis: &Diagnosis) -> Self {
        let rounds = diagnosis.step_count();
        let each = rounds * diagnosis.devices.len().max(1) as f64;
        let steps = diagnosis.window.steps.as_ref();
        let gpu = |gpu: &busbound_diagnosis::GpuLink| RankGpu {
            device: gpu.device,
            name: gpu.name.clone(),
            link: gpu.link.name.clone(),
            peak_gbps: gpu.link.peak_gbps,
        };
        let copies = |group: &busbound_diagnosis::CopyGroup| RankCopies {
            kind: group.kind(),
            direction: group.direction,
            src: group.src,
            dst: group.dst,
            count: group.count as f64 / each,
            bytes: group.bytes as f64 / each,
            ms: group.total_ms / each,
            exposed_ms: group.exposed_ms / each,
            gbps: group.gbps.map(|rates| rates.weighted),
        };
        Self {
            schema: RANK_SCHEMA.to_owned(),
            rank: diagnosis.rank.clone(),
            host: host_in_name(&diagnosis.source.path).map(str::to_owned),
            path: diagnosis.source.path.clone(),
            complete: diagnosis.source.complete,
            events: diagnosis.source.events,
            gpus: diagnosis.machine.gpus.iter().map(gpu).collect(),
            gpus_listed: diagnosis.machine.listed,
            verdict: diagnosis.verdict.clone(),
            unit: diagnosis.unit(),
            steps: steps.map(|steps| RankSteps {
                count: steps.count,
                p50_ms: steps.p50_ms,
                p90_ms: steps.p90_ms,
                p99_ms: steps.p99_ms,
                min_ms: steps.min_ms,
                max_ms: steps.max_ms,
                lengths: StepSketch::of(&steps.each_ms),
            }),
            time: parts(diagnosis, each),
            comm_compute_pct_of_comm: diagnosis.overlap.comm_compute_pct_of_comm,
            copies: diagnosis.copies.iter().map(copies).collect(),
            kernels: RankKernels {
                count: diagnosis.launches.kernels as f64 / each,
                median_us: diagnosis.launches.median_kernel_us,
            },
            findings: diagnosis
                .findings
                .iter()
                .map(|finding| RankFinding {
                    id: FindingName::Known(finding.id),
                    title: finding.title.clone(),
                    saves_ms_per_step: finding.saves_ms_per_step,
                })
                .collect(),
            limitations: diagnosis.limitations.len(),
        }
    }

    /// `rank 5`, or the file's name where no rank is told.
    pub fn label(&self) -> RankName {
        match &self.rank {
            Some(rank) => RankName::Number(rank.rank),
            None => RankName::File(self.path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()),
        }
    }

    /// Whether its trace has events of a device; without, nothing of it can be compared.
    pub fn has_device(&self) -> bool {
        !self.gpus.is_empty()
    }

    /// The mean step, as its parts are means: only so do they add up to it.
    pub fn step_ms(&self) -> f64 {
        self.time.span_ms
    }

    /// Ranks of its job, where its trace tells a number that can be believed.
    pub fn world_size(&self) -> Option<u32> {
        self.rank.as_ref()?.world_size.filter(|world| *world <= LARGEST_WORLD)
    }

    /// Bytes over time of all host copies of a direction; `None` without any that tell their bytes.
    pub fn host_rate(&self, direction: Direction) -> Option<f64> {
        let told = self.copies.iter().filter(|copies| copies.direction == direction);
        let (bytes, ns) = told.fold((0.0, 0.0), |(bytes, ns), copies| match copies.gbps {
            Some(gbps) if gbps > 0.0 => (bytes + copies.bytes, ns + copies.bytes / gbps),
            _ => (bytes, ns),
        });
        (ns > 0.0).then(|| bytes / ns)
    }

    /// Bytes of all copies of a direction.
    pub fn bytes_of(&self, direction: Direction) -> f64 {
        self.copies.iter().filter(|copies| copies.direction == direction).map(|copies| copies.bytes).sum()
    }
}

fn parts(diagnosis: &Diagnosis, each: f64) -> Parts {
    let time = &diagnosis.time;
    let bus_and_unplaced = time.exposed_bus_copy_ms + time.exposed_unplaced_copy_ms;
    let others = time.compute_ms + time.exposed_comm_ms + bus_and_unplaced;
    Parts {
        span_ms: time.span_ms / each,
        compute_ms: time.compute_ms / each,
        exposed_comm_ms: time.exposed_comm_ms / each,
        exposed_copy_ms: time.exposed_bus_copy_ms / each,
        device_copy_ms: (time.busy_ms - others).max(0.0) / each,
        unplaced_copy_ms: time.exposed_unplaced_copy_ms / each,
        idle_ms: time.idle_ms / each,
        idle: diagnosis.idle.iter().map(|idle| IdlePart { cause: idle.cause, ms: idle.ms / each }).collect(),
        comm_ms: time.comm_ms / each,
        copy_ms: time.copy_ms / each,
    }
}
