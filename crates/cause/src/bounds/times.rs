//! What each node and edge of a model takes, by the resource that would shorten it: laid out for one pass in dependency order.

use super::Resource;
use super::shape::{Delay, Edge, Node, Shape};
use crate::Time;
use crate::graph::{CallId, WorkKind};
use crate::host::HostUse;
use crate::model::Model;
use crate::thresholds::LAUNCH_LATENCY;

/// A place in the speeds: that of a resource, or the one after the last for time that no resource shortens.
pub(super) type Slot = u8;

fn slot(resource: Option<Resource>) -> Slot {
    resource.map_or(Resource::ALL.len() as Slot, |resource| resource as Slot)
}

/// Time that one resource takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timed {
    pub(super) time: Time,
    pub(super) resource: Slot,
}

impl Timed {
    fn new(time: Time, resource: Option<Resource>) -> Self {
        Self { time, resource: slot(resource) }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct NodeTime {
    pub(super) timed: Timed,
    pub(super) step: u32,
}

/// The delay of an edge. The fields are not grouped, so that an edge takes 16 bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum EdgeTime {
    One {
        from: u32,
        resource: Slot,
        time: Time,
    },
    /// After a wait that the program could do without.
    Avoidable {
        from: u32,
        resource: Slot,
        time: Time,
    },
    /// The sum of several.
    Several {
        from: u32,
        first: u32,
        count: u32,
    },
}

const _: () = assert!(size_of::<EdgeTime>() == 16);

impl EdgeTime {
    pub(super) fn from(self) -> usize {
        let (Self::One { from, .. } | Self::Avoidable { from, .. } | Self::Several { from, .. }) = self;
        from as usize
    }
}

#[derive(Debug, Default)]
pub(super) struct Times {
    /// In the order of the shape.
    pub(super) nodes: Vec<NodeTime>,
    pub(super) edges: Vec<EdgeTime>,
    pub(super) several: Vec<Timed>,
}

impl Times {
    pub(super) fn of(model: &Model, shape: &Shape) -> Self {
        let nodes = shape.nodes.iter().map(|node| node_time(model, *node)).collect();
        let edges = shape.edges.items();
        let mut times = Self { nodes, edges: Vec::with_capacity(edges.len()), several: Vec::new() };
        for edge in edges {
            let timed = times.edge_time(model, &shape.avoidable, *edge);
            times.edges.push(timed);
        }
        times
    }

    fn edge_time(&mut self, model: &Model, avoidable: &[bool], Edge { from, delay }: Edge) -> EdgeTime {
        let one = |Timed { time, resource }: Timed| EdgeTime::One { from, resource, time };
        match delay {
            Delay::AfterWait(work, nth) => {
                one(Timed::new(model.work[work.get()].waits[nth as usize].1, None))
            }
            Delay::AfterWork(work) => one(Timed::new(model.work[work.get()].after_work, None)),
            Delay::WithoutCall(work) => one(Timed::new(model.work[work.get()].after_call, None)),
            Delay::Cost(call) => one(cost(model, call.get())),
            Delay::Released(call) => match cost(model, call.get()) {
                Timed { time, resource } if avoidable[call.get()] => {
                    EdgeTime::Avoidable { from, resource, time }
                }
                timed => one(timed),
            },
            Delay::HostBefore(call) => self.sum(from, host_before(model, call.get())),
            Delay::AfterThread(call) => {
                let own = &model.calls[call.get()];
                let all = own.gap();
                let between = own.after.map_or(0, |(_, between)| between);
                if all == 0 {
                    return one(Timed::new(between, Some(Resource::Launch)));
                }
                let part = |time: Time| (time as f64 * between as f64 / all as f64) as Time;
                let parts =
                    host_before(model, call.get()).map(|timed| Timed { time: part(timed.time), ..timed });
                self.sum(from, parts)
            }
            Delay::Issued(work) => {
                let work = &model.work[work.get()];
                let delay = model.latency + work.after_call;
                if matches!(work.kind, WorkKind::Copy { pageable: true, .. }) {
                    return one(Timed::new(delay, Resource::of(work)));
                }
                // A longer delay is not the launch: the work waited for something that is not visible.
                let launch = Timed::new(delay.min(LAUNCH_LATENCY), Some(Resource::Launch));
                let rest = (delay > launch.time).then(|| Timed::new(delay - launch.time, None));
                self.sum(from, rest.into_iter().chain([launch]))
            }
        }
    }

    fn sum(&mut self, from: u32, parts: impl Iterator<Item = Timed>) -> EdgeTime {
        let first = self.several.len();
        self.several.extend(parts);
        match self.several[first..] {
            [] => EdgeTime::One { from, resource: slot(None), time: 0 },
            [Timed { time, resource }] => {
                self.several.truncate(first);
                EdgeTime::One { from, resource, time }
            }
            [..] => {
                let count = (self.several.len() - first) as u32;
                EdgeTime::Several { from, first: first as u32, count }
            }
        }
    }
}

fn node_time(model: &Model, node: Node) -> NodeTime {
    let (timed, step) = match node {
        Node::Start(call) | Node::End(call) => (Timed::new(0, None), model.calls[call].step),
        Node::Work(work) => {
            let work = &model.work[work];
            (Timed::new(work.end - work.start, Resource::of(work)), work.step)
        }
    };
    NodeTime { timed, step: step as u32 }
}

fn host_before(model: &Model, call: CallId) -> impl Iterator<Item = Timed> {
    let uses = model.calls[call].since.uses.iter();
    uses.map(|(what, time)| Timed::new(*time, Resource::of_use(*what)))
}

fn cost(model: &Model, call: CallId) -> Timed {
    let call = &model.calls[call];
    let copy = || call.action.issued().first().and_then(|work| Resource::of(&model.work[*work]));
    let resource = match call.cost_use {
        HostUse::CopyCall => copy(),
        HostUse::Synchronizing => Some(Resource::Sync),
        what => Resource::of_use(what),
    };
    Timed::new(call.cost, resource)
}
