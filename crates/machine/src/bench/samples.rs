//! What did the GPU's clock say? Raw times of every repetition, as measured, nothing averaged.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::plan::{Mode, Suite};

pub const SAMPLES_SCHEMA: &str = "busbound.samples/1";

/// One run of `busbound bench`, before any statistics: enough to come to every figure again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    pub schema: String,
    /// The program's version.
    pub busbound: String,
    /// UTC, as `2026-11-15T09:30:00Z`.
    pub date: String,
    pub mode: Mode,
    pub wall_s: f64,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    pub identity: Identity,
    /// The most that was held at once on either side.
    pub device_bytes: u64,
    pub host_bytes: u64,
    pub cases: Vec<Case>,
    pub skipped: Vec<Skipped>,
}

/// What was measured on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Identity {
    /// As the driver reports it.
    pub gpu: String,
    pub pci_address: String,
    /// GPUs of the machine.
    pub gpus: u32,
    pub driver: String,
    /// The newest CUDA the driver speaks, as 12.8.
    pub cuda: String,
    pub memory_bytes: u64,
    pub multiprocessors: u32,
    pub power_limit_watts: Option<f64>,
    /// The GPU's own link while copies ran.
    pub link: Option<LinkSeen>,
    pub host_cpu: String,
    pub kernel: String,
    pub numa_node: Option<u32>,
    /// The CPUs that the measuring thread was kept to, as sysfs lists them.
    pub pinned_to_cpus: Option<String>,
    /// Whether the host says that it is a virtual machine.
    pub virtual_machine: Option<bool>,
}

/// A link as trained, and what both of its ends could.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkSeen {
    pub generation: u32,
    pub lanes: u32,
    pub max_generation: u32,
    pub max_lanes: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped {
    pub suite: Suite,
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Direction {
    H2d,
    D2h,
}

/// The host's memory at one end of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Memory {
    /// Allocated page-locked.
    Pinned,
    Pageable,
    /// Allocated pageable and page-locked afterwards.
    Registered,
    /// Page-locked and write-combined: fast for the GPU to read, slow for the CPU.
    WriteCombined,
    /// Migrated by prefetch.
    Managed,
}

impl Memory {
    pub fn words(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Pageable => "pageable",
            Self::Registered => "registered",
            Self::WriteCombined => "write-combined",
            Self::Managed => "managed",
        }
    }
}

/// Who moves the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Engine {
    #[default]
    CopyEngine,
    /// A kernel that reads or writes the host's memory in place.
    Kernel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Pace {
    Single,
    #[default]
    BackToBack,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyTask {
    pub direction: Direction,
    pub memory: Memory,
    pub engine: Engine,
    pub pace: Pace,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LatencyKind {
    /// Host time inside the call that launches an empty kernel.
    LaunchCall,
    /// From launching an empty kernel until the host knows that it ran.
    LaunchAndWait,
    /// From one empty kernel to the next in a full queue.
    KernelToKernel,
    /// One copy of four bytes to the device, blocking, pinned.
    SmallestCopyH2d,
    SmallestCopyD2h,
    /// Host time inside the call that records an event.
    EventRecord,
    /// From a kernel on one stream to one on another that waits for it by an event.
    EventWait,
    /// Synchronizing a stream that has nothing to do.
    StreamSynchronize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum KernelKind {
    /// Arithmetic in registers.
    ComputeBound,
    /// Device memory to device memory.
    MemoryBound,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlapTask {
    pub direction: Direction,
    pub kernel: KernelKind,
    pub bytes: u64,
}

/// In which order weights come and layers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Order {
    /// The host waits for each copy.
    Blocking,
    /// Copies and kernels one after another on one stream; the host does not wait.
    OneStream,
    /// Copies on a stream of their own, `depth` layers ahead.
    Prefetched,
}

/// How long a layer computes is set by its ratio to the copy alone, so that one task suits every machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OffloadTask {
    pub layers: u32,
    pub bytes: u64,
    pub compute_to_copy: f64,
    pub memory: Memory,
    pub order: Order,
    /// 0 unless prefetched.
    pub depth: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DoubleBufferTask {
    pub chunks: u32,
    pub bytes: u64,
    pub compute_to_copy: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllReduceTask {
    pub bytes: u64,
}

/// One thing to measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Task {
    Copy(CopyTask),
    Duplex { bytes: u64 },
    PeerToPeer { from: u32, to: u32, bytes: u64 },
    Latency { what: LatencyKind },
    Overlap(OverlapTask),
    DoubleBuffer(DoubleBufferTask),
    Offload(OffloadTask),
    AllReduce(AllReduceTask),
    Power { duty_percent: u32, seconds: f64 },
    Hbm { bytes: u64, engine: Engine },
}

impl Task {
    pub fn suite(&self) -> Suite {
        match self {
            Self::Copy(_) => Suite::Copy,
            Self::Duplex { .. } => Suite::Duplex,
            Self::PeerToPeer { .. } => Suite::PeerToPeer,
            Self::Latency { .. } => Suite::Latency,
            Self::Overlap(_) => Suite::Overlap,
            Self::DoubleBuffer(_) => Suite::DoubleBuffer,
            Self::Offload(_) => Suite::Offload,
            Self::AllReduce(_) => Suite::AllReduce,
            Self::Power { .. } => Suite::Power,
            Self::Hbm { .. } => Suite::Hbm,
        }
    }
}

/// What is measured now, for people who wait.
impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy(task) => write!(
                f,
                "copy: {} {}, {} bytes",
                task.memory.words(),
                match task.direction {
                    Direction::H2d => "to the device",
                    Direction::D2h => "to the host",
                },
                task.bytes
            ),
            Self::Duplex { .. } => f.write_str("duplex: both directions"),
            Self::PeerToPeer { from, to, .. } => write!(f, "p2p: GPU {from} to GPU {to}"),
            Self::Latency { .. } => f.write_str("latency"),
            Self::Overlap(task) => write!(f, "overlap: copies of {} bytes beside kernels", task.bytes),
            Self::DoubleBuffer(task) => write!(f, "double-buffer: compute {} x copy", task.compute_to_copy),
            Self::Offload(task) => {
                write!(f, "offload: {} layers of {} bytes, depth {}", task.layers, task.bytes, task.depth)
            }
            Self::AllReduce(task) => write!(f, "allreduce: {} bytes", task.bytes),
            Self::Power { duty_percent, .. } => write!(f, "power: {duty_percent} % duty"),
            Self::Hbm { .. } => f.write_str("hbm: device memory"),
        }
    }
}

/// What the driver said while a kernel ran.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PowerSample {
    pub sm_mhz: u32,
    pub watts: f64,
}

/// A task with the times of its repetitions, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "suite", rename_all = "snake_case")]
pub enum Case {
    Copy {
        #[serde(flatten)]
        task: CopyTask,
        /// Copies of one repetition.
        copies: u32,
        ns: Vec<u64>,
        verified: bool,
    },
    Duplex {
        bytes: u64,
        copies: u32,
        /// Both directions begin together; from there to the end of the later one.
        together_ns: Vec<u64>,
        /// `copies` to the device while the other direction is busy throughout.
        h2d_loaded_ns: Vec<u64>,
        d2h_loaded_ns: Vec<u64>,
        verified: bool,
    },
    PeerToPeer {
        from: u32,
        to: u32,
        bytes: u64,
        copies: u32,
        direct: bool,
        ns: Vec<u64>,
        verified: bool,
    },
    Latency {
        what: LatencyKind,
        ns: Vec<u64>,
    },
    Overlap {
        #[serde(flatten)]
        task: OverlapTask,
        copies: u32,
        copy_alone_ns: Vec<u64>,
        copy_beside_ns: Vec<u64>,
        kernel_alone_ns: Vec<u64>,
        kernel_beside_ns: Vec<u64>,
    },
    DoubleBuffer {
        #[serde(flatten)]
        task: DoubleBufferTask,
        /// All chunks without a copy.
        compute_ns: Vec<u64>,
        naive_ns: Vec<u64>,
        buffered_ns: Vec<u64>,
        verified: bool,
    },
    Offload {
        #[serde(flatten)]
        task: OffloadTask,
        /// One layer's copy without compute, measured just before: what the host stages varies by the minute.
        copy_ns: Vec<u64>,
        /// All layers without a copy.
        compute_ns: Vec<u64>,
        step_ns: Vec<u64>,
        verified: bool,
    },
    AllReduce {
        ranks: u32,
        #[serde(flatten)]
        task: AllReduceTask,
        ns: Vec<u64>,
        verified: bool,
        library: String,
    },
    Power {
        duty_percent: u32,
        kernel_ns: Vec<u64>,
        samples: Vec<PowerSample>,
        /// Whether the kernel keeps this chip's tensor cores as busy as a GEMM does.
        #[serde(default = "yes")]
        like_a_gemm: bool,
    },
    Hbm {
        bytes: u64,
        engine: Engine,
        copies: u32,
        ns: Vec<u64>,
        verified: bool,
    },
}

impl Case {
    pub fn suite(&self) -> Suite {
        match self {
            Self::Copy { .. } => Suite::Copy,
            Self::Duplex { .. } => Suite::Duplex,
            Self::PeerToPeer { .. } => Suite::PeerToPeer,
            Self::Latency { .. } => Suite::Latency,
            Self::Overlap { .. } => Suite::Overlap,
            Self::DoubleBuffer { .. } => Suite::DoubleBuffer,
            Self::Offload { .. } => Suite::Offload,
            Self::AllReduce { .. } => Suite::AllReduce,
            Self::Power { .. } => Suite::Power,
            Self::Hbm { .. } => Suite::Hbm,
        }
    }

    /// Whether the data arrived; `None` where none was moved.
    pub fn verified(&self) -> Option<bool> {
        match self {
            Self::Copy { verified, .. }
            | Self::Duplex { verified, .. }
            | Self::PeerToPeer { verified, .. }
            | Self::DoubleBuffer { verified, .. }
            | Self::Offload { verified, .. }
            | Self::AllReduce { verified, .. }
            | Self::Hbm { verified, .. } => Some(*verified),
            Self::Latency { .. } | Self::Overlap { .. } | Self::Power { .. } => None,
        }
    }

    /// Every series of times that it holds.
    fn series(&self) -> Vec<&Vec<u64>> {
        match self {
            Self::Copy { ns, .. }
            | Self::PeerToPeer { ns, .. }
            | Self::Latency { ns, .. }
            | Self::AllReduce { ns, .. }
            | Self::Hbm { ns, .. } => vec![ns],
            Self::Duplex { together_ns, h2d_loaded_ns, d2h_loaded_ns, .. } => {
                vec![together_ns, h2d_loaded_ns, d2h_loaded_ns]
            }
            Self::Overlap { copy_alone_ns, copy_beside_ns, kernel_alone_ns, kernel_beside_ns, .. } => {
                vec![copy_alone_ns, copy_beside_ns, kernel_alone_ns, kernel_beside_ns]
            }
            Self::DoubleBuffer { compute_ns, naive_ns, buffered_ns, .. } => {
                vec![compute_ns, naive_ns, buffered_ns]
            }
            Self::Offload { copy_ns, compute_ns, step_ns, .. } => vec![copy_ns, compute_ns, step_ns],
            Self::Power { kernel_ns, .. } => vec![kernel_ns],
        }
    }
}

/// Samples from before it was told are of a Hopper.
fn yes() -> bool {
    true
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplesError {
    #[error("holds no samples of `busbound bench`: {0}")]
    Json(#[from] serde_json::Error),
    #[error("has schema {0:?}, not {SAMPLES_SCHEMA:?}")]
    Schema(String),
    #[error("makes no sense: a case of {0} has no times, or one of zero")]
    NoTimes(&'static str),
}

impl Samples {
    /// Reads samples that were kept.
    ///
    /// # Errors
    /// If it is something else, or a case has no times.
    pub fn parse(json: &str) -> Result<Self, SamplesError> {
        let samples: Self = serde_json::from_str(json)?;
        if samples.schema != SAMPLES_SCHEMA {
            return Err(SamplesError::Schema(samples.schema));
        }
        for case in &samples.cases {
            if case.series().into_iter().any(|ns| ns.is_empty() || ns.contains(&0)) {
                return Err(SamplesError::NoTimes(case.suite().name()));
            }
        }
        Ok(samples)
    }
}
