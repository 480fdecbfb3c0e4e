//! What sort of event is it? One table maps every category name that Kineto has used to one kind.

use serde::{Deserialize, Serialize};

/// What an event records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EventKind {
    /// A framework operator on the host, e.g. `aten::mm`.
    Operator,
    /// A range the user or framework named on the host (`record_function`, NVTX, `ProfilerStep#3`).
    Annotation,
    /// The same range as seen on the device's streams.
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
    /// A synchronisation that the device saw (`cuda_sync`, recorded on request).
    Synchronisation,
    /// A CUDA event record that the device saw (`cuda_event`).
    EventRecord,
    /// Accesses to managed memory that was elsewhere, by the device or the host.
    PageFault,
    /// Time the profiler itself took.
    ProfilerOverhead,
    /// The profiler's own span over the whole recording.
    ProfilerSpan,
    /// A complete event of a category this reader has no name for.
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
        Self::Synchronisation,
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

    /// Events that lie on a (device, stream) and not on a thread.
    pub fn is_on_device(self) -> bool {
        self.is_gpu_work() || matches!(self, Self::GpuAnnotation | Self::Synchronisation | Self::EventRecord)
    }

    /// The word for it in tables.
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
            Self::Synchronisation => "synchronisations",
            Self::EventRecord => "event records",
            Self::PageFault => "page faults",
            Self::ProfilerOverhead => "profiler overhead",
            Self::ProfilerSpan => "profiler spans",
            Self::Other => "other events",
        }
    }

    /// The kind of a category, or `None` if no version of Kineto is known to write it.
    pub(crate) fn of_category(category: &[u8]) -> Option<Self> {
        Some(match category {
            b"cpu_op" | b"Operator" | b"hpu_op" => Self::Operator,
            b"user_annotation" => Self::Annotation,
            b"gpu_user_annotation" => Self::GpuAnnotation,
            b"python_function" | b"Python" => Self::PythonFrame,
            b"cuda_runtime"
            | b"Runtime"
            | b"hip_runtime"
            | b"xpu_runtime"
            | b"mtia_runtime"
            | b"glow_runtime"
            | b"privateuse1_runtime" => Self::RuntimeCall,
            b"cuda_driver" | b"xpu_driver" | b"privateuse1_driver" => Self::DriverCall,
            b"kernel" | b"Kernel" | b"concurrent_kernel" | b"mtia_ccp_events" => Self::Kernel,
            b"gpu_memcpy" | b"Memcpy" => Self::Copy,
            b"gpu_memset" | b"Memset" => Self::Memset,
            b"cuda_sync" => Self::Synchronisation,
            b"cuda_event" => Self::EventRecord,
            b"overhead" => Self::ProfilerOverhead,
            b"Trace" | b"cuda_profiler_range" => Self::ProfilerSpan,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_category_names_mean_the_same() {
        for (old, new) in [
            ("Operator", "cpu_op"),
            ("Runtime", "cuda_runtime"),
            ("Kernel", "kernel"),
            ("Memcpy", "gpu_memcpy"),
            ("Memset", "gpu_memset"),
        ] {
            let kind = EventKind::of_category(old.as_bytes());
            assert!(kind.is_some());
            assert_eq!(kind, EventKind::of_category(new.as_bytes()));
        }
    }

    #[test]
    fn all_lists_every_kind_in_order() {
        for (i, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, i);
        }
    }
}
