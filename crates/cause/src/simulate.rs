//! How long does the graph take? Runs it: hosts call, streams work in order, copies share the link by direction.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use busbound_trace::Direction;

use crate::Time;
use crate::graph::{Awaited, CallId, HostAction, WorkId, WorkKind};
use crate::model::Model;

/// What work costs other work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharing {
    /// A copy's time while the other direction is busy, as a multiple of its own.
    pub duplex: f64,
    /// A kernel's time while copies cross the bus, likewise.
    pub kernel_beside_copy: f64,
    /// Kernels of matrix work take this multiple of what the trace has.
    pub heavy: f64,
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Simulated {
    pub end: Time,
    /// Start and end of each piece of work.
    pub work: Vec<(Time, Time)>,
    /// When the last work or call of each step ended.
    pub step_ends: Vec<Time>,
    /// Time with matrix work on the device.
    pub heavy: Time,
    /// Whether all of it ran: waits that go in a circle would leave some of it undone.
    pub complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Item(CallId),
    ItemEnd(CallId),
    Op(WorkId),
}

/// What each piece of work still waits for.
#[derive(Debug, Clone, Copy)]
struct Pending {
    left: u32,
    ready: Time,
}

impl Simulated {
    /// The middle one of the steps, in nanoseconds.
    pub fn step(&self) -> f64 {
        middle_step(&self.step_ends)
    }
}

/// The middle of the times between one step's end and the next one's.
fn middle_step(ends: &[Time]) -> f64 {
    let mut last = 0;
    let mut steps: Vec<Time> = Vec::with_capacity(ends.len());
    for end in ends.iter().filter(|end| **end > 0) {
        // A step may end before the one ahead of it has: then it takes no time of its own.
        let end = (*end).max(last);
        steps.push(end - last);
        last = end;
    }
    if steps.iter().filter(|step| **step == 0).count() * 4 > steps.len() {
        return last as f64 / steps.len() as f64;
    }
    steps.sort_unstable();
    match steps.len() {
        0 => 0.0,
        // Of an even number the lower one: a step is rather held up than hurried.
        n => steps[(n - 1) / 2] as f64,
    }
}

pub fn simulate(graph: &Model, sharing: &Sharing) -> Simulated {
    Simulation::new(graph, sharing).run()
}

struct Simulation<'g> {
    graph: &'g Model,
    sharing: Sharing,
    heap: BinaryHeap<Reverse<(Time, u64, Happens)>>,
    order: u64,
    work: Vec<Pending>,
    step_ends: Vec<Time>,
    times: Vec<(Time, Time)>,
    done: Vec<bool>,
    ended_calls: Vec<bool>,
    /// Work that waits for this one, and what lies between.
    dependents: Vec<Vec<(WorkId, Time)>>,
    calls: Vec<Pending>,
    /// Calls that follow this one, and what lies between.
    following: Vec<Vec<(CallId, Time)>>,
    /// Calls that are held by this work.
    holds: Vec<Vec<CallId>>,
    /// How much work each waiting call is held by.
    held_by: Vec<u32>,
    last_issued: Vec<Option<WorkId>>,
    /// What runs, with the work left in it and its rate.
    active: Vec<(WorkId, f64, f64)>,
    now: Time,
    end: Time,
    heavy: Time,
}

impl<'g> Simulation<'g> {
    fn new(graph: &'g Model, sharing: &Sharing) -> Self {
        let mut ops: Vec<Pending> =
            graph.work.iter().map(|op| Pending { left: u32::from(op.call.is_some()), ready: 0 }).collect();
        let mut dependents = vec![Vec::new(); graph.work.len()];
        for stream in &graph.streams {
            let kept: Vec<WorkId> = stream.iter().copied().filter(|op| !graph.work[*op].dropped).collect();
            for pair in kept.windows(2) {
                dependents[pair[0]].push((pair[1], graph.work[pair[1]].after_work));
                ops[pair[1]].left += 1;
            }
        }
        for (id, op) in graph.work.iter().enumerate().filter(|(_, op)| !op.dropped) {
            for (awaited, between) in op.waits.iter().filter(|(awaited, _)| !graph.work[*awaited].dropped) {
                dependents[*awaited].push((id, *between));
                ops[id].left += 1;
            }
        }
        let mut items = vec![Pending { left: 0, ready: 0 }; graph.calls.len()];
        let mut following = vec![Vec::new(); graph.calls.len()];
        for thread in &graph.threads {
            for (i, &item) in thread.iter().enumerate() {
                match i.checked_sub(1).map(|before| thread[before]) {
                    Some(before) => {
                        following[before].push((item, graph.calls[item].gap));
                        items[item].left += 1;
                    }
                    None => items[item].ready = graph.calls[item].gap,
                }
                if let Some((other, between)) = graph.calls[item].after {
                    following[other].push((item, between));
                    items[item].left += 1;
                }
            }
        }
        Self {
            sharing: *sharing,
            heap: BinaryHeap::new(),
            order: 0,
            step_ends: vec![0; graph.steps.max(1)],
            times: vec![(0, 0); graph.work.len()],
            done: graph.work.iter().map(|op| op.dropped).collect(),
            ended_calls: vec![false; graph.calls.len()],
            dependents,
            following,
            holds: vec![Vec::new(); graph.work.len()],
            held_by: vec![0; graph.calls.len()],
            last_issued: vec![None; graph.streams.len()],
            active: Vec::new(),
            now: 0,
            end: 0,
            heavy: 0,
            work: ops,
            calls: items,
            graph,
        }
    }

    fn at(&mut self, time: Time, happens: Happens) {
        self.order += 1;
        self.heap.push(Reverse((time.max(self.now), self.order, happens)));
    }

    fn run(mut self) -> Simulated {
        for item in 0..self.calls.len() {
            if self.calls[item].left == 0
                && self.graph.threads.iter().any(|thread| thread.first() == Some(&item))
            {
                self.at(self.calls[item].ready, Happens::Item(item));
            }
        }
        for op in 0..self.work.len() {
            if self.work[op].left == 0 && !self.graph.work[op].dropped {
                let start = self.graph.work[op].after_call;
                self.at(start, Happens::Op(op));
            }
        }
        loop {
            let next_end = self.next_end();
            let next = self.heap.peek().map(|Reverse((time, ..))| *time);
            match (next, next_end) {
                (None, None) => break,
                (Some(time), ended) if ended.is_none_or(|(at, _)| time < at) => {
                    self.advance(time);
                    if let Some(Reverse((_, _, happens))) = self.heap.pop() {
                        self.handle(happens);
                    }
                }
                (_, Some((time, op))) => {
                    self.advance(time);
                    self.finish(op);
                }
                (Some(_), None) => unreachable!("an event without an end before it is handled above"),
            }
        }
        let called = self.graph.threads.iter().flatten().all(|item| self.ended_calls[*item]);
        let complete = called && self.done.iter().all(|done| *done);
        Simulated { end: self.end, work: self.times, step_ends: self.step_ends, heavy: self.heavy, complete }
    }

    fn ended(&mut self, step: usize) {
        self.end = self.end.max(self.now);
        if let Some(end) = self.step_ends.get_mut(step) {
            *end = (*end).max(self.now);
        }
    }

    /// The running work that ends first.
    fn next_end(&self) -> Option<(Time, WorkId)> {
        let ends = self.active.iter().map(|(op, left, rate)| (self.now + (left / rate).ceil() as Time, *op));
        ends.min()
    }

    fn advance(&mut self, to: Time) {
        let passed = (to - self.now) as f64;
        for (_, left, rate) in &mut self.active {
            *left = (*left - passed * *rate).max(0.0);
        }
        if self.active.iter().any(|(op, ..)| self.graph.work[*op].kind == WorkKind::Kernel { heavy: true }) {
            self.heavy += to - self.now;
        }
        self.now = to;
    }

    fn handle(&mut self, happens: Happens) {
        match happens {
            Happens::Item(item) => self.call(item),
            Happens::ItemEnd(item) => {
                self.ended_calls[item] = true;
                self.ended(self.graph.calls[item].step);
                for i in 0..self.following[item].len() {
                    let (next, between) = self.following[item][i];
                    let pending = &mut self.calls[next];
                    pending.ready = pending.ready.max(self.now + between);
                    pending.left -= 1;
                    if pending.left == 0 {
                        self.at(self.calls[next].ready, Happens::Item(next));
                    }
                }
            }
            Happens::Op(op) => self.begin(op),
        }
    }

    fn call(&mut self, item: CallId) {
        let graph = self.graph;
        let call = &graph.calls[item];
        match &call.action {
            HostAction::Issue(ops) => {
                for &op in ops {
                    self.issue(op);
                }
                self.at(self.now + call.cost, Happens::ItemEnd(item));
            }
            HostAction::IssueBlocking(op) => {
                self.issue(*op);
                self.hold(item, &[*op]);
            }
            HostAction::Wait { awaited, .. } => {
                let awaited: Vec<WorkId> = match *awaited {
                    Awaited::None => Vec::new(),
                    Awaited::Work(op) => vec![op],
                    Awaited::Stream(stream) => self.last_issued[stream].into_iter().collect(),
                    Awaited::Device(device) => (0..graph.streams.len())
                        .filter(|stream| graph.stream_device[*stream] == device)
                        .filter_map(|stream| self.last_issued[stream])
                        .collect(),
                };
                self.hold(item, &awaited);
            }
            HostAction::Nothing => self.at(self.now, Happens::ItemEnd(item)),
        }
    }

    /// Holds a call until all of this is done.
    fn hold(&mut self, item: CallId, ops: &[WorkId]) {
        let open: Vec<WorkId> = ops.iter().copied().filter(|op| !self.done[*op]).collect();
        if open.is_empty() {
            self.at(self.now + self.graph.calls[item].cost, Happens::ItemEnd(item));
        }
        self.held_by[item] = open.len() as u32;
        for op in open {
            self.holds[op].push(item);
        }
    }

    fn issue(&mut self, op: WorkId) {
        let work = &self.graph.work[op];
        if work.dropped {
            return;
        }
        self.last_issued[work.stream] = Some(op);
        self.ready(op, self.now + self.graph.latency + work.after_call);
    }

    /// One of the things that this work waits for has happened.
    fn ready(&mut self, op: WorkId, at: Time) {
        let pending = &mut self.work[op];
        pending.ready = pending.ready.max(at);
        pending.left -= 1;
        if pending.left == 0 {
            let start = pending.ready;
            self.at(start, Happens::Op(op));
        }
    }

    fn begin(&mut self, op: WorkId) {
        self.times[op].0 = self.now;
        let work = &self.graph.work[op];
        let scale = if work.kind == (WorkKind::Kernel { heavy: true }) { self.sharing.heavy } else { 1.0 };
        self.active.push((op, work.alone * scale, 1.0));
        self.share();
    }

    fn finish(&mut self, op: WorkId) {
        self.active.retain(|(other, ..)| *other != op);
        self.share();
        self.done[op] = true;
        self.times[op].1 = self.now;
        self.ended(self.graph.work[op].step);
        for i in 0..self.dependents[op].len() {
            let (next, between) = self.dependents[op][i];
            self.ready(next, self.now + between);
        }
        for item in std::mem::take(&mut self.holds[op]) {
            self.held_by[item] -= 1;
            if self.held_by[item] == 0 {
                self.at(self.now + self.graph.calls[item].cost, Happens::ItemEnd(item));
            }
        }
    }

    /// Sets the rates of what runs. Kernels of several streams share the device: those worth the question
    /// fill it.
    fn share(&mut self) {
        let graph = self.graph;
        let of = |op: WorkId| (graph.stream_device[graph.work[op].stream], graph.work[op].kind);
        let running: Vec<(i32, WorkKind)> = self.active.iter().map(|(op, ..)| of(*op)).collect();
        for (i, &(device, work)) in running.iter().enumerate() {
            let count = |wanted: &dyn Fn(WorkKind) -> bool| {
                running.iter().filter(|(other, work)| *other == device && wanted(*work)).count()
            };
            let up = count(&|work| work.bus() == Some(Direction::HostToDevice));
            let down = count(&|work| work.bus() == Some(Direction::DeviceToHost));
            self.active[i].2 = match work.bus() {
                Some(Direction::HostToDevice) => rate(up, down, self.sharing.duplex),
                Some(_) => rate(down, up, self.sharing.duplex),
                None if work.is_kernel() => {
                    let beside = if up + down > 0 { self.sharing.kernel_beside_copy } else { 1.0 };
                    1.0 / (count(&WorkKind::is_kernel) as f64 * beside)
                }
                None => 1.0,
            };
        }
    }
}

/// A copy's part of the link.
pub(crate) fn rate(same: usize, other: usize, duplex: f64) -> f64 {
    let alone = 1.0 / same.max(1) as f64;
    if other > 0 { alone / duplex } else { alone }
}
