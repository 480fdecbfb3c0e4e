//! What waited for what? The trace as a graph: calls of host threads in their order, the device's work they issue,
//! streams, events and synchronisations, with the time that each took by itself.

use busbound_trace::{Direction, EventId, Timestamp};

/// Nanoseconds from the beginning of the first step.
pub type Time = i64;

pub type WorkId = usize;
pub type CallId = usize;

/// The steps that a model covers.
#[derive(Debug, Clone)]
pub struct Stretch {
    /// Where each begins on the host.
    pub starts: Vec<Timestamp>,
    /// When the work of the last one is done.
    pub end: Timestamp,
}

/// One stretch of steps, ready to be run again.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub calls: Vec<HostCall>,
    /// By thread, in order.
    pub threads: Vec<Vec<CallId>>,
    pub work: Vec<Work>,
    /// By stream: its work in order.
    pub streams: Vec<Vec<WorkId>>,
    pub stream_device: Vec<i32>,
    /// When the last work or call ended.
    pub end: Time,
    pub steps: usize,
    pub edges: Edges,
    /// What a copy takes of the host that does not wait for it.
    pub copy_call: Time,
    /// From a call to its work, with nothing in the way.
    pub latency: Time,
}

/// How the graph came to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Edges {
    /// Waits between streams that the trace names.
    pub recorded: usize,
    /// Waits between streams that only the times tell.
    pub inferred: usize,
    /// Threads that waited for another one.
    pub handed_over: usize,
    /// Work whose call is not in the trace.
    pub without_call: usize,
    /// Waiting of the device that nothing explains.
    pub unexplained: Time,
}

/// One call of a thread.
#[derive(Debug, Clone)]
pub struct HostCall {
    pub action: HostAction,
    /// Host work since the call before.
    pub gap: Time,
    /// A call of another thread that came before, and what lay between.
    pub after: Option<(CallId, Time)>,
    /// The call's own time, waiting not counted.
    pub cost: Time,
    pub step: usize,
    /// When it was, in the trace.
    pub start: Time,
    pub end: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostAction {
    /// Hands work to the device and goes on.
    Issue(Vec<WorkId>),
    /// Hands a copy to the device and is held until it is done.
    IssueBlocking(WorkId),
    /// Waits; and, where it belongs to a copy's own operator, for which.
    Wait { awaited: Awaited, copy: Option<WorkId> },
    /// Was a call once.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    Stream(usize),
    Device(i32),
    Op(WorkId),
    /// The trace does not tell, or there was nothing.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// With whether it is matrix work, which draws power.
    Kernel {
        heavy: bool,
    },
    Copy {
        direction: Direction,
        pageable: bool,
        bytes: u64,
    },
    /// Memsets and what else takes the device no time to speak of.
    Other,
}

impl WorkKind {
    /// Copies between host and device.
    pub fn bus(self) -> Option<Direction> {
        match self {
            Self::Copy { direction: d @ (Direction::HostToDevice | Direction::DeviceToHost), .. } => Some(d),
            _ => None,
        }
    }

    pub fn is_kernel(self) -> bool {
        matches!(self, Self::Kernel { .. })
    }
}

/// One piece of the device's work.
#[derive(Debug, Clone)]
pub struct Work {
    pub kind: WorkKind,
    pub event: EventId,
    pub stream: usize,
    /// The call behind it.
    pub call: Option<CallId>,
    /// By itself, with the link to itself.
    pub alone: f64,
    /// Beyond the common latency, when it waits for its call.
    pub after_call: Time,
    /// When it waits for the work before it on its stream.
    pub after_work: Time,
    /// Work of other streams that it waits for, and what lies between.
    pub waits: Vec<(WorkId, Time)>,
    pub step: usize,
    pub start: Time,
    pub end: Time,
    /// A change has dropped it.
    pub dropped: bool,
}

impl Model {
    /// Every device once, in order.
    pub fn devices(&self) -> Vec<i32> {
        let mut devices = self.stream_device.clone();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// Whether kernels run on this stream.
    pub fn has_kernels(&self, stream: usize) -> bool {
        self.streams[stream].iter().any(|op| self.work[*op].kind.is_kernel())
    }
}
