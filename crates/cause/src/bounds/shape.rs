//! The nodes of a model in dependency order and the edges between them, without their times.

use busbound_trace::Direction;

use crate::Time;
use crate::graph::{CallId, HostAction, NodeId, WorkId, WorkKind};
use crate::grouped::Grouped;
use crate::issued::awaited_work;
use crate::model::{HostCall, Model};
use crate::thresholds::{READ_AND_WAIT, SMALL_READ};

/// What models that differ only in their times have in common.
#[derive(Debug)]
pub struct Shape {
    /// Every node after all of its predecessors.
    pub(super) nodes: Vec<Node>,
    /// Edges into each node.
    pub(super) edges: Grouped<Edge>,
    /// Whether every node has a place in the order: not those of a cycle.
    pub(super) complete: bool,
    /// Per call: whether it is a wait that the program could do without.
    pub(super) avoidable: Vec<bool>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Node {
    Start(CallId),
    End(CallId),
    Work(WorkId),
}

/// An edge into a node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    /// The place of the node that it comes from; one beyond the last for what waits for nothing.
    pub(super) from: u32,
    /// What passes between the two.
    pub(super) delay: Delay,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Delay {
    /// The host time before a call.
    HostBefore(NodeId),
    /// The delay after another thread's call.
    AfterThread(NodeId),
    /// The call's own time.
    Cost(NodeId),
    /// The same, after work that it waited for; not if the program could do without the wait.
    Released(NodeId),
    /// From a call to the work it issued.
    Issued(NodeId),
    /// Until work starts whose call is not in the trace.
    WithoutCall(NodeId),
    /// After the previous work on the stream.
    AfterWork(NodeId),
    /// After the nth work on other streams that it waits for.
    AfterWait(NodeId, u32),
}

impl Shape {
    pub fn of(model: &Model) -> Self {
        let nodes = Nodes { calls: model.calls.len() };
        let mut list: Vec<(u32, Edge)> = Vec::with_capacity(4 * model.calls.len() + 3 * model.work.len());
        let avoidable = avoidable_waits(model);
        add_call_edges(model, nodes, &awaited_work(model, &avoidable), &mut list);
        add_work_edges(model, nodes, &mut list);
        let count = 2 * model.calls.len() + model.work.len();
        let order = dependency_order(count, &list);
        if order.len() < count {
            return Self { nodes: Vec::new(), edges: Grouped::default(), complete: false, avoidable };
        }
        let mut place = vec![0u32; count];
        for (at, node) in (0..).zip(&order) {
            place[*node as usize] = at;
        }
        for (to, edge) in &mut list {
            *to = place[*to as usize];
            edge.from = place[edge.from as usize];
        }
        let begun = nodes.without_edges(&order, &list);
        list.extend(begun);
        let nodes = order.iter().map(|node| nodes.node(*node as usize)).collect();
        Self { nodes, edges: Grouped::of(count, &list), complete: true, avoidable }
    }
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

    fn node(self, node: usize) -> Node {
        match node.checked_sub(2 * self.calls) {
            Some(work) => Node::Work(work),
            None if node.is_multiple_of(2) => Node::Start(node / 2),
            None => Node::End(node / 2),
        }
    }

    /// The start of nodes without predecessors: the first call of a thread, or work whose call is not in the trace. Edges are between
    /// places in the order.
    fn without_edges(self, order: &[u32], list: &[(u32, Edge)]) -> Vec<(u32, Edge)> {
        let mut has_edges = vec![false; order.len()];
        list.iter().for_each(|(to, _)| has_edges[*to as usize] = true);
        let delay = |node: u32| match self.node(node as usize) {
            Node::Start(call) | Node::End(call) => Delay::HostBefore(NodeId::of(call)),
            Node::Work(work) => Delay::WithoutCall(NodeId::of(work)),
        };
        let from = order.len() as u32;
        let all = (0..).zip(order).zip(has_edges).filter(|(_, has)| !has);
        all.map(|((at, node), _)| (at, Edge { from, delay: delay(*node) })).collect()
    }
}

fn add_call_edges(model: &Model, nodes: Nodes, awaited: &[Vec<WorkId>], list: &mut Vec<(u32, Edge)>) {
    let mut add =
        |to: usize, from: usize, delay: Delay| list.push((to as u32, Edge { from: from as u32, delay }));
    for thread in &model.threads {
        for pair in thread.windows(2) {
            add(nodes.start(pair[1]), nodes.end(pair[0]), Delay::HostBefore(NodeId::of(pair[1])));
        }
    }
    for (id, call) in model.calls.iter().enumerate() {
        if let Some((other, _)) = call.after {
            add(nodes.start(id), nodes.end(other), Delay::AfterThread(NodeId::of(id)));
        }
        if let Some(work) = call.after_work {
            add(nodes.start(id), nodes.work(work), Delay::HostBefore(NodeId::of(id)));
        }
        add(nodes.end(id), nodes.start(id), Delay::Cost(NodeId::of(id)));
        for work in &awaited[id] {
            add(nodes.end(id), nodes.work(*work), Delay::Released(NodeId::of(id)));
        }
    }
}

fn add_work_edges(model: &Model, nodes: Nodes, list: &mut Vec<(u32, Edge)>) {
    let mut add =
        |to: usize, from: usize, delay: Delay| list.push((to as u32, Edge { from: from as u32, delay }));
    for pair in model.streams.iter().flat_map(|stream| stream.windows(2)) {
        add(nodes.work(pair[1]), nodes.work(pair[0]), Delay::AfterWork(NodeId::of(pair[1])));
    }
    for (id, work) in model.work.iter().enumerate() {
        if let Some(call) = work.call {
            add(nodes.work(id), nodes.start(call), Delay::Issued(NodeId::of(id)));
        }
        for (nth, (on, _)) in (0..).zip(&work.waits) {
            add(nodes.work(id), nodes.work(*on), Delay::AfterWait(NodeId::of(id), nth));
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
    let next = Grouped::of(nodes, &followers);
    let mut left = vec![0u32; nodes];
    for (to, _) in list {
        left[*to as usize] += 1;
    }
    let mut order: Vec<u32> = (0..nodes as u32).filter(|node| left[*node as usize] == 0).collect();
    let mut at = 0;
    while let Some(&node) = order.get(at) {
        at += 1;
        for &follower in &next[node as usize] {
            left[follower as usize] -= 1;
            if left[follower as usize] == 0 {
                order.push(follower);
            }
        }
    }
    order
}
