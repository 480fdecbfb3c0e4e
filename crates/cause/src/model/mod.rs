//! What does a stretch of steps take, and why? The graph cut to the stretch, with the time that each call and each piece of work
//! takes by itself. Changes are made to this model; [`simulate`](crate::simulate) runs it.

mod delays;
mod of_graph;
mod own_time;

use busbound_trace::{EventId, Timestamp};

use crate::Time;
use crate::graph::{CallId, Graph, HostAction, Rule, WorkId, WorkKind};

/// The steps that a model covers.
#[derive(Debug, Clone)]
pub struct Stretch {
    /// Where each begins on the host.
    pub starts: Vec<Timestamp>,
    /// When the work of the last one is done.
    pub end: Timestamp,
}

/// One stretch of steps, ready to be run again. Times are nanoseconds from the beginning of the first step.
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
    pub edges: EdgeCounts,
    /// What a copy takes of the host that does not wait for it.
    pub copy_call: Time,
    /// From a call to its work, with nothing in the way.
    pub latency: Time,
}

/// How much of the model is recorded, and how much inferred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EdgeCounts {
    /// Waits between streams that the profiler recorded.
    pub recorded: usize,
    /// Waits between streams that are inferred.
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
    /// A call of another thread that came before, and the time between.
    pub after: Option<(CallId, Time)>,
    /// The call's own time, waiting not counted.
    pub cost: Time,
    pub step: usize,
    /// When it was, in the trace.
    pub start: Time,
    pub end: Time,
}

/// One piece of the device's work.
#[derive(Debug, Clone)]
pub struct Work {
    pub kind: WorkKind,
    pub event: EventId,
    pub stream: usize,
    /// The call behind it.
    pub call: Option<CallId>,
    /// What it takes by itself, with the link to itself.
    pub alone: f64,
    /// Beyond the common latency, when it waits for its call.
    pub after_call: Time,
    /// When it waits for the work before it on its stream.
    pub after_work: Time,
    /// Work of other streams that it waits for, and the time between.
    pub waits: Vec<(WorkId, Time)>,
    pub step: usize,
    pub start: Time,
    pub end: Time,
    /// A change has dropped it.
    pub dropped: bool,
}

impl Model {
    /// The part of a graph that lies within a stretch. `duplex` is a copy's time while the other direction is busy, as a multiple
    /// of its time alone.
    pub fn of(graph: &Graph, stretch: &Stretch, duplex: f64) -> Self {
        let mut model = of_graph::cut(graph, stretch);
        delays::set(&mut model);
        own_time::set(&mut model, duplex);
        model
    }

    /// Every device once, in order.
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

    fn issued_at(&self, work: WorkId) -> Option<Time> {
        self.work[work].call.map(|call| self.calls[call].start)
    }
}

impl EdgeCounts {
    fn count(&mut self, rule: Rule) {
        match rule {
            Rule::ThreadHandover => self.handed_over += 1,
            rule if rule.is_recorded() => self.recorded += 1,
            _ => self.inferred += 1,
        }
    }
}
