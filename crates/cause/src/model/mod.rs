//! How long does a range of steps take, and why? The part of the graph within the range, with the time of each call, kernel and
//! copy without contention. Changes edit this model; [`simulate`](crate::simulate) runs it.

mod delays;
mod join;
mod of_graph;
mod on_host;
mod own_time;
mod unprofiled;

use busbound_trace::{EventId, Timestamp, TrackId};

pub use join::JoinedRank;
pub use on_host::HostThreads;
pub use unprofiled::{FreshPages, RecordingCost};

use crate::Time;
use crate::few::Few;
use crate::graph::{CallId, Graph, HostAction, HostTime, Rule, WorkId, WorkKind};
use crate::host::HostUse;
use crate::host_collective::HostCollective;
use crate::host_memory::HostBytes;
use crate::sharing::Sharing;

/// The steps that a model covers.
#[derive(Debug, Clone)]
pub struct TraceRange {
    /// The start of each step on the host.
    pub starts: Vec<Timestamp>,
    /// How many of them are whole: the last one may be cut off, and has no length.
    pub whole: usize,
    /// When the work of the last step is done.
    pub end: Timestamp,
}

/// A range of steps, ready to replay. Times are nanoseconds since the start of the first step.
#[derive(Debug, Default)]
pub struct Model {
    pub calls: Vec<HostCall>,
    /// Per thread: its calls in order.
    pub threads: Vec<Vec<CallId>>,
    /// Per thread: where it is in the trace.
    pub tracks: Vec<TrackId>,
    pub work: Vec<Work>,
    /// Per stream: its work in order.
    pub streams: Vec<Vec<WorkId>>,
    pub stream_device: Vec<i32>,
    /// When the last work or call ended.
    pub end: Time,
    pub steps: usize,
    /// The steps that have a length, from the first one on.
    pub whole_steps: usize,
    pub edges: EdgeCounts,
    /// Host time of a copy call that does not wait for the copy.
    pub copy_call: Time,
    /// Minimum latency from a call to its work.
    pub latency: Time,
}

/// How much of the model is recorded, and how much inferred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EdgeCounts {
    /// Waits between streams that the profiler recorded.
    pub recorded: usize,
    /// Waits between streams that are inferred.
    pub inferred: usize,
    /// Waits of a thread for another thread.
    pub thread_waits: usize,
    /// Work whose call is not in the trace.
    pub without_call: usize,
    /// Time that the device waited for an unknown reason.
    pub unexplained: Time,
}

/// One call on a thread.
#[derive(Debug, Clone)]
pub struct HostCall {
    pub action: HostAction,
    /// Host work since the previous call.
    pub since: HostTime,
    /// A call on another thread that this call waited for, and the delay after it.
    pub after: Option<(CallId, Time)>,
    /// Work that ended last while nothing was recorded on the thread and the device was busy: the thread may have waited for it.
    pub after_work: Option<WorkId>,
    /// The call's own time, without waiting, and what it is spent on.
    pub cost: Time,
    pub cost_use: HostUse,
    /// Whether it waits by definition: a copy call that is not asynchronous.
    pub is_synchronous: bool,
    /// Whether it brings back a tensor that autograd saved on the host.
    pub is_unpacking: bool,
    pub step: usize,
    /// When it started in the trace.
    pub start: Time,
    pub end: Time,
}

/// One kernel, copy or memset on the device.
#[derive(Debug, Clone)]
pub struct Work {
    pub kind: WorkKind,
    /// A kernel that reads or writes host memory itself.
    pub host: Option<HostBytes>,
    pub event: EventId,
    pub stream: usize,
    /// The call that issued it.
    pub call: Option<CallId>,
    /// Its time without contention.
    pub alone: f64,
    /// Delay after its call, in addition to the common latency.
    pub after_call: Time,
    /// Delay after the previous work on its stream.
    pub after_work: Time,
    /// Work on other streams that it waits for, and the delay after it.
    pub waits: Few<(WorkId, Time)>,
    pub step: usize,
    pub start: Time,
    pub end: Time,
    /// Whether a change removed it.
    pub dropped: bool,
}

impl HostCall {
    /// Whether the call returns only after the device has finished some work.
    pub fn blocks(&self) -> bool {
        matches!(self.action, HostAction::IssueBlocking(_) | HostAction::Wait { .. })
    }

    /// Host time since the previous call.
    pub fn gap(&self) -> Time {
        self.since.total()
    }

    pub fn set_gap(&mut self, gap: Time) {
        self.since.set_total(gap);
    }
}

impl Clone for Model {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        copy.clone_from(self);
        copy
    }

    /// Uses the memory of the model that is replaced: what-ifs copy models of megabytes again and again.
    fn clone_from(&mut self, source: &Self) {
        let Self {
            calls,
            threads,
            tracks,
            work,
            streams,
            stream_device,
            end,
            steps,
            whole_steps,
            edges,
            copy_call,
            latency,
        } = source;
        self.calls.clone_from(calls);
        self.threads.clone_from(threads);
        self.tracks.clone_from(tracks);
        self.work.clone_from(work);
        self.streams.clone_from(streams);
        self.stream_device.clone_from(stream_device);
        (self.end, self.steps, self.whole_steps) = (*end, *steps, *whole_steps);
        (self.edges, self.copy_call, self.latency) = (*edges, *copy_call, *latency);
    }
}

impl Model {
    /// The part of a graph within a range of steps. `sharing` is what concurrent work costs.
    pub fn of(graph: &Graph, stretch: &TraceRange, sharing: &Sharing) -> Self {
        let mut model = of_graph::cut(graph, stretch);
        delays::set(&mut model);
        own_time::set(&mut model, sharing);
        model
    }

    /// The same with collectives that a library carries out on the host: ranks can wait for each other in them.
    pub fn with_collectives(
        graph: &Graph,
        stretch: &TraceRange,
        sharing: &Sharing,
        threads: HostThreads<'_>,
        collectives: &[HostCollective],
    ) -> Self {
        let mut model = of_graph::cut(graph, stretch);
        on_host::add(&mut model, stretch, threads, collectives);
        delays::set(&mut model);
        own_time::set(&mut model, sharing);
        model
    }

    /// All devices, sorted.
    pub fn devices(&self) -> Vec<i32> {
        let mut devices = self.stream_device.clone();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    /// Whether kernels run on this stream.
    pub fn has_kernels(&self, stream: usize) -> bool {
        self.streams[stream].iter().any(|work| self.work[*work].kind.is_kernel())
    }

    /// Bus copies that directly follow another one of their direction on their stream, each after the one it follows.
    pub fn copies_in_a_row(&self) -> Vec<(WorkId, WorkId)> {
        let direction = |id: WorkId| self.work[id].kind.bus();
        let pairs = self.streams.iter().flat_map(|stream| stream.windows(2)).map(|pair| (pair[0], pair[1]));
        pairs.filter(|(a, b)| direction(*b).is_some() && direction(*a) == direction(*b)).collect()
    }

    fn issued_at(&self, work: WorkId) -> Option<Time> {
        self.work[work].call.map(|call| self.calls[call].start)
    }
}

impl EdgeCounts {
    fn count(&mut self, rule: Rule) {
        match rule {
            Rule::ThreadWait => self.thread_waits += 1,
            rule if rule.is_recorded() => self.recorded += 1,
            _ => self.inferred += 1,
        }
    }
}

/// The mean time from the end of one step to the end of the next. The first step may have waited for work that is not in the
/// graph, so it counts only if there are few steps.
pub(crate) fn mean_step(ends: &[Time]) -> f64 {
    let last = ends.iter().copied().max().unwrap_or(0);
    match ends {
        [first, _, .., _] => (last - first) as f64 / (ends.len() - 1) as f64,
        _ => last as f64 / ends.len().max(1) as f64,
    }
}
