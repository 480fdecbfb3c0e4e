//! What waited for what? The trace as a graph: calls of host threads in their order, the device's work they issue,
//! streams, events and synchronisations, with the time that each took by itself.

use busbound_trace::{Direction, EventId};

/// Nanoseconds from the beginning of the first step.
pub(super) type Time = i64;

pub(super) type OpId = usize;
pub(super) type ItemId = usize;

/// One stretch of steps, ready to be run again.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    pub(super) items: Vec<Item>,
    /// By thread, in order.
    pub(super) threads: Vec<Vec<ItemId>>,
    pub(super) ops: Vec<Op>,
    /// By stream: its work in order.
    pub(super) streams: Vec<Vec<OpId>>,
    pub(super) stream_device: Vec<i32>,
    /// When the last work or call ended.
    pub(super) end: Time,
    pub(super) steps: usize,
    pub(super) edges: Edges,
    /// What a copy takes of the host that does not wait for it.
    pub(super) copy_call: Time,
    /// From a call to its work, with nothing in the way.
    pub(super) latency: Time,
}

/// How the graph came to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Edges {
    /// Waits between streams that the trace names.
    pub(super) recorded: usize,
    /// Waits between streams that only the times tell.
    pub(super) inferred: usize,
    /// Threads that waited for another one.
    pub(super) handed_over: usize,
    /// Work whose call is not in the trace.
    pub(super) without_call: usize,
    /// Waiting of the device that nothing explains.
    pub(super) unexplained: Time,
}

/// One call of a thread.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) does: Does,
    /// Host work since the call before.
    pub(super) gap: Time,
    /// A call of another thread that came before, and what lay between.
    pub(super) after: Option<(ItemId, Time)>,
    /// The call's own time, waiting not counted.
    pub(super) cost: Time,
    pub(super) step: usize,
    /// When it was, in the trace.
    pub(super) start: Time,
    pub(super) end: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Does {
    /// Hands work to the device and goes on.
    Issue(Vec<OpId>),
    /// Hands a copy to the device and is held until it is done.
    IssueHeld(OpId),
    /// Waits; and, where it belongs to a copy's own operator, for which.
    Wait { awaited: Awaited, copy: Option<OpId> },
    /// Was a call once.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    Stream(usize),
    Device(i32),
    Op(OpId),
    /// The trace does not tell, or there was nothing.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
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

impl Work {
    /// Copies between host and device.
    pub(super) fn bus(self) -> Option<Direction> {
        match self {
            Self::Copy { direction: d @ (Direction::HostToDevice | Direction::DeviceToHost), .. } => Some(d),
            _ => None,
        }
    }

    pub(super) fn is_kernel(self) -> bool {
        matches!(self, Self::Kernel { .. })
    }
}

/// One piece of the device's work.
#[derive(Debug, Clone)]
pub(super) struct Op {
    pub(super) work: Work,
    pub(super) event: EventId,
    pub(super) stream: usize,
    /// The call behind it.
    pub(super) item: Option<ItemId>,
    /// By itself, with the link to itself.
    pub(super) alone: f64,
    /// Beyond the common latency, when it waits for its call.
    pub(super) after_call: Time,
    /// When it waits for the work before it on its stream.
    pub(super) after_work: Time,
    /// Work of other streams that it waits for, and what lies between.
    pub(super) waits: Vec<(OpId, Time)>,
    pub(super) step: usize,
    pub(super) start: Time,
    pub(super) end: Time,
    /// A change has dropped it.
    pub(super) dropped: bool,
}

impl Graph {
    /// Every device once, in order.
    pub(super) fn devices(&self) -> Vec<i32> {
        let mut devices = self.stream_device.clone();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// Whether kernels run on this stream.
    pub(super) fn has_kernels(&self, stream: usize) -> bool {
        self.streams[stream].iter().any(|op| self.ops[*op].work.is_kernel())
    }
}
