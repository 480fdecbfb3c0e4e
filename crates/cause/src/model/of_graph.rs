//! Which part of a graph is within a range of steps?

use super::{HostCall, Model, TraceRange, Work};
use crate::Time;
use crate::few::Few;
use crate::graph::{
    Awaited, CallAction, CallId, CallNode, Graph, HostAction, HostTime, NodeId, Rule, WorkId, WorkKind,
};
use crate::host::HostUse;
use crate::thresholds::{BLOCKED_LAUNCH, COPY_CALL, EVENT_PASSES, FULL_QUEUE, LAUNCH_CALL};

/// The state of the cut.
struct Cut<'g> {
    graph: &'g Graph,
    begin: Time,
    starts: Vec<Time>,
    until: Time,
    /// New ids of the graph's work and calls.
    work: Vec<Option<NodeId>>,
    calls: Vec<Option<NodeId>>,
    model: Model,
}

pub(super) fn cut(graph: &Graph, stretch: &TraceRange) -> Model {
    let begin = stretch.starts.first().map_or(0, |at| at.as_nanos());
    let mut cut = Cut {
        graph,
        begin,
        starts: stretch.starts.iter().map(|at| at.as_nanos() - begin).collect(),
        until: stretch.end.as_nanos() - begin,
        work: vec![None; graph.work.len()],
        calls: vec![None; graph.calls.len()],
        model: Model {
            steps: stretch.starts.len(),
            whole_steps: stretch.whole.clamp(1, stretch.starts.len().max(1)),
            latency: graph.latency,
            ..Model::default()
        },
    };
    cut.add_work();
    cut.add_calls();
    cut.link_calls();
    cut.add_waits();
    cut.set_copy_call();
    let ends = cut.model.calls.iter().map(|call| call.end).chain(cut.model.work.iter().map(|work| work.end));
    cut.model.end = ends.max().unwrap_or(0);
    cut.model
}

impl Cut<'_> {
    fn step(&self, at: Time) -> usize {
        self.starts.partition_point(|start| *start <= at).saturating_sub(1)
    }

    /// The id in the model of work of the graph.
    fn new_work(&self, work: WorkId) -> Option<WorkId> {
        self.work[work].map(NodeId::get)
    }

    fn add_work(&mut self) {
        for stream in &self.graph.streams {
            let mut order = Vec::new();
            for id in stream.work.clone() {
                let node = &self.graph.work[id];
                let (start, end) = (node.start - self.begin, node.end - self.begin);
                if start < 0 || end > self.until {
                    continue;
                }
                let new = self.model.work.len();
                self.model.work.push(Work {
                    kind: node.kind,
                    host: self.graph.host_bytes(node),
                    event: node.event,
                    stream: self.model.streams.len(),
                    call: None,
                    alone: (end - start) as f64,
                    after_call: 0,
                    after_work: 0,
                    waits: Few::default(),
                    step: self.step(start),
                    start,
                    end,
                    dropped: false,
                });
                self.work[id] = Some(NodeId::of(new));
                order.push(new);
            }
            self.model.streams.push(order);
            self.model.stream_device.push(stream.device);
        }
        let unexplained = self.graph.unexplained().filter(|(work, _)| self.work[*work].is_some());
        self.model.edges.unexplained = unexplained.map(|(_, time)| time).sum();
    }

    fn add_calls(&mut self) {
        for thread in &self.graph.threads {
            let mut order: Vec<CallId> = Vec::new();
            for id in thread.calls.clone() {
                let node = &self.graph.calls[id];
                let (start, end) = (self.graph.begun(id) - self.begin, node.end - self.begin);
                if node.start < self.begin || start > self.until {
                    continue;
                }
                let Some(action) = self.action_of(id) else { continue };
                // The host ends a step where the next one begins.
                let in_step = if node.action == CallAction::EndStep { start - 1 } else { start };
                let (new, step) = (self.model.calls.len(), self.step(in_step));
                for &work in action.issued() {
                    self.model.work[work].call = Some(new);
                    self.model.work[work].step = step;
                }
                let before = order.last().map_or(0, |before| self.model.calls[*before].end);
                let after_work = self.graph.after_work(id).and_then(|work| self.new_work(work));
                self.model.calls.push(HostCall {
                    cost: self.own_cost(id, end.min(self.until.max(start)) + self.begin),
                    cost_use: cost_use(&action, &self.model.work),
                    is_synchronous: node.is_synchronous(),
                    is_unpacking: node.is_unpacking(),
                    after_work,
                    action,
                    // A call within another one has no gap before it.
                    since: match after_work {
                        Some(_) => node.since(),
                        None => since(node, (node.start - self.begin - before).max(0)),
                    },
                    after: None,
                    step,
                    start,
                    end: end.min(self.until.max(start)),
                });
                self.calls[id] = Some(NodeId::of(new));
                order.push(new);
            }
            if !order.is_empty() {
                self.model.threads.push(order);
                self.model.tracks.push(thread.track);
            }
        }
        self.model.edges.without_call = self.model.work.iter().filter(|work| work.call.is_none()).count();
    }

    /// What a call does within the range; `None` if all of its work is outside.
    fn action_of(&self, call: CallId) -> Option<HostAction> {
        let kept = |work: WorkId| self.new_work(work);
        match self.graph.action(call) {
            HostAction::Issue(work) => {
                let work: Few<WorkId> = work.iter().copied().filter_map(kept).collect();
                (!work.is_empty()).then_some(HostAction::Issue(work))
            }
            HostAction::IssueBlocking(work) => Some(HostAction::IssueBlocking(kept(work)?)),
            HostAction::Wait { awaited, copy } => {
                let awaited = match awaited {
                    Awaited::Work(work) => kept(work).map_or(Awaited::None, Awaited::Work),
                    other => other,
                };
                Some(HostAction::Wait { awaited, copy: copy.and_then(kept) })
            }
            HostAction::EndStep => Some(HostAction::EndStep),
            HostAction::Nothing => None,
        }
    }

    /// The call's own time, without waiting.
    fn own_cost(&self, call: CallId, end: Time) -> Time {
        let node = &self.graph.calls[call];
        match self.graph.released_by(call).map(|wait| self.graph.work[wait.on()].end) {
            Some(released) => (end - released.max(node.start)).max(0),
            None if self.waits_for_room(call) => LAUNCH_CALL.min(node.end - self.graph.begun(call)),
            None => node.end - self.graph.begun(call),
        }
    }

    /// Whether a long launch waits until the device has run some of the work that is queued on its stream.
    fn waits_for_room(&self, call: CallId) -> bool {
        let node = &self.graph.calls[call];
        if node.end - node.start < BLOCKED_LAUNCH {
            return false;
        }
        let HostAction::Issue(issued) = self.graph.action(call) else { return false };
        let Some(&first) = issued.iter().next() else { return false };
        let streams = &self.graph.streams;
        let stream = &streams[streams.partition_point(|stream| stream.work.end <= first)];
        let before = &self.graph.work[stream.work.start..first];
        before.len() - before.partition_point(|work| work.end <= node.start) >= FULL_QUEUE
    }

    /// Adds the waits of threads for other threads.
    fn link_calls(&mut self) {
        for (id, node) in self.graph.calls.iter().enumerate() {
            let new = |call: CallId| self.calls[call].map(NodeId::get);
            let (Some(call), Some(other)) = (new(id), self.graph.after(id).and_then(new)) else { continue };
            let between = self.graph.begun(id) - self.begin - self.model.calls[other].end;
            let call = &mut self.model.calls[call];
            call.after = Some((other, between));
            // The delay after its own thread's previous call must not exceed this one.
            // What the thread does after the other one is its own time: it no longer waits.
            if node.start >= self.graph.begun(id) && between < call.gap() {
                call.since.uses.retain(|(what, _)| *what != HostUse::Waiting);
                match call.since.total() {
                    0 => call.since.uses = Few::one((HostUse::Launching, between.max(0))),
                    _ => call.set_gap(between),
                }
            }
            self.model.edges.count(Rule::ThreadWait);
        }
    }

    /// Adds the waits of work for work on other streams.
    fn add_waits(&mut self) {
        for id in 0..self.graph.work.len() {
            let Some(work) = self.new_work(id) else { continue };
            for wait in self.graph.waits_of(id) {
                let Some(on) = self.new_work(wait.on()) else { continue };
                let between = self.model.work[work].start - self.model.work[on].end;
                let most = if wait.rule == Rule::EndedJustBefore { Time::MAX } else { EVENT_PASSES };
                self.model.work[work].waits.push((on, between.clamp(0, most)));
                self.model.edges.count(wait.rule);
            }
        }
    }

    /// Sets the typical time of a call that enqueues a copy and returns.
    fn set_copy_call(&mut self) {
        let model = &self.model;
        let copies = |call: &&HostCall| matches!(&call.action, HostAction::Issue(work) if work.iter().any(|work| model.work[*work].kind.bus().is_some()));
        let mut costs: Vec<Time> = model.calls.iter().filter(copies).map(|call| call.cost).collect();
        costs.sort_unstable();
        self.model.copy_call = costs.get(costs.len() / 2).copied().unwrap_or(COPY_CALL).min(3 * COPY_CALL);
    }
}

/// The host time before a call. The first call of a thread has only the part within the range.
fn since(node: &CallNode, gap: Time) -> HostTime {
    let mut since = node.since();
    let known = since.total();
    if known > gap {
        since.set_total(gap);
    } else if known < gap {
        since.uses.push((HostUse::Waiting, gap - known));
    }
    since
}

/// What the own time of a call is spent on. A call that enqueues a copy and returns is a launch like any other.
fn cost_use(action: &HostAction, work: &[Work]) -> HostUse {
    let stages = |id: &WorkId| matches!(work[*id].kind, WorkKind::Copy { pageable: true, .. });
    match action {
        HostAction::Wait { .. } => HostUse::Synchronizing,
        HostAction::IssueBlocking(_) => HostUse::CopyCall,
        HostAction::Issue(issued) if issued.iter().any(stages) => HostUse::CopyCall,
        HostAction::Issue(_) | HostAction::EndStep | HostAction::Nothing => HostUse::Launching,
    }
}
