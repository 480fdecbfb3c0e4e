//! What waited for what? Host calls, device work and the edges between them.
//!
//! [`Graph::of`] makes every edge once. An edge is recorded by the profiler or inferred by a [`Rule`], which says how much it can
//! be trusted. The simulation, the critical path and the idle causes read these edges and infer none of their own.

mod build;
mod builder;
mod handover;
mod host_waits;
mod stream_waits;
mod timing;

use busbound_trace::{Call, Direction, EventId, Timestamp, Trace, TrackId};
use serde::Serialize;

use crate::Time;
use crate::collective::CollectiveNames;
use crate::host::Host;

pub use build::is_matrix_kernel;
pub use handover::handed_over;

pub type WorkId = usize;
pub type CallId = usize;

/// The dependencies of a trace.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Stream by stream, in order of start.
    pub work: Vec<WorkNode>,
    pub streams: Vec<Stream>,
    /// Thread by thread, in order of start: calls that issue work or wait for it.
    pub calls: Vec<CallNode>,
    pub threads: Vec<Thread>,
    /// From a call to its work with nothing in the way: the shortest seen.
    pub latency: Time,
    /// Whether the trace records which event or stream was waited for.
    pub records_waits: bool,
}

/// One stream of one device.
#[derive(Debug, Clone)]
pub struct Stream {
    pub track: TrackId,
    pub device: i32,
    pub work: Vec<WorkId>,
}

/// One host thread that calls into the runtime or driver.
#[derive(Debug, Clone)]
pub struct Thread {
    pub track: TrackId,
    pub calls: Vec<CallId>,
}

/// One piece of device work.
#[derive(Debug, Clone)]
pub struct WorkNode {
    pub event: EventId,
    pub kind: WorkKind,
    pub stream: usize,
    /// Its place in the stream's order.
    pub position: usize,
    pub start: Time,
    pub end: Time,
    /// The call that issued it.
    pub call: Option<CallId>,
    /// Work of other streams that it waited for.
    pub waits: Vec<Wait>,
    /// Time before its start that no edge explains.
    pub unexplained: Time,
}

/// A call that issues work or waits for it.
#[derive(Debug, Clone)]
pub struct CallNode {
    pub event: EventId,
    pub thread: usize,
    /// Its place in the thread's order.
    pub position: usize,
    pub start: Time,
    pub end: Time,
    pub action: HostAction,
    /// The work whose end let the call return, where it waited for any.
    pub released_by: Option<Wait>,
    /// The call of another thread that handed over to this one's thread.
    pub after: Option<CallId>,
}

/// An edge from the end of device work to whoever waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    pub on: WorkId,
    pub rule: Rule,
}

/// What a call does to the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostAction {
    /// Hands work to the device and returns.
    Issue(Vec<WorkId>),
    /// Hands a copy to the device and returns when it is done.
    IssueBlocking(WorkId),
    /// Waits; `copy` is the one whose own operator waits for it.
    Wait { awaited: Awaited, copy: Option<WorkId> },
    /// Does nothing any more: a change removed it.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    Stream(usize),
    Device(i32),
    Work(WorkId),
    /// Unknown, or there was nothing to wait for.
    None,
}

/// What a piece of device work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// `heavy` kernels keep tensor cores busy and draw power.
    Kernel {
        heavy: bool,
    },
    /// A kernel that moves data between devices.
    Collective,
    Copy {
        direction: Direction,
        pageable: bool,
        bytes: u64,
    },
    /// Page migrations and copies without details.
    OtherCopy,
    Memset,
}

impl WorkKind {
    /// The direction of a copy between host and device.
    pub fn bus(self) -> Option<Direction> {
        match self {
            Self::Copy { direction: d @ (Direction::HostToDevice | Direction::DeviceToHost), .. } => Some(d),
            _ => None,
        }
    }

    pub fn is_kernel(self) -> bool {
        matches!(self, Self::Kernel { .. } | Self::Collective)
    }

    pub fn is_copy(self) -> bool {
        matches!(self, Self::Copy { .. } | Self::OtherCopy)
    }
}

/// What made an edge. Each edge of the graph has exactly one.
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
    /// As many events were recorded on one stream as waits were asked for by the other: paired in order.
    PairedEvents,
    /// A stream was asked to wait; the work of another stream that ended last by then.
    EndedBeforeWait,
    /// Work started late, just after work of another stream ended.
    EndedJustBefore,
    /// The profiler recorded what the host waited for.
    RecordedHostWait,
    /// The copy call returned after its copy had ended, or staged it.
    BlockingCopy,
    /// The wait right behind a copy, in the copy's own operator.
    CopyOperator,
    /// A call that waits for everything on a device, by its name.
    DeviceSync,
    /// The work that ended last while the host waited.
    EndedDuringWait,
    /// A thread had nothing to do while another one that launches worked.
    ThreadHandover,
}

/// How much an edge can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Confidence {
    /// The times fit; other explanations may too.
    Possible,
    /// A call says that there was a wait; the times say for what.
    Likely,
    /// In the trace, or true of every CUDA program.
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
            Self::EndedJustBefore | Self::ThreadHandover => Confidence::Possible,
        }
    }

    /// Whether the profiler recorded the wait itself.
    pub fn is_recorded(self) -> bool {
        matches!(self, Self::RecordedStreamWait | Self::RecordedHostWait)
    }

    /// One sentence for people who ask why.
    pub fn describe(self) -> &'static str {
        match self {
            Self::StreamOrder => "streams run their work in order",
            Self::Correlation => "the work carries the call's correlation id",
            Self::RecordedStreamWait => "the profiler recorded the wait between the streams",
            Self::PairedEvents => "event records and waits of the step paired in order",
            Self::EndedBeforeWait => "the work of another stream that ended last before the wait",
            Self::EndedJustBefore => "work of another stream ended just before this started",
            Self::RecordedHostWait => "the profiler recorded what the host waited for",
            Self::BlockingCopy => "the copy call returned after its copy",
            Self::CopyOperator => "the wait in the copy's own operator",
            Self::DeviceSync => "the call waits for the whole device",
            Self::EndedDuringWait => "the work that ended last while the host waited",
            Self::ThreadHandover => "the thread was idle while another one launched work",
        }
    }
}

/// What of a trace the graph is built from.
#[derive(Debug, Clone, Copy)]
pub struct Activity<'a> {
    pub trace: &'a Trace,
    pub host: &'a Host<'a>,
    pub collectives: &'a CollectiveNames,
}

impl Graph {
    /// `starts` are the beginnings of the steps on the host; empty where there are none.
    pub fn of(activity: Activity<'_>, starts: &[Timestamp]) -> Self {
        build::build(activity, starts)
    }

    /// The device that a piece of work runs on.
    pub fn device_of(&self, work: WorkId) -> i32 {
        self.streams[self.work[work].stream].device
    }

    /// When the call behind a piece of work began.
    pub fn issued_at(&self, work: WorkId) -> Option<Time> {
        self.work[work].call.map(|call| self.calls[call].start)
    }

    /// The work before on the same stream.
    pub fn before(&self, work: WorkId) -> Option<WorkId> {
        let node = &self.work[work];
        Some(self.streams[node.stream].work[node.position.checked_sub(1)?])
    }

    /// Of one stream: the work that ended last by `end` and satisfies `wanted`, searched back from there.
    pub fn last_ended(
        &self,
        stream: usize,
        end: Time,
        depth: usize,
        wanted: impl Fn(WorkId) -> bool,
    ) -> Option<WorkId> {
        let order = &self.streams[stream].work;
        let upto = order.partition_point(|work| self.work[*work].start <= end);
        let ended = |work: &WorkId| self.work[*work].end <= end && wanted(*work);
        order[..upto].iter().rev().take(depth).copied().find(ended)
    }

    /// The last work of a stream that was issued before `issued` and ended by `end`.
    pub fn given_before(&self, stream: usize, issued: Time, end: Time, depth: usize) -> Option<WorkId> {
        self.last_ended(stream, end, depth, |work| self.issued_at(work).is_none_or(|at| at < issued))
    }

    /// Streams of a device, or of all.
    pub fn streams_of(&self, device: Option<i32>) -> impl Iterator<Item = usize> + '_ {
        (0..self.streams.len()).filter(move |s| device.is_none_or(|device| self.streams[*s].device == device))
    }

    /// Adds an edge, unless it would go backward in time or is there already.
    fn add_wait(&mut self, work: WorkId, on: WorkId, rule: Rule) -> bool {
        // Nothing waits for what began with it or after it: waits must not form a circle.
        if self.work[on].start >= self.work[work].start {
            return false;
        }
        let waits = &mut self.work[work].waits;
        if !waits.iter().any(|known| known.on == on) {
            waits.push(Wait { on, rule });
        }
        true
    }
}

impl CallNode {
    /// Whether the call can return only after the device has done something.
    pub fn blocks(&self) -> bool {
        matches!(self.action, HostAction::IssueBlocking(_) | HostAction::Wait { .. })
    }

    /// The work that the call hands to the device.
    pub fn issued(&self) -> &[WorkId] {
        self.action.issued()
    }
}

impl HostAction {
    pub fn issued(&self) -> &[WorkId] {
        match self {
            Self::Issue(work) => work,
            Self::IssueBlocking(work) => std::slice::from_ref(work),
            Self::Wait { .. } | Self::Nothing => &[],
        }
    }
}

/// Whether a call's name makes it one that the graph keeps out of its order: it marks a stream or makes one wait.
fn shapes_streams(kind: Call) -> bool {
    matches!(kind, Call::RecordEvent | Call::WaitEvent)
}
