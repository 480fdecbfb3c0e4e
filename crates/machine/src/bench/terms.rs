//! The words that suites, samples and profiles share: directions, kinds of memory, who copies and how.

use serde::{Deserialize, Serialize};

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

/// The host memory at the other end of a copy, as far as a trace tells it.
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
