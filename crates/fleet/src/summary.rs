//! What is worth keeping of one rank? A few kilobytes that replace its diagnosis when ranks are compared.

use busbound_diagnosis::{
    CollectiveTimes, CopyGroup, Diagnosis, FigureId, GpuLink, RankLanes, RankStage, RankedAs, Saving,
    StepTimes, StepsFound, Unit, Verdict, combined_gbps,
};
use busbound_trace::{Direction, Environment, MemoryKind};
use serde::{Deserialize, Serialize};

use crate::host::host_in_name;
use crate::name::{FindingName, RankName};
use crate::parts::Parts;
use crate::sketch::StepSketch;

pub const RANK_SCHEMA: &str = "busbound.rank/2";

/// No job has more ranks; a larger number in a trace is invalid.
pub(crate) const LARGEST_WORLD: u32 = 1_000_000;

/// One rank. Times are in milliseconds per step (or iteration, or trace: see `unit`), averaged over devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankSummary {
    pub schema: String,
    /// `null` if neither the trace nor its file name has it.
    pub rank: Option<RankedAs>,
    /// The machine it ran on, if known from the file name or the user.
    pub host: Option<String>,
    pub path: String,
    /// When it was recorded, in milliseconds since 1970; `null` if unknown.
    #[serde(default)]
    pub recorded_ms: Option<i64>,
    /// How long after it the next window of its process begins (`record --every`), in milliseconds; `null` if it is none of these.
    #[serde(default)]
    pub every_ms: Option<i64>,
    /// Whether the whole file could be read.
    pub complete: bool,
    pub events: u64,
    /// GPUs it used.
    pub gpus: Vec<RankGpu>,
    /// GPUs that its trace lists, used or not.
    pub gpus_listed: usize,
    /// Versions, variables, GPUs and CPUs of the process, as far as its trace has them.
    #[serde(default)]
    pub environment: Environment,
    pub verdict: Verdict,
    pub unit: Unit,
    /// `null` if no steps are found.
    pub steps: Option<RankSteps>,
    pub time: Parts,
    /// Percentage of communication overlapped with compute; `null` without communication.
    pub comm_compute_pct_of_comm: Option<f64>,
    pub copies: Vec<RankCopies>,
    pub kernels: RankKernels,
    /// Some of the collectives that all ranks have to arrive at, on its own clock.
    #[serde(default)]
    pub collective_times: CollectiveTimes,
    /// When it copied, exchanged data and computed in its first steps, on its own clock.
    #[serde(default)]
    pub lanes: RankLanes,
    /// The stages of a pipeline that it runs.
    #[serde(default)]
    pub stages: Vec<RankStage>,
    pub findings: Vec<RankFinding>,
    /// Number of limitations in its diagnosis.
    pub limitations: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankGpu {
    /// The device number in its process.
    pub device: i32,
    pub name: Option<String>,
    pub link: String,
    pub peak_gbps: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankSteps {
    pub count: usize,
    /// `null` in summaries of earlier releases.
    #[serde(default)]
    pub found: Option<StepsFound>,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p99_ms: f64,
    pub min_ms: f64,
    pub max_ms: f64,
    /// The lengths of all steps; only the first thousand if there are more.
    pub lengths: StepSketch,
}

/// Copies of one direction between the same kinds of memory.
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
    /// All bytes over the time in which at least one of the copies ran; `null` if bytes are not recorded.
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

impl RankGpu {
    fn of(gpu: &GpuLink) -> Self {
        Self {
            device: gpu.device,
            name: gpu.name.clone(),
            link: gpu.link.name.clone(),
            peak_gbps: gpu.link.peak_gbps,
        }
    }
}

impl RankSteps {
    fn of(steps: &StepTimes) -> Self {
        Self {
            count: steps.count,
            found: Some(steps.found),
            p50_ms: steps.p50_ms,
            p90_ms: steps.p90_ms,
            p99_ms: steps.p99_ms,
            min_ms: steps.min_ms,
            max_ms: steps.max_ms,
            lengths: StepSketch::of(&steps.each_ms),
        }
    }
}

impl RankCopies {
    /// Totals are divided by `each`.
    fn of(group: &CopyGroup, each: f64) -> Self {
        Self {
            kind: group.kind(),
            direction: group.direction,
            src: group.src,
            dst: group.dst,
            count: group.count as f64 / each,
            bytes: group.bytes as f64 / each,
            ms: group.total_ms / each,
            exposed_ms: group.exposed_ms / each,
            gbps: group.gbps.map(|rates| rates.weighted),
        }
    }
}

impl RankSummary {
    /// The summary of a diagnosis.
    pub fn of(diagnosis: &Diagnosis) -> Self {
        let each = diagnosis.step_count() * diagnosis.devices.len().max(1) as f64;
        Self {
            schema: RANK_SCHEMA.to_owned(),
            rank: diagnosis.rank.clone(),
            host: host_in_name(&diagnosis.source.path).map(str::to_owned),
            path: diagnosis.source.path.clone(),
            recorded_ms: None,
            every_ms: None,
            complete: diagnosis.source.complete,
            events: diagnosis.source.events,
            gpus: diagnosis.machine.gpus.iter().map(RankGpu::of).collect(),
            gpus_listed: diagnosis.machine.listed,
            environment: diagnosis.environment.clone(),
            verdict: diagnosis.verdict.clone(),
            unit: diagnosis.unit(),
            steps: diagnosis.window.steps.as_ref().map(RankSteps::of),
            time: Parts::of(diagnosis),
            comm_compute_pct_of_comm: diagnosis.overlap.comm_compute_pct_of_comm,
            copies: diagnosis.copies.iter().map(|group| RankCopies::of(group, each)).collect(),
            kernels: RankKernels {
                count: diagnosis.launches.kernels as f64 / each,
                median_us: diagnosis.launches.median_kernel_us,
            },
            collective_times: diagnosis.collective_times.clone(),
            lanes: diagnosis.rank_lanes.clone(),
            stages: diagnosis.rank_stages.clone(),
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

    /// `rank 5`, or the file name if no rank is known.
    pub fn label(&self) -> RankName {
        match &self.rank {
            Some(rank) => RankName::Number(rank.rank),
            None => RankName::File(process_in(&self.path).to_owned()),
        }
    }

    /// Whether its trace has GPU events; without them, nothing can be compared.
    pub fn has_device(&self) -> bool {
        !self.gpus.is_empty()
    }

    /// Whether it is compared with ranks whose figures are per this unit. Partly read ranks are not: the missing data would
    /// look like a difference.
    pub(crate) fn is_compared(&self, unit: Unit) -> bool {
        self.complete && self.has_device() && self.unit == unit
    }

    /// The mean step, not the median: the parts are means and add up to it. Without a device there are no parts: then it is the median.
    pub fn step_ms(&self) -> f64 {
        let median = || self.steps.as_ref().map_or(0.0, |steps| steps.p50_ms);
        if self.has_device() { self.time.span_ms } else { median() }
    }

    /// Number of ranks in its job, if its trace records a plausible one.
    pub fn world_size(&self) -> Option<u32> {
        self.rank.as_ref()?.world_size.filter(|world| *world <= LARGEST_WORLD)
    }

    /// A figure of the catalog; `None` if summaries do not keep it, or this rank does not have it.
    pub fn figure(&self, figure: FigureId) -> Option<f64> {
        match figure {
            FigureId::H2dGbps => self.rate(Direction::HostToDevice),
            FigureId::D2hGbps => self.rate(Direction::DeviceToHost),
            FigureId::CommComputePct => self.comm_compute_pct_of_comm,
            figure => self.time.figure(figure),
        }
    }

    /// Rate of all copies of a direction.
    pub(crate) fn rate(&self, direction: Direction) -> Option<f64> {
        let groups = self.copies.iter().filter(|copies| copies.direction == direction);
        combined_gbps(groups.map(|copies| (copies.bytes, copies.gbps)))
    }

    /// Bytes of all copies of a direction.
    pub fn bytes_of(&self, direction: Direction) -> f64 {
        self.copies.iter().filter(|copies| copies.direction == direction).map(|copies| copies.bytes).sum()
    }
}

/// The file name of a recording. All windows of `record --every` of one process have the same: without their number.
fn process_in(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    name.split_once(WINDOW).map_or(name, |(process, _)| process)
}

/// Whether a recording is a window of its process.
pub(crate) fn is_window(path: &str) -> bool {
    path.contains(WINDOW)
}

/// What follows the process in the file name of a window.
const WINDOW: &str = ".window-";
