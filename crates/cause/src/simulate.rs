//! How long does the graph take? Simulates it: threads call, streams run work in order, copies share each direction of the link.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Time;
use crate::few::Few;
use crate::graph::{CallId, HostAction, NodeId, WorkId};
use crate::grouped::Grouped;
use crate::issued::Issued;
use crate::model::{Model, Work, mean_step};
use crate::running::Running;
use crate::sharing::Sharing;

/// The result of a simulation.
#[derive(Debug, Clone, Default)]
pub struct Simulated {
    pub end: Time,
    /// Start and end of each kernel, copy and memset.
    pub work: Vec<(Time, Time)>,
    /// When the last work or call of each step ended.
    pub step_ends: Vec<Time>,
    /// Time with matrix kernels on the device.
    pub heavy: Time,
    /// Time in which any kernel ran.
    pub kernels: Time,
    /// Whether everything ran: cyclic waits would leave some work undone.
    pub complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SimEvent {
    CallStart(NodeId),
    WorkStart(NodeId),
}

/// What a call or device work still waits for.
#[derive(Debug, Clone, Copy)]
struct Pending {
    left: u32,
    ready: Time,
}

impl Simulated {
    /// The mean step, in nanoseconds.
    pub fn step(&self) -> f64 {
        mean_step(&self.step_ends)
    }
}

pub fn simulate(model: &Model, sharing: &Sharing) -> Simulated {
    Prepared::of(model).simulate(sharing)
}

/// What waits for what in a model: the same in every simulation of it.
#[derive(Debug)]
pub struct Prepared<'m> {
    model: &'m Model,
    work: Vec<Pending>,
    calls: Vec<Pending>,
    /// Per work: the next one on its stream.
    next_work: Vec<Option<NodeId>>,
    /// Per call: the next one on its thread.
    next_call: Vec<Option<NodeId>>,
    /// Per work: the work on other streams that waits for it, and the delay.
    dependents: Grouped<(WorkId, Time)>,
    /// Per call: the calls on other threads that wait for it, and the delay.
    following: Grouped<(CallId, Time)>,
    /// Per work: the calls that may start only after it.
    released: Grouped<CallId>,
}

impl<'m> Prepared<'m> {
    pub fn of(model: &'m Model) -> Self {
        let waits_for_call = |work: &Work| Pending { left: u32::from(work.call.is_some()), ready: 0 };
        let mut prepared = Self {
            model,
            work: model.work.iter().map(waits_for_call).collect(),
            calls: vec![Pending { left: 0, ready: 0 }; model.calls.len()],
            next_work: vec![None; model.work.len()],
            next_call: vec![None; model.calls.len()],
            dependents: Grouped::default(),
            following: Grouped::default(),
            released: Grouped::default(),
        };
        prepared.link_work();
        prepared.link_calls();
        prepared
    }

    fn link_work(&mut self) {
        let model = self.model;
        for stream in &model.streams {
            let mut kept = stream.iter().copied().filter(|id| !model.work[*id].dropped);
            let Some(mut before) = kept.next() else { continue };
            for id in kept {
                self.next_work[before] = Some(NodeId::of(id));
                self.work[id].left += 1;
                before = id;
            }
        }
        let mut dependents = Vec::new();
        for (id, work) in model.work.iter().enumerate().filter(|(_, work)| !work.dropped) {
            for (awaited, between) in work.waits.iter().filter(|(awaited, _)| !model.work[*awaited].dropped) {
                dependents.push((*awaited as u32, (id, *between)));
                self.work[id].left += 1;
            }
        }
        self.dependents = Grouped::of(model.work.len(), &dependents);
    }

    fn link_calls(&mut self) {
        let model = self.model;
        let (mut following, mut released) = (Vec::new(), Vec::new());
        for thread in &model.threads {
            if let Some(&first) = thread.first() {
                self.calls[first].ready = model.calls[first].gap();
            }
            for pair in thread.windows(2) {
                self.next_call[pair[0]] = Some(NodeId::of(pair[1]));
                self.calls[pair[1]].left += 1;
            }
            for &id in thread {
                let call = &model.calls[id];
                if let Some(work) = call.after_work.filter(|work| !model.work[*work].dropped) {
                    released.push((work as u32, id));
                    self.calls[id].left += 1;
                }
                if let Some((other, between)) = call.after {
                    following.push((other as u32, (id, between)));
                    self.calls[id].left += 1;
                }
            }
        }
        self.following = Grouped::of(model.calls.len(), &following);
        self.released = Grouped::of(model.work.len(), &released);
    }

    pub fn simulate(&self, sharing: &Sharing) -> Simulated {
        Simulation::new(self, sharing).run()
    }
}

/// One simulation while it runs.
struct Simulation<'p> {
    graph: &'p Model,
    prepared: &'p Prepared<'p>,
    heap: BinaryHeap<Reverse<(Time, u32, SimEvent)>>,
    order: u32,
    work: Vec<Pending>,
    step_ends: Vec<Time>,
    times: Vec<(Time, Time)>,
    done: Vec<bool>,
    ended_calls: Vec<bool>,
    calls: Vec<Pending>,
    /// Per work: the calls that wait for it.
    waiting_calls: Vec<Few<NodeId>>,
    /// Per waiting call: how many kernels and copies it still waits for.
    awaited_left: Vec<u32>,
    issued: Issued,
    running: Running,
    now: Time,
    end: Time,
    heavy: Time,
    kernels: Time,
}

impl<'p> Simulation<'p> {
    fn new(prepared: &'p Prepared<'p>, sharing: &Sharing) -> Self {
        let graph = prepared.model;
        let issued = Issued::new(graph);
        Self {
            heap: BinaryHeap::new(),
            order: 0,
            step_ends: vec![0; graph.steps.max(1)],
            times: vec![(0, 0); graph.work.len()],
            done: graph.work.iter().map(|work| work.dropped).collect(),
            ended_calls: vec![false; graph.calls.len()],
            waiting_calls: vec![Few::default(); graph.work.len()],
            awaited_left: vec![0; graph.calls.len()],
            running: Running::new(issued.devices(), *sharing),
            issued,
            now: 0,
            end: 0,
            heavy: 0,
            kernels: 0,
            work: prepared.work.clone(),
            calls: prepared.calls.clone(),
            graph,
            prepared,
        }
    }

    fn at(&mut self, time: Time, event: SimEvent) {
        self.order += 1;
        self.heap.push(Reverse((time.max(self.now), self.order, event)));
    }

    fn run(mut self) -> Simulated {
        let mut first: Vec<CallId> =
            self.graph.threads.iter().filter_map(|thread| thread.first().copied()).collect();
        first.sort_unstable();
        for call in first {
            if self.calls[call].left == 0 {
                self.at(self.calls[call].ready, SimEvent::CallStart(NodeId::of(call)));
            }
        }
        for work in 0..self.work.len() {
            if self.work[work].left == 0 && !self.graph.work[work].dropped {
                let start = self.graph.work[work].after_call;
                self.at(start, SimEvent::WorkStart(NodeId::of(work)));
            }
        }
        loop {
            let next_end = self.running.next_end();
            let next = self.heap.peek().map(|Reverse((time, ..))| *time);
            match (next, next_end) {
                (None, None) => break,
                (Some(time), ended) if ended.is_none_or(|(at, _)| time < at) => {
                    self.advance(time);
                    if let Some(Reverse((_, _, event))) = self.heap.pop() {
                        self.handle(event);
                    }
                }
                (_, Some((time, work))) => {
                    self.advance(time);
                    self.finish(work);
                }
                (Some(_), None) => unreachable!("an event without an end before it is handled above"),
            }
        }
        let called = self.graph.threads.iter().flatten().all(|call| self.ended_calls[*call]);
        let complete = called && self.done.iter().all(|done| *done);
        self.step_ends.truncate(self.graph.whole_steps);
        Simulated {
            end: self.end,
            work: self.times,
            step_ends: self.step_ends,
            heavy: self.heavy,
            kernels: self.kernels,
            complete,
        }
    }

    fn ended(&mut self, step: usize, at: Time) {
        self.end = self.end.max(at);
        if let Some(end) = self.step_ends.get_mut(step) {
            *end = (*end).max(at);
        }
    }

    fn advance(&mut self, to: Time) {
        if self.running.has_heavy() {
            self.heavy += to - self.now;
        }
        if self.running.has_kernels() {
            self.kernels += to - self.now;
        }
        self.now = to;
    }

    fn handle(&mut self, event: SimEvent) {
        match event {
            SimEvent::CallStart(call) => self.start_call(call.get()),
            SimEvent::WorkStart(work) => self.start_work(work.get()),
        }
    }

    /// A call ends, now or later: nothing that happens until then changes when.
    fn end_call(&mut self, call: CallId, at: Time) {
        let at = at.max(self.now);
        self.ended_calls[call] = true;
        self.ended(self.graph.calls[call].step, at);
        let prepared = self.prepared;
        let next = prepared.next_call[call].map(|next| (next.get(), self.graph.calls[next.get()].gap()));
        for (next, between) in next.into_iter().chain(prepared.following[call].iter().copied()) {
            self.call_ready(next, at + between);
        }
    }

    fn start_call(&mut self, id: CallId) {
        let graph = self.graph;
        let call = &graph.calls[id];
        match &call.action {
            HostAction::Issue(issued) => {
                for &work in issued {
                    self.issue(work);
                }
                self.end_call(id, self.now + call.cost);
            }
            HostAction::IssueBlocking(work) => {
                self.issue(*work);
                self.block_until_done(id, &[*work]);
            }
            HostAction::Wait { awaited, .. } => {
                let awaited = self.issued.awaited(*awaited, |work| self.done[work]);
                self.block_until_done(id, &awaited);
            }
            HostAction::EndStep | HostAction::Nothing => self.end_call(id, self.now),
        }
    }

    /// Blocks a call until all of this work is done.
    fn block_until_done(&mut self, call: CallId, awaited: &[WorkId]) {
        let open: Vec<WorkId> = awaited.iter().copied().filter(|work| !self.done[*work]).collect();
        if open.is_empty() {
            self.end_call(call, self.now + self.graph.calls[call].cost);
        }
        self.awaited_left[call] = open.len() as u32;
        for work in open {
            self.waiting_calls[work].push(NodeId::of(call));
        }
    }

    fn issue(&mut self, id: WorkId) {
        let work = &self.graph.work[id];
        if work.dropped {
            return;
        }
        self.issued.add(work.stream, id);
        self.ready(id, self.now + self.graph.latency + work.after_call);
    }

    /// One of the predecessors of this call is done.
    fn call_ready(&mut self, call: CallId, at: Time) {
        let pending = &mut self.calls[call];
        pending.ready = pending.ready.max(at);
        pending.left -= 1;
        if pending.left == 0 {
            let start = pending.ready;
            self.at(start, SimEvent::CallStart(NodeId::of(call)));
        }
    }

    /// One of the predecessors of this work is done.
    fn ready(&mut self, work: WorkId, at: Time) {
        let pending = &mut self.work[work];
        pending.ready = pending.ready.max(at);
        pending.left -= 1;
        if pending.left == 0 {
            let start = pending.ready;
            self.at(start, SimEvent::WorkStart(NodeId::of(work)));
        }
    }

    fn start_work(&mut self, id: WorkId) {
        self.times[id].0 = self.now;
        let work = &self.graph.work[id];
        self.running.start(self.now, self.issued.device_of(work.stream), id, work.kind, work.alone);
    }

    fn finish(&mut self, work: WorkId) {
        let ended = &self.graph.work[work];
        self.running.finish(self.now, self.issued.device_of(ended.stream), ended.kind);
        self.done[work] = true;
        self.times[work].1 = self.now;
        self.ended(ended.step, self.now);
        let prepared = self.prepared;
        let next = prepared.next_work[work].map(|next| (next.get(), self.graph.work[next.get()].after_work));
        for (next, between) in next.into_iter().chain(prepared.dependents[work].iter().copied()) {
            self.ready(next, self.now + between);
        }
        for &call in &prepared.released[work] {
            self.call_ready(call, self.now + self.graph.calls[call].gap());
        }
        for call in std::mem::take(&mut self.waiting_calls[work]).iter().map(|call| call.get()) {
            self.awaited_left[call] -= 1;
            if self.awaited_left[call] == 0 {
                self.end_call(call, self.now + self.graph.calls[call].cost);
            }
        }
    }
}
