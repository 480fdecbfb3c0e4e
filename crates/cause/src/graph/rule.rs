//! Which rule made an edge, and how reliable is it?

use serde::Serialize;

/// The rule that made an edge. Each edge of the graph has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Rule {
    /// Streams run their work in order.
    StreamOrder,
    /// The work carries the correlation id of the call.
    Correlation,
    /// The profiler recorded which event of which stream was waited for.
    RecordedStreamWait,
    /// The number of events recorded on one stream equals the number of waits on the other: paired in order.
    PairedEvents,
    /// A call made a stream wait; the source is the work on another stream that ended last before it.
    EndedBeforeWait,
    /// Work started late, just after work on another stream ended.
    EndedJustBefore,
    /// The profiler recorded what the host waited for.
    RecordedHostWait,
    /// The copy call returned after its copy had ended, or staged it.
    BlockingCopy,
    /// The wait right after a copy, in the copy's own operator.
    CopyOperator,
    /// A call that waits for everything on a device, by its name.
    DeviceSync,
    /// The work that ended last while the host waited.
    EndedDuringWait,
    /// A thread was idle while another launching thread worked.
    ThreadWait,
    /// Nothing was recorded on a thread while the device worked.
    SilentWait,
}

/// How reliable an edge is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Confidence {
    /// Consistent with the timing; other explanations are possible.
    Possible,
    /// A call shows that there was a wait; what it waited for is inferred from timing.
    Likely,
    /// Recorded in the trace, or true for every CUDA program.
    Certain,
}

impl Rule {
    pub fn confidence(self) -> Confidence {
        match self {
            Self::StreamOrder | Self::Correlation | Self::RecordedStreamWait | Self::RecordedHostWait => {
                Confidence::Certain
            }
            Self::PairedEvents
            | Self::EndedBeforeWait
            | Self::BlockingCopy
            | Self::CopyOperator
            | Self::DeviceSync
            | Self::EndedDuringWait => Confidence::Likely,
            Self::EndedJustBefore | Self::ThreadWait | Self::SilentWait => Confidence::Possible,
        }
    }

    /// Whether the profiler recorded the wait itself.
    pub fn is_recorded(self) -> bool {
        matches!(self, Self::RecordedStreamWait | Self::RecordedHostWait)
    }

    /// A short explanation.
    pub fn describe(self) -> &'static str {
        match self {
            Self::StreamOrder => "streams run their work in order",
            Self::Correlation => "the work carries the call's correlation id",
            Self::RecordedStreamWait => "the profiler recorded the wait between the streams",
            Self::PairedEvents => "event records and waits of the step, paired in order",
            Self::EndedBeforeWait => "the work on another stream that ended last before the wait",
            Self::EndedJustBefore => "work on another stream ended just before this work started",
            Self::RecordedHostWait => "the profiler recorded what the host waited for",
            Self::BlockingCopy => "the copy call returned after the copy ended",
            Self::CopyOperator => "the wait in the copy's own operator",
            Self::DeviceSync => "the call waits for the whole device",
            Self::EndedDuringWait => "the work that ended last while the host waited",
            Self::ThreadWait => "the thread was idle while another thread launched work",
            Self::SilentWait => "nothing was recorded on the thread while the device worked",
        }
    }
}
