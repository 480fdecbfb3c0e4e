//! Which resource bounds the steps? Asks the graph: how long would they take if one resource were faster, or free?
//!
//! Every question is one pass over the nodes in dependency order: a node starts when the last of its predecessors allows it.
//! Copies and kernels keep their recorded times unless the question is about them. Contention is not replayed, so a pass costs
//! no more than reading the graph.

use std::cell::RefCell;
use std::rc::Rc;

use busbound_trace::Direction;
use busbound_trace::hash::HashMap;
use serde::{Deserialize, Serialize};

use crate::Time;
use crate::graph::{CallId, HostAction, WorkId, WorkKind};
use crate::host::HostUse;
use crate::issued::awaited_work;
use crate::model::{HostCall, Model, Work, mean_step};
use crate::thresholds::{LAUNCH_LATENCY, READ_AND_WAIT, SMALL_READ};

/// What a step can be bound by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Resource {
    /// Kernels, and copies within the device.
    Compute,
    H2d,
    D2h,
    /// Copies between devices.
    Peer,
    Collectives,
    /// The host's launches, and the host work between them.
    Launch,
    /// Work that the CPU does itself.
    Host,
    /// Waiting for the next batch.
    Input,
    /// Host syncs that the program could do without.
    Sync,
}

impl Resource {
    pub const ALL: &'static [Self] = &[
        Self::Compute,
        Self::H2d,
        Self::D2h,
        Self::Peer,
        Self::Collectives,
        Self::Launch,
        Self::Host,
        Self::Input,
        Self::Sync,
    ];

    /// `None` for copies whose direction is not known. A kernel that waits for the link while it reads host memory does not
    /// compute.
    fn of(work: &Work) -> Option<Self> {
        match work.host.filter(|host| host.is_link_bound).map(|host| host.direction) {
            Some(Direction::DeviceToHost) => Some(Self::D2h),
            Some(_) => Some(Self::H2d),
            None => Self::of_kind(work.kind),
        }
    }

    fn of_kind(kind: WorkKind) -> Option<Self> {
        Some(match kind {
            WorkKind::Collective => Self::Collectives,
            WorkKind::Copy { direction: Direction::HostToDevice, .. } => Self::H2d,
            WorkKind::Copy { direction: Direction::DeviceToHost, .. } => Self::D2h,
            WorkKind::Copy { direction: Direction::PeerToPeer, .. } => Self::Peer,
            // Pages of managed memory cross the link.
            WorkKind::OtherCopy => Self::H2d,
            WorkKind::Copy { direction: Direction::Unknown, .. } => return None,
            WorkKind::Kernel { .. } | WorkKind::Copy { .. } | WorkKind::Memset => Self::Compute,
        })
    }

    /// `None` for time that no resource shortens.
    pub fn of_use(what: HostUse) -> Option<Self> {
        match what {
            HostUse::Launching => Some(Self::Launch),
            HostUse::Input => Some(Self::Input),
            HostUse::Synchronizing | HostUse::Waiting => None,
            // Staging belongs to the copy.
            HostUse::CopyCall => Some(Self::H2d),
            work => {
                debug_assert!(work.is_work());
                Some(Self::Host)
            }
        }
    }
}

/// How much of its time each resource still takes.
#[derive(Debug, Clone, Copy)]
struct Speeds([f64; Resource::ALL.len()]);

impl Speeds {
    fn of(faster: &[Resource], share: f64) -> Self {
        let mut speeds = [1.0; Resource::ALL.len()];
        for resource in faster {
            speeds[*resource as usize] = share;
        }
        Self(speeds)
    }

    fn time(&self, time: Time, resource: Option<Resource>) -> Time {
        match resource.map(|resource| self.0[resource as usize]) {
            Some(share) if share < 1.0 => (time as f64 * share) as Time,
            _ => time,
        }
    }
}

/// An edge into a node.
#[derive(Debug, Clone, Copy)]
struct Edge {
    from: u32,
    /// What passes between the two.
    delay: Delay,
}

#[derive(Debug, Clone, Copy)]
enum Delay {
    /// The host time before a call.
    HostBefore(CallId),
    /// The delay after another thread's call.
    AfterThread(CallId),
    /// The call's own time.
    Cost(CallId),
    /// The same, after work that it waited for; not if the program could do without the wait.
    Released(CallId),
    /// From a call to the work it issued.
    Issued(WorkId),
    /// After the previous work on the stream.
    AfterWork(WorkId),
    /// Between kernels and copies of two streams.
    Fixed(Time),
}

/// The nodes of a model in dependency order, ready for questions.
#[derive(Debug)]
pub struct Bounds<'m> {
    model: &'m Model,
    shape: Rc<Shape>,
    /// Per call: whether it is a wait that the program could do without.
    avoidable: Vec<bool>,
    /// The resources that any node uses.
    used: Vec<Resource>,
    /// The answers so far: the verdict, the bounds and the findings ask the same questions.
    known: RefCell<HashMap<Question, Option<f64>>>,
}

/// Which resources are faster, what share of their time they still take, and whether waits are left out.
type Question = (Vec<Resource>, u64, bool);

/// Nodes and edges without their times.
#[derive(Debug)]
struct Shape {
    /// Edges into each node, grouped by node: those of node `i` are `edges[first[i]..first[i + 1]]`.
    first: Vec<u32>,
    edges: Vec<Edge>,
    order: Vec<u32>,
    /// Whether every node has a place in the order.
    complete: bool,
}

impl<'m> Bounds<'m> {
    pub fn of(model: &'m Model) -> Self {
        let nodes = Nodes { calls: model.calls.len() };
        let mut list: Vec<(u32, Edge)> = Vec::with_capacity(4 * model.calls.len() + 3 * model.work.len());
        let avoidable = avoidable_waits(model);
        add_call_edges(model, nodes, &awaited_work(model, &avoidable), &mut list);
        add_work_edges(model, nodes, &mut list);
        let count = 2 * model.calls.len() + model.work.len();
        let order = dependency_order(count, &list);
        let complete = order.len() == count;
        let (first, edges) = grouped(count, &list);
        let shape = Shape { first, edges, order, complete };
        Self { model, shape: Rc::new(shape), avoidable, used: used(model), known: RefCell::default() }
    }

    /// The same questions about a model with the same nodes and edges and other times.
    pub fn with_times_of<'o>(&self, other: &'o Model) -> Bounds<'o> {
        debug_assert_eq!(
            (other.calls.len(), other.work.len()),
            (self.model.calls.len(), self.model.work.len())
        );
        let (shape, avoidable) = (Rc::clone(&self.shape), self.avoidable.clone());
        Bounds { model: other, shape, avoidable, used: used(other), known: RefCell::default() }
    }

    /// Whether most waits that the program could do without are the end of an H2D copy that blocks: `tensor.to(device)` waits in
    /// its own operator for what it copied.
    pub fn waits_end_uploads(&self) -> bool {
        let waits = || self.model.calls.iter().zip(&self.avoidable).filter(|(_, avoidable)| **avoidable);
        let is_upload = |copy: WorkId| Resource::of(&self.model.work[copy]) == Some(Resource::H2d);
        let ends_upload = |call: &HostCall| matches!(call.action, HostAction::Wait { copy: Some(copy), .. } if is_upload(copy));
        2 * waits().filter(|(call, _)| ends_upload(call)).count() > waits().count()
    }

    /// Nanoseconds of a step, as recorded; `None` if the graph has a cycle.
    pub fn recorded(&self) -> Option<f64> {
        self.ask(&[], 1.0, false)
    }

    /// Nanoseconds of a step if these resources take only `share` of their time, 0 to 1.
    pub fn if_faster(&self, resources: &[Resource], share: f64) -> Option<f64> {
        if !resources.contains(&Resource::Sync) {
            return self.ask(resources, share, false);
        }
        // A wait is either there or not: a part of a wait gains that part of what its removal gains.
        let (now, free) = (self.recorded()?, self.ask(resources, 0.0, true)?);
        Some(free + (now - free) * share)
    }

    fn ask(&self, resources: &[Resource], share: f64, without_syncs: bool) -> Option<f64> {
        // What no node uses changes nothing.
        let faster: Vec<Resource> =
            self.used.iter().copied().filter(|used| share < 1.0 && resources.contains(used)).collect();
        let share = if faster.is_empty() { 1.0 } else { share };
        let speeds = Speeds::of(&faster, share);
        let question = (faster, share.to_bits(), without_syncs);
        if let Some(known) = self.known.borrow().get(&question) {
            return *known;
        }
        let answer = self.step(&speeds, without_syncs);
        self.known.borrow_mut().insert(question, answer);
        answer
    }

    fn step(&self, speeds: &Speeds, without_syncs: bool) -> Option<f64> {
        let Shape { first, edges, order, complete } = &*self.shape;
        if !complete {
            return None;
        }
        let mut ends: Vec<Time> = vec![0; first.len() - 1];
        let mut step_ends: Vec<Time> = vec![0; self.model.steps.max(1)];
        let nodes = Nodes { calls: self.model.calls.len() };
        for &node in order {
            let node = node as usize;
            let edges = &edges[first[node] as usize..first[node + 1] as usize];
            let mut at = 0;
            for edge in edges {
                if let Some(delay) = self.delay(edge.delay, speeds, without_syncs) {
                    at = at.max(ends[edge.from as usize] + delay);
                }
            }
            if edges.is_empty() {
                at = self.first_start(node, speeds);
            }
            if let Some(work) = nodes.work_of(node) {
                let work = &self.model.work[work];
                at += speeds.time(work.end - work.start, Resource::of(work));
            }
            ends[node] = at;
            let step = nodes.work_of(node).map_or_else(
                || self.model.calls[nodes.call_of(node)].step,
                |work| self.model.work[work].step,
            );
            step_ends[step] = step_ends[step].max(at);
        }
        step_ends.truncate(self.model.whole_steps);
        Some(mean_step(&step_ends))
    }

    /// The start of a node without predecessors: the first call of a thread, or work whose call is not in the trace.
    fn first_start(&self, node: usize, speeds: &Speeds) -> Time {
        let nodes = Nodes { calls: self.model.calls.len() };
        match nodes.work_of(node) {
            Some(work) => self.model.work[work].after_call,
            None => self.host_before(nodes.call_of(node), speeds),
        }
    }

    fn host_before(&self, call: CallId, speeds: &Speeds) -> Time {
        let uses = &self.model.calls[call].since.uses;
        uses.iter().map(|(what, time)| speeds.time(*time, Resource::of_use(*what))).sum()
    }

    /// `None` if the edge is not there.
    fn delay(&self, delay: Delay, speeds: &Speeds, without_syncs: bool) -> Option<Time> {
        Some(match delay {
            Delay::Fixed(time) => time,
            Delay::AfterWork(work) => self.model.work[work].after_work,
            Delay::HostBefore(call) => self.host_before(call, speeds),
            Delay::AfterThread(call) => {
                let (own, all) = (&self.model.calls[call], self.model.calls[call].gap());
                let between = own.after.map_or(0, |(_, between)| between);
                if all == 0 {
                    speeds.time(between, Some(Resource::Launch))
                } else {
                    (between as f64 * self.host_before(call, speeds) as f64 / all as f64) as Time
                }
            }
            Delay::Cost(call) => self.cost(call, speeds),
            Delay::Released(call) if without_syncs && self.avoidable[call] => return None,
            Delay::Released(call) => self.cost(call, speeds),
            Delay::Issued(work) => {
                let work = &self.model.work[work];
                let delay = self.model.latency + work.after_call;
                if matches!(work.kind, WorkKind::Copy { pageable: true, .. }) {
                    return Some(speeds.time(delay, Resource::of(work)));
                }
                // A longer delay is not the launch: the work waited for something that is not visible.
                let launch = delay.min(LAUNCH_LATENCY);
                delay - launch + speeds.time(launch, Some(Resource::Launch))
            }
        })
    }

    fn cost(&self, call: CallId, speeds: &Speeds) -> Time {
        let call = &self.model.calls[call];
        let copy = call.action.issued().first().and_then(|work| Resource::of(&self.model.work[*work]));
        let resource = match call.cost_use {
            HostUse::CopyCall => copy,
            HostUse::Synchronizing => Some(Resource::Sync),
            what => Resource::of_use(what),
        };
        speeds.time(call.cost, resource)
    }
}

/// The resources that the nodes of a model use. Delays after calls are launches.
fn used(model: &Model) -> Vec<Resource> {
    let mut is_used = [false; Resource::ALL.len()];
    is_used[Resource::Launch as usize] = true;
    is_used[Resource::Sync as usize] = true;
    let uses = model.calls.iter().flat_map(|call| {
        call.since
            .uses
            .iter()
            .map(|(what, _)| Resource::of_use(*what))
            .chain([Resource::of_use(call.cost_use)])
    });
    for resource in uses.chain(model.work.iter().map(Resource::of)).flatten() {
        is_used[resource as usize] = true;
    }
    Resource::ALL.iter().copied().filter(|resource| is_used[*resource as usize]).collect()
}

/// Node numbers: start and end of each call, then the end of each work.
#[derive(Debug, Clone, Copy)]
struct Nodes {
    calls: usize,
}

impl Nodes {
    fn start(self, call: CallId) -> usize {
        2 * call
    }

    fn end(self, call: CallId) -> usize {
        2 * call + 1
    }

    fn work(self, work: WorkId) -> usize {
        2 * self.calls + work
    }

    fn work_of(self, node: usize) -> Option<WorkId> {
        node.checked_sub(2 * self.calls)
    }

    fn call_of(self, node: usize) -> CallId {
        node / 2
    }
}

fn edge(from: usize, delay: Delay) -> Edge {
    Edge { from: from as u32, delay }
}

/// Items by their node, and where those of each node begin: those of node `i` are `items[first[i]..first[i + 1]]`.
fn grouped<T: Copy>(nodes: usize, list: &[(u32, T)]) -> (Vec<u32>, Vec<T>) {
    let mut first = vec![0u32; nodes + 1];
    for (node, _) in list {
        first[*node as usize + 1] += 1;
    }
    for i in 0..nodes {
        first[i + 1] += first[i];
    }
    let (mut fill, mut places) = (first.clone(), vec![0; list.len()]);
    for (place, (node, _)) in list.iter().enumerate() {
        let free = &mut fill[*node as usize];
        places[*free as usize] = place;
        *free += 1;
    }
    (first, places.into_iter().map(|place| list[place].1).collect())
}

fn add_call_edges(model: &Model, nodes: Nodes, awaited: &[Vec<WorkId>], list: &mut Vec<(u32, Edge)>) {
    let mut add = |to: usize, from: usize, delay: Delay| list.push((to as u32, edge(from, delay)));
    for thread in &model.threads {
        for pair in thread.windows(2) {
            add(nodes.start(pair[1]), nodes.end(pair[0]), Delay::HostBefore(pair[1]));
        }
    }
    for (id, call) in model.calls.iter().enumerate() {
        if let Some((other, _)) = call.after {
            add(nodes.start(id), nodes.end(other), Delay::AfterThread(id));
        }
        if let Some(work) = call.after_work {
            add(nodes.start(id), nodes.work(work), Delay::HostBefore(id));
        }
        add(nodes.end(id), nodes.start(id), Delay::Cost(id));
        for work in &awaited[id] {
            add(nodes.end(id), nodes.work(*work), Delay::Released(id));
        }
    }
}

fn add_work_edges(model: &Model, nodes: Nodes, list: &mut Vec<(u32, Edge)>) {
    let mut add = |to: usize, from: usize, delay: Delay| list.push((to as u32, edge(from, delay)));
    for pair in model.streams.iter().flat_map(|stream| stream.windows(2)) {
        add(nodes.work(pair[1]), nodes.work(pair[0]), Delay::AfterWork(pair[1]));
    }
    for (id, work) in model.work.iter().enumerate() {
        if let Some(call) = work.call {
            add(nodes.work(id), nodes.start(call), Delay::Issued(id));
        }
        for (on, between) in &work.waits {
            add(nodes.work(id), nodes.work(*on), Delay::Fixed(*between));
        }
    }
}

/// Waits that are neither the last of their step nor for data that the host reads. Reading a single value is avoidable: it can be
/// added up on the device, and read once.
pub fn avoidable_waits(model: &Model) -> Vec<bool> {
    let read_of = |copy: WorkId| match model.work[copy].kind {
        WorkKind::Copy { direction: Direction::DeviceToHost, bytes, .. } => Some(bytes),
        _ => None,
    };
    let waits = |call: &HostCall| match call.action {
        HostAction::Wait { copy, .. } => copy.and_then(read_of).is_none_or(|bytes| bytes <= SMALL_READ),
        HostAction::IssueBlocking(copy) => read_of(copy).is_some_and(|bytes| bytes <= SMALL_READ),
        _ => false,
    };
    let mut last: Vec<Time> = vec![Time::MIN; model.steps.max(1)];
    for call in model.calls.iter().filter(|call| call.blocks()) {
        last[call.step] = last[call.step].max(call.start);
    }
    // A copy and the wait for it are one read.
    let is_last = |call: &HostCall| call.end + READ_AND_WAIT >= last[call.step];
    model.calls.iter().map(|call| waits(call) && !is_last(call)).collect()
}

/// Every node after all of its predecessors; shorter than the number of nodes if there is a cycle.
fn dependency_order(nodes: usize, list: &[(u32, Edge)]) -> Vec<u32> {
    let followers: Vec<(u32, u32)> = list.iter().map(|(to, edge)| (edge.from, *to)).collect();
    let (first, next) = grouped(nodes, &followers);
    let mut left = vec![0u32; nodes];
    for (to, _) in list {
        left[*to as usize] += 1;
    }
    let mut order: Vec<u32> = (0..nodes as u32).filter(|node| left[*node as usize] == 0).collect();
    let mut at = 0;
    while let Some(&node) = order.get(at) {
        at += 1;
        for &follower in &next[first[node as usize] as usize..first[node as usize + 1] as usize] {
            left[follower as usize] -= 1;
            if left[follower as usize] == 0 {
                order.push(follower);
            }
        }
    }
    order
}
