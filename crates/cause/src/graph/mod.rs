//! What waited for what? Host calls, device work and the edges between them.
//!
//! [`Graph::of`] makes every edge once. An edge is recorded by the profiler or inferred by a [`Rule`], which says how reliable it
//! is. The simulation, the critical path and the idle causes read these edges and infer no others.

mod build;
mod builder;
mod ended;
mod host_waits;
mod rule;
mod silent_waits;
mod stream_waits;
mod thread_waits;
mod timing;
mod waits;

use std::num::NonZeroU32;
use std::ops::Range;

use busbound_trace::{Call, Direction, EventId, Timestamp, Trace, TrackId};

use crate::Time;
use crate::collective::CollectiveNames;
use crate::few::Few;
use crate::host::{Host, HostUse};
use crate::host_memory::{HostBytes, HostMemory};

pub use rule::{Confidence, Rule};
pub use thread_waits::waited_for_thread;
pub use waits::Wait;
use waits::Waits;

pub type WorkId = usize;
pub type CallId = usize;

/// The id of work or of a call, as nodes keep it: in a quarter of the memory of an optional `usize`. A trace has at most as many
/// events as fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(NonZeroU32);

impl NodeId {
    pub(crate) fn of(id: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(u32::try_from(id).unwrap_or(u32::MAX)))
    }

    pub fn get(self) -> usize {
        self.0.get() as usize - 1
    }
}

// Traces have millions of nodes.
const _: () = assert!(size_of::<WorkNode>() <= 48 && size_of::<CallNode>() <= 56);

/// The dependencies of a trace.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Grouped by stream, sorted by start.
    pub work: Vec<WorkNode>,
    pub streams: Vec<Stream>,
    /// Calls that issue work or wait for it, grouped by thread, sorted by start.
    pub calls: Vec<CallNode>,
    pub threads: Vec<Thread>,
    /// What calls issue that issue more than one.
    issued: Vec<NodeId>,
    /// What each call of those issues.
    several: Vec<Part>,
    /// What work waits for that waits for more than one.
    several_waits: Vec<Vec<Wait>>,
    /// The calls that wait.
    awaited: Vec<HostWait>,
    /// By call: the call on another thread that its thread waited for. Empty if no thread waits for another.
    after: Vec<Option<NodeId>>,
    /// Calls before which their thread may have waited without a record of it, in order, and the work that it waited for.
    after_work: Vec<(NodeId, NodeId)>,
    /// Work that started later than its edges explain, in order, and how much later.
    unexplained: Vec<(NodeId, Time)>,
    /// Minimum latency from a call to its work.
    pub latency: Time,
    /// Whether the trace records what each wait was for.
    pub records_waits: bool,
    /// Kernels that read or write host memory.
    pub host_memory: HostMemory,
    ends: ended::Ends,
}

/// One stream of one device.
#[derive(Debug, Clone)]
pub struct Stream {
    pub track: TrackId,
    pub device: i32,
    /// In the order of the stream.
    pub work: Range<WorkId>,
}

/// One host thread that calls into the runtime or driver.
#[derive(Debug, Clone)]
pub struct Thread {
    pub track: TrackId,
    /// In the order of the thread.
    pub calls: Range<CallId>,
}

/// One kernel, copy or memset.
#[derive(Debug, Clone)]
pub struct WorkNode {
    pub event: EventId,
    pub kind: WorkKind,
    pub start: Time,
    pub end: Time,
    waits: Waits,
    call: Option<NodeId>,
}

/// A call that issues work or waits for it.
#[derive(Debug, Clone)]
pub struct CallNode {
    pub event: EventId,
    pub start: Time,
    pub end: Time,
    pub action: CallAction,
    // The parts of a `HostTime`: that would take more memory within a node.
    uses: Few<(HostUse, Time)>,
    operators: u32,
    calls: u32,
    frames: u32,
}

/// The host time before a node of the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostTime {
    /// In the order in which they occur; short host work before a launch has one entry.
    pub uses: Few<(HostUse, Time)>,
    /// Recorded events, including the node itself: each of them cost the profiler time.
    pub operators: u32,
    pub calls: u32,
    pub frames: u32,
}

impl HostTime {
    pub fn total(&self) -> Time {
        self.uses.iter().map(|(_, time)| time).sum()
    }

    /// The part in this use.
    pub fn of(&self, what: HostUse) -> Time {
        self.uses.iter().filter(|(of, _)| *of == what).map(|(_, time)| time).sum()
    }

    /// Changes the total; each use keeps its share. Time that was not known before is waiting.
    pub fn set_total(&mut self, total: Time) {
        let known = self.total();
        if known <= 0 {
            self.uses = Few::one((HostUse::Waiting, total.max(0)));
            return;
        }
        let mut left = total.max(0);
        for (_, time) in self.uses.iter_mut().skip(1) {
            *time = (*time as f64 * total.max(0) as f64 / known as f64) as Time;
            left -= *time;
        }
        self.uses[0].1 = left.max(0);
    }
}

/// Where steps begin and end on the host.
#[derive(Debug, Clone, Default)]
pub struct StepMarks {
    /// The start of each step; empty if the trace has no steps.
    pub starts: Vec<Timestamp>,
    /// The thread that marks them, with the end of each step and its annotation; `None` if nothing marks them.
    pub ends: Option<(TrackId, Vec<(Timestamp, EventId)>)>,
}

/// A call that waits.
#[derive(Debug, Clone, Copy)]
struct HostWait {
    awaited: Awaited,
    /// The copy whose operator the wait is in.
    copy: Option<WorkId>,
    released_by: Option<Wait>,
}

/// What a call of the graph does to the device. [`Graph::action`] has the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallAction {
    /// Issues work and returns.
    Issue {
        work: NodeId,
        /// Whether it brings back a tensor that autograd saved on the host.
        is_unpacking: bool,
    },
    /// The same with more than one.
    IssueSeveral { work: SeveralId, is_unpacking: bool },
    /// Issues a copy and returns when it is done.
    IssueBlocking {
        copy: NodeId,
        /// Whether it waits by definition: the call is not asynchronous.
        is_synchronous: bool,
        /// Whether it brings back a tensor that autograd saved on the host.
        is_unpacking: bool,
    },
    /// Waits.
    Wait(WaitId),
    /// The host ends a step.
    EndStep,
}

/// The number of a call among those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitId(u32);

/// The number of a call among those that issue more than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeveralId(u32);

/// Which part of a list of the graph belongs to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    first: u32,
    count: u32,
}

impl Part {
    /// The next items to be added to a list.
    fn next(list: usize, count: usize) -> Self {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Self { first: number(list), count: number(count) }
    }

    fn range(self) -> Range<usize> {
        self.first as usize..self.first as usize + self.count as usize
    }
}

/// What a call does to the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostAction {
    /// Issues work and returns.
    Issue(Few<WorkId>),
    /// Issues a copy and returns when it is done.
    IssueBlocking(WorkId),
    /// Waits; `copy` is set if the wait is in the copy's own operator.
    Wait { awaited: Awaited, copy: Option<WorkId> },
    /// The host ends a step.
    EndStep,
    /// Does nothing: a change removed it.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    Stream(usize),
    Device(i32),
    Work(WorkId),
    /// Unknown, or nothing to wait for.
    None,
}

/// The kind of device work.
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

    /// Bytes of a copy; 0 for other work.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Copy { bytes, .. } => bytes,
            _ => 0,
        }
    }

    pub fn is_kernel(self) -> bool {
        matches!(self, Self::Kernel { .. } | Self::Collective)
    }

    pub fn is_copy(self) -> bool {
        matches!(self, Self::Copy { .. } | Self::OtherCopy)
    }
}

/// The input of the graph.
#[derive(Debug, Clone, Copy)]
pub struct Activity<'a> {
    pub trace: &'a Trace,
    pub host: &'a Host<'a>,
    pub collectives: &'a CollectiveNames,
}

impl Graph {
    pub fn of(activity: Activity<'_>, steps: &StepMarks) -> Self {
        build::build(activity, steps)
    }

    /// The device that the work runs on.
    pub fn device_of(&self, work: WorkId) -> i32 {
        self.streams[self.stream_of(work)].device
    }

    /// The stream of the work: they are in order.
    pub fn stream_of(&self, work: WorkId) -> usize {
        self.streams.partition_point(|stream| stream.work.end <= work)
    }

    /// The thread of the call: they are in order.
    pub fn thread_of(&self, call: CallId) -> usize {
        self.threads.partition_point(|thread| thread.calls.end <= call)
    }

    /// When the call that issued the work started.
    pub fn issued_at(&self, work: WorkId) -> Option<Time> {
        self.work[work].call().map(|call| self.calls[call].start)
    }

    /// The previous work on the same stream.
    pub fn before(&self, work: WorkId) -> Option<WorkId> {
        let order = &self.streams[self.stream_of(work)].work;
        (work > order.start).then(|| work - 1)
    }

    /// The previous call on the same thread.
    pub fn call_before(&self, call: CallId) -> Option<CallId> {
        let order = &self.threads[self.thread_of(call)].calls;
        (call > order.start).then(|| call - 1)
    }

    /// What a call does to the device.
    pub fn action(&self, call: CallId) -> HostAction {
        match self.calls[call].action {
            CallAction::Issue { .. } | CallAction::IssueSeveral { .. } => {
                HostAction::Issue(self.issued_by(call).collect())
            }
            CallAction::IssueBlocking { copy, .. } => HostAction::IssueBlocking(copy.get()),
            CallAction::Wait(WaitId(wait)) => {
                let HostWait { awaited, copy, .. } = self.awaited[wait as usize];
                HostAction::Wait { awaited, copy }
            }
            CallAction::EndStep => HostAction::EndStep,
        }
    }

    /// The work that a call issues.
    pub fn issued_by(&self, call: CallId) -> impl DoubleEndedIterator<Item = WorkId> + '_ {
        let (many, one) = match self.calls[call].action {
            CallAction::IssueSeveral { work, .. } => {
                (&self.issued[self.several[work.0 as usize].range()], None)
            }
            CallAction::Issue { work: one, .. } | CallAction::IssueBlocking { copy: one, .. } => {
                (&[][..], Some(one))
            }
            CallAction::Wait(_) | CallAction::EndStep => (&[][..], None),
        };
        many.iter().copied().chain(one).map(NodeId::get)
    }

    /// The work whose end let a call return, if it waited for any.
    pub fn released_by(&self, call: CallId) -> Option<Wait> {
        match self.calls[call].action {
            CallAction::IssueBlocking { copy: on, .. } => Some(Wait { on, rule: Rule::BlockingCopy }),
            CallAction::Wait(WaitId(wait)) => self.awaited[wait as usize].released_by,
            CallAction::Issue { .. } | CallAction::IssueSeveral { .. } | CallAction::EndStep => None,
        }
    }

    /// The call on another thread that a call's thread waited for.
    pub fn after(&self, call: CallId) -> Option<CallId> {
        self.after.get(call).copied().flatten().map(NodeId::get)
    }

    /// The call on another thread whose lock a call waited for after it had begun.
    pub fn blocked_by(&self, call: CallId) -> Option<CallId> {
        self.after(call).filter(|other| self.calls[*other].end > self.calls[call].start)
    }

    /// When a call began, or got the lock that it waited for.
    pub fn begun(&self, call: CallId) -> Time {
        self.blocked_by(call).map_or(self.calls[call].start, |other| self.calls[other].end)
    }

    /// Work that ended last while nothing was recorded on a call's thread and the device was busy: the thread may have waited for it.
    pub fn after_work(&self, call: CallId) -> Option<WorkId> {
        let place = self.after_work.binary_search_by_key(&call, |(call, _)| call.get()).ok()?;
        Some(self.after_work[place].1.get())
    }

    /// The work that the thread may have waited for before the call, without a record of it.
    pub fn silent_wait(&self, call: CallId) -> Option<WorkId> {
        self.after_work(call).filter(|_| !self.calls[call].blocks())
    }

    /// Work that started later than its edges explain, in order, and how much later.
    pub(crate) fn unexplained(&self) -> impl Iterator<Item = (WorkId, Time)> + '_ {
        self.unexplained.iter().map(|(work, time)| (work.get(), *time))
    }

    /// A kernel that reads or writes host memory itself.
    pub fn host_bytes(&self, work: &WorkNode) -> Option<HostBytes> {
        self.host_memory.bytes(work.event)
    }

    /// Streams of one device, or of all devices.
    pub fn streams_of(&self, device: Option<i32>) -> Range<usize> {
        let Some(device) = device else { return 0..self.streams.len() };
        // They are in the order of their devices.
        let first = self.streams.partition_point(|stream| stream.device < device);
        first..self.streams.partition_point(|stream| stream.device <= device)
    }

    /// The work of a device, by start.
    pub(crate) fn in_order(&self, device: i32) -> Vec<NodeId> {
        let streams = || self.streams_of(Some(device)).map(|stream| self.streams[stream].work.clone());
        let mut order = Vec::with_capacity(streams().map(|work| work.len()).sum());
        order.extend(streams().flatten().map(NodeId::of));
        order.sort_by_key(|work| self.work[work.get()].start);
        order
    }
}

impl WorkNode {
    /// The call that issued it.
    pub fn call(&self) -> Option<CallId> {
        self.call.map(NodeId::get)
    }
}

impl CallNode {
    /// What the thread did since its previous node.
    pub fn since(&self) -> HostTime {
        let Self { operators, calls, frames, .. } = *self;
        HostTime { uses: self.uses.clone(), operators, calls, frames }
    }

    /// Whether it waits by definition: a copy call that is not asynchronous.
    pub fn is_synchronous(&self) -> bool {
        matches!(self.action, CallAction::IssueBlocking { is_synchronous: true, .. })
    }

    /// Whether it brings back a tensor that autograd saved on the host.
    pub fn is_unpacking(&self) -> bool {
        matches!(
            self.action,
            CallAction::IssueBlocking { is_unpacking: true, .. }
                | CallAction::Issue { is_unpacking: true, .. }
                | CallAction::IssueSeveral { is_unpacking: true, .. }
        )
    }

    /// Whether the call returns only after the device has finished some work.
    pub fn blocks(&self) -> bool {
        matches!(self.action, CallAction::IssueBlocking { .. } | CallAction::Wait(_))
    }
}

impl HostAction {
    pub fn issued(&self) -> &[WorkId] {
        match self {
            Self::Issue(work) => work,
            Self::IssueBlocking(work) => std::slice::from_ref(work),
            Self::Wait { .. } | Self::EndStep | Self::Nothing => &[],
        }
    }
}

/// Whether a call records an event on a stream or makes a stream wait; such calls are not nodes of the graph.
fn shapes_streams(kind: Call) -> bool {
    matches!(kind, Call::RecordEvent | Call::WaitEvent)
}
