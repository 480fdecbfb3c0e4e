//! Which resource bounds the steps? Asks the graph: how long would they take if one resource were faster, or free?
//!
//! Every question is one pass over the nodes in dependency order: a node starts when the last of its predecessors allows it.
//! Copies and kernels keep their recorded times unless the question is about them. Contention is not replayed, so a pass costs
//! no more than reading the graph.

mod shape;
mod times;

use std::sync::{Arc, Mutex, PoisonError};

use busbound_trace::Direction;
use busbound_trace::hash::HashMap;
use serde::{Deserialize, Serialize};

use crate::Time;
use crate::graph::{HostAction, WorkId, WorkKind};
use crate::host::HostUse;
use crate::model::{HostCall, Model, Work, mean_step};

pub use shape::{Shape, avoidable_waits};
use times::{EdgeTime, Timed, Times};

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

/// How much of its time each resource still takes; the last entry is for time that no resource shortens.
#[derive(Debug, Clone, Copy)]
struct Speeds([f64; Resource::ALL.len() + 1]);

impl Speeds {
    fn of(faster: &[Resource], share: f64) -> Self {
        let mut speeds = [1.0; Resource::ALL.len() + 1];
        for resource in faster {
            speeds[*resource as usize] = share;
        }
        Self(speeds)
    }

    fn time(&self, timed: Timed) -> Time {
        let share = self.0[timed.resource as usize];
        if share < 1.0 { (timed.time as f64 * share) as Time } else { timed.time }
    }
}

/// The nodes of a model in dependency order, ready for questions.
#[derive(Debug)]
pub struct Bounds<'m> {
    model: &'m Model,
    shape: Arc<Shape>,
    times: Times,
    /// The resources that any node uses.
    used: Vec<Resource>,
    /// The answers so far: the verdict, the bounds and the findings ask the same questions.
    known: Mutex<HashMap<Question, Option<f64>>>,
}

/// Which resources are faster, what share of their time they still take, and whether waits are left out.
type Question = (Vec<Resource>, u64, bool);

impl<'m> Bounds<'m> {
    pub fn of(model: &'m Model) -> Self {
        Self::shaped(Arc::new(Shape::of(model)), model)
    }

    /// For a model with the nodes and edges of this shape.
    pub fn shaped(shape: Arc<Shape>, model: &'m Model) -> Self {
        let times = Times::of(model, &shape);
        Self { model, shape, times, used: used(model), known: Mutex::default() }
    }

    /// Whether most waits that the program could do without are the end of an H2D copy that blocks: `tensor.to(device)` waits in
    /// its own operator for what it copied.
    pub fn waits_end_uploads(&self) -> bool {
        let waits =
            || self.model.calls.iter().zip(&self.shape.avoidable).filter(|(_, avoidable)| **avoidable);
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
        if let Some(known) = self.known().get(&question) {
            return *known;
        }
        let answer = self.shape.complete.then(|| self.step(&speeds, without_syncs));
        self.known().insert(question, answer);
        answer
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<Question, Option<f64>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, speeds: &Speeds, without_syncs: bool) -> f64 {
        let (edges, times) = (&self.shape.edges, &self.times);
        // The last one is where everything begins.
        let mut ends: Vec<Time> = vec![0; times.nodes.len() + 1];
        let mut step_ends: Vec<Time> = vec![0; self.model.steps.max(1)];
        for (at, node) in times.nodes.iter().enumerate() {
            let mut start = 0;
            for edge in &times.edges[edges.range(at)] {
                let delay = match *edge {
                    EdgeTime::Avoidable { .. } if without_syncs => continue,
                    EdgeTime::One { resource, time, .. } | EdgeTime::Avoidable { resource, time, .. } => {
                        speeds.time(Timed { time, resource })
                    }
                    EdgeTime::Several { first, count, .. } => {
                        let several = &times.several[first as usize..][..count as usize];
                        several.iter().map(|timed| speeds.time(*timed)).sum()
                    }
                };
                start = start.max(ends[edge.from()] + delay);
            }
            ends[at] = start + speeds.time(node.timed);
            let end = &mut step_ends[node.step as usize];
            *end = (*end).max(ends[at]);
        }
        step_ends.truncate(self.model.whole_steps);
        mean_step(&step_ends)
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
