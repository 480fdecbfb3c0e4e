//! What does a runtime or driver call do? Inferred from its name.

/// What a runtime or driver call does, inferred from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Launch,
    Copy,
    /// Submits a memset to the device.
    Memset,
    /// Waits for the device: its time is waiting, not work.
    Synchronize,
    /// Allocates or frees memory.
    Allocate,
    /// Captures or instantiates a graph.
    Capture,
    /// Loads kernels.
    Load,
    /// Creates streams or events.
    Create,
    /// Records an event in a stream.
    RecordEvent,
    /// Makes a stream wait for a recorded event.
    WaitEvent,
    Other,
}

impl Call {
    pub fn of(name: &str) -> Self {
        let has = |needle: &str| name.contains(needle);
        if has("Synchronize") || has("EventSync") {
            Self::Synchronize
        } else if has("Memcpy") {
            Self::Copy
        } else if has("Memset") {
            Self::Memset
        } else if has("Launch") {
            Self::Launch
        } else if [
            "Malloc",
            "Free",
            "HostAlloc",
            "HostRegister",
            "HostUnregister",
            "MemAlloc",
            "MemCreate",
            "MemMap",
            "MemUnmap",
        ]
        .into_iter()
        .any(has)
        {
            Self::Allocate
        } else if has("Capture") && !has("IsCapturing") && !has("CaptureInfo") || has("GraphInstantiate") {
            Self::Capture
        } else if has("ModuleLoad") || has("LibraryLoad") || has("LinkComplete") {
            Self::Load
        } else if has("StreamCreate") || has("EventCreate") {
            Self::Create
        } else if has("EventRecord") {
            Self::RecordEvent
        } else if has("StreamWaitEvent") {
            Self::WaitEvent
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_classified_by_name() {
        for (name, call) in [
            ("cudaLaunchKernel", Call::Launch),
            ("cuLaunchKernelEx", Call::Launch),
            ("hipModuleLaunchKernel", Call::Launch),
            ("cudaGraphLaunch", Call::Launch),
            ("cudaMemcpyAsync", Call::Copy),
            ("hipMemcpyWithStream", Call::Copy),
            ("cudaStreamSynchronize", Call::Synchronize),
            ("cudaEventSynchronize", Call::Synchronize),
            ("cudaMemsetAsync", Call::Memset),
            ("cudaMalloc", Call::Allocate),
            ("cudaHostAlloc", Call::Allocate),
            ("cuMemCreate", Call::Allocate),
            ("hipFree", Call::Allocate),
            ("cudaStreamBeginCapture", Call::Capture),
            ("cudaStreamIsCapturing", Call::Other),
            ("cudaGraphInstantiateWithFlags", Call::Capture),
            ("cuModuleLoadData", Call::Load),
            ("cudaStreamCreateWithPriority", Call::Create),
            ("cudaEventRecordWithFlags", Call::RecordEvent),
            ("cudaStreamWaitEvent", Call::WaitEvent),
        ] {
            assert_eq!(Call::of(name), call, "{name}");
        }
    }
}
