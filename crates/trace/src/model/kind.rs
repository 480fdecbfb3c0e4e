//! What does an event record?

use serde::{Deserialize, Serialize};

/// What an event records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EventKind {
    /// A framework operator on the host, e.g. `aten::mm`.
    Operator,
    /// A range that the user or framework named on the host (`record_function`, NVTX, `ProfilerStep#3`).
    Annotation,
    /// The same range on the device's streams.
    GpuAnnotation,
    /// A Python function call.
    PythonFrame,
    /// A call into the CUDA or HIP runtime.
    RuntimeCall,
    /// A call into the driver.
    DriverCall,
    Kernel,
    Copy,
    Memset,
    /// A synchronization recorded on the device (`cuda_sync`, recorded on request).
    Synchronization,
    /// A CUDA event record on the device (`cuda_event`).
    EventRecord,
    /// Accesses by the device or the host to managed memory that was not resident.
    PageFault,
    /// Time the profiler itself took.
    ProfilerOverhead,
    /// The profiler's own span over the whole recording.
    ProfilerSpan,
    /// A complete event of an unknown category.
    Other,
}

impl EventKind {
    pub const ALL: [Self; 15] = [
        Self::Operator,
        Self::Annotation,
        Self::GpuAnnotation,
        Self::PythonFrame,
        Self::RuntimeCall,
        Self::DriverCall,
        Self::Kernel,
        Self::Copy,
        Self::Memset,
        Self::Synchronization,
        Self::EventRecord,
        Self::PageFault,
        Self::ProfilerOverhead,
        Self::ProfilerSpan,
        Self::Other,
    ];

    /// Work that occupies the device: kernels, copies and memsets.
    pub fn is_gpu_work(self) -> bool {
        matches!(self, Self::Kernel | Self::Copy | Self::Memset)
    }

    /// Calls into the runtime or the driver.
    pub fn is_call(self) -> bool {
        matches!(self, Self::RuntimeCall | Self::DriverCall)
    }

    /// Events that belong to a (device, stream) and not to a thread.
    pub fn is_on_device(self) -> bool {
        self.is_gpu_work() || matches!(self, Self::GpuAnnotation | Self::Synchronization | Self::EventRecord)
    }

    /// Its label in tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Operator => "operators",
            Self::Annotation => "annotations",
            Self::GpuAnnotation => "annotations on the GPU",
            Self::PythonFrame => "Python frames",
            Self::RuntimeCall => "runtime calls",
            Self::DriverCall => "driver calls",
            Self::Kernel => "kernels",
            Self::Copy => "copies",
            Self::Memset => "memsets",
            Self::Synchronization => "synchronizations",
            Self::EventRecord => "event records",
            Self::PageFault => "page faults",
            Self::ProfilerOverhead => "profiler overhead",
            Self::ProfilerSpan => "profiler spans",
            Self::Other => "other events",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_every_kind_in_order() {
        for (i, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, i);
        }
    }
}
