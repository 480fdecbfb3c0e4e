//! Which terms do suites, samples and profiles share? Direction, memory type, copy engine and pace.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Direction {
    H2d,
    D2h,
}

impl Direction {
    pub fn words(self) -> &'static str {
        match self {
            Self::H2d => "H2D",
            Self::D2h => "D2H",
        }
    }
}

/// The host memory at one end of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Memory {
    /// Allocated page-locked.
    Pinned,
    Pageable,
    /// Allocated pageable, then page-locked.
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

/// The host memory at the other end of a copy, as far as a trace shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostMemory {
    Pinned,
    Pageable,
}

impl From<HostMemory> for Memory {
    fn from(memory: HostMemory) -> Self {
        match memory {
            HostMemory::Pinned => Self::Pinned,
            HostMemory::Pageable => Self::Pageable,
        }
    }
}

/// What moves the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Engine {
    #[default]
    CopyEngine,
    /// A kernel that reads or writes host memory in place.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LatencyKind {
    /// Host time in the call that launches an empty kernel.
    LaunchCall,
    /// From the launch of an empty kernel until the host knows that it finished.
    LaunchAndWait,
    /// From one empty kernel to the next in a full queue.
    KernelToKernel,
    /// One blocking, pinned H2D copy of four bytes.
    SmallestCopyH2d,
    SmallestCopyD2h,
    /// Host time in the call that records an event.
    EventRecord,
    /// From a kernel on one stream to a kernel on another stream that waits for it with an event.
    EventWait,
    /// Synchronizing an idle stream.
    StreamSynchronize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum KernelKind {
    /// Arithmetic in registers.
    ComputeBound,
    /// Copies within device memory.
    MemoryBound,
}

/// How weight copies and layers are scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Order {
    /// The host waits for each copy.
    Blocking,
    /// Copies and kernels are serialized on one stream; the host does not wait.
    OneStream,
    /// Copies on a separate stream, `depth` layers ahead.
    Prefetched,
}

/// How blocks that lie apart in memory cross the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ScatterMethod {
    /// One copy call per block.
    Loop,
    /// One call with a list of copies (`cudaMemcpyBatchAsync`).
    Batch,
    /// A kernel reads or writes the blocks in pinned host memory.
    Kernel,
    /// Through one contiguous pinned buffer: the host and a kernel gather and scatter, one copy crosses the bus.
    Staged,
}

impl ScatterMethod {
    pub const ALL: [Self; 4] = [Self::Loop, Self::Batch, Self::Kernel, Self::Staged];

    /// The methods that work with this host memory: kernels cannot access pageable memory.
    pub fn for_memory(memory: Memory) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |method| *method != Self::Kernel || memory == Memory::Pinned)
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::Loop => "loop of copies",
            Self::Batch => "batch call",
            Self::Kernel => "gather kernel",
            Self::Staged => "gathered copy",
        }
    }
}

/// What runs while copies are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ContentionLoad {
    /// Nothing: what the others are compared with.
    Nothing,
    /// Pinned copies in the other direction.
    OtherDirection,
    /// Copies within device memory, by the copy engine.
    DeviceCopy,
    /// A kernel that copies within device memory as fast as it can.
    MemoryKernel,
    /// The same copies, by another process on the same GPU.
    SecondProcess,
    /// The same copies on every other GPU.
    OtherGpus,
    /// Copies from this GPU to another one.
    PeerOut,
    /// Copies from another GPU to this one.
    PeerIn,
}

impl ContentionLoad {
    pub const ALL: [Self; 8] = [
        Self::Nothing,
        Self::OtherDirection,
        Self::DeviceCopy,
        Self::MemoryKernel,
        Self::SecondProcess,
        Self::OtherGpus,
        Self::PeerOut,
        Self::PeerIn,
    ];

    pub fn needs_several_gpus(self) -> bool {
        matches!(self, Self::OtherGpus | Self::PeerOut | Self::PeerIn)
    }

    /// After `H2D copies`.
    pub fn while_it_runs(self, direction: Direction) -> &'static str {
        match (self, direction) {
            (Self::Nothing, _) => "alone",
            (Self::OtherDirection, Direction::H2d) => "while D2H copies run",
            (Self::OtherDirection, Direction::D2h) => "while H2D copies run",
            (Self::DeviceCopy, _) => "while D2D copies run",
            (Self::MemoryKernel, _) => "while a kernel saturates device memory",
            (Self::SecondProcess, _) => "while a second process does the same on this GPU",
            (Self::OtherGpus, _) => "while all other GPUs do the same",
            (Self::PeerOut, _) => "while P2P copies leave this GPU",
            (Self::PeerIn, _) => "while P2P copies arrive at this GPU",
        }
    }
}
