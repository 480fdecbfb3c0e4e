//! What did a synchronization wait for?

use serde::Serialize;

/// Which operation waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncKind {
    /// The host waits for a recorded event (`cudaEventSynchronize`).
    EventSync,
    /// A stream waits for a recorded event (`cudaStreamWaitEvent`).
    StreamWaitEvent,
    /// The host waits for a stream (`cudaStreamSynchronize`).
    StreamSync,
    /// The host waits for the whole device (`cudaDeviceSynchronize`).
    ContextSync,
    Unknown,
}

impl SyncKind {
    /// The name of its event.
    pub fn label(self) -> &'static str {
        match self {
            Self::EventSync => "Event Sync",
            Self::StreamWaitEvent => "Stream Wait Event",
            Self::StreamSync => "Stream Sync",
            Self::ContextSync => "Context Sync",
            Self::Unknown => "Sync",
        }
    }

    /// Whether it waits for an event instead of a stream or a device.
    pub fn waits_for_event(self) -> bool {
        matches!(self, Self::EventSync | Self::StreamWaitEvent)
    }
}

/// What a synchronization waited for. Recorded only when the profiler was asked for sync events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synchronization {
    pub kind: SyncKind,
    /// The stream whose work was waited for.
    pub waits_on_stream: Option<i64>,
    /// The correlation of the `cudaEventRecord` that was waited for.
    pub waits_on_record: Option<u64>,
    /// The CUDA event that was waited for.
    pub waits_on_event: Option<u64>,
}

impl Synchronization {
    /// A synchronization of this kind, with nothing known about what it waited for.
    pub fn of(kind: SyncKind) -> Self {
        Self { kind, waits_on_stream: None, waits_on_record: None, waits_on_event: None }
    }
}
