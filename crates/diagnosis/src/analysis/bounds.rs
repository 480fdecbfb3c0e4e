//! How long would a step take if one resource were faster, or free? Asks the dependency graph.

use std::sync::Arc;

use busbound_cause::idle::GapCause;
use busbound_cause::{Bounds, HostUse, Model, Resource};
use serde::Serialize;

use crate::activity::route::CopyRoute;
use crate::analysis::breakdown::Part;
use crate::analysis::facts::Facts;

/// One resource, and what the steps would take without it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResourceBound {
    pub resource: Resource,
    /// Milliseconds per step in which the resource is used.
    pub busy_ms: f64,
    /// Milliseconds per step in which nothing hides it.
    pub exposed_ms: f64,
    pub step_if_10pct_faster_ms: f64,
    pub step_if_free_ms: f64,
}

/// The steps, ready for questions. Times are milliseconds per step.
pub(crate) struct Asked<'f> {
    bounds: Bounds<'f>,
    recorded: f64,
    /// The step, without the profiler where that is known.
    pub(crate) step_ms: f64,
    /// Kernels of a step that only compute. The graph does not know that two of them share the device.
    compute_ms: f64,
}

/// The share of its time that a resource takes if it is 10% faster.
const FASTER: f64 = 0.9;

/// The graph must reproduce the recorded time this well to be asked.
const MOST_ERROR: f64 = 0.15;

/// Work whose call is not in the trace has a fixed start: with a larger share of it, the graph has too few edges.
const MOST_WITHOUT_CALL: f64 = 0.2;

/// Below this share of the time, idle time that the host causes may be hidden by other waits.
const MUCH_IDLE: f64 = 0.6;

impl<'f> Asked<'f> {
    /// `None` if the graph does not reproduce the recorded time, or has too few edges.
    pub(crate) fn of(facts: &'f Facts<'_>) -> Option<Self> {
        let model = facts.model()?;
        if model.edges.without_call as f64 > MOST_WITHOUT_CALL * model.work.len() as f64 {
            return None;
        }
        let bounds = Bounds::shaped(Arc::clone(facts.shape()?), model);
        let recorded = bounds.recorded()?;
        let step_ms = facts.own_step_ms();
        let error = recorded / 1e6 / (step_ms * facts.replayed_share()) - 1.0;
        let computing = (facts.time.compute_ms - facts.link_waits_ms()).max(0.0);
        let compute_ms = facts.breakdown.averaged(computing).unwrap_or(0.0);
        let asked = Self { bounds, recorded, step_ms, compute_ms };
        (recorded > 0.0 && error.abs() < MOST_ERROR && asked.explains_idle(facts)).then_some(asked)
    }

    /// Whether a host that takes no time removes most of the idle time that the host causes. If not, edges between its threads are
    /// missing.
    fn explains_idle(&self, facts: &Facts<'_>) -> bool {
        use GapCause::{Copy, Host, Input, Launch};
        let causes = [Copy, Host, Input, Launch];
        let by_host = |part: Part| matches!(part, Part::Idle(cause) if causes.contains(&cause));
        let idle = facts.breakdown.share_of(by_host).unwrap_or(0.0);
        let of_host = [Resource::Launch, Resource::Host, Resource::Input, Resource::H2d, Resource::D2h];
        // Without the profiler, there may be much less idle time than was recorded.
        let is_slowed = self.step_ms < 0.9 * facts.step_ms();
        is_slowed || idle < MUCH_IDLE || self.gain(&of_host) > 0.5 * idle * self.step_ms
    }

    /// Whether most syncs are the end of an H2D copy that blocks.
    pub(crate) fn syncs_end_uploads(&self) -> bool {
        self.bounds.waits_end_uploads()
    }

    /// The step if these resources take only `share` of their time.
    pub(crate) fn step_if(&self, resources: &[Resource], share: f64) -> f64 {
        let then = self.bounds.if_faster(resources, share).unwrap_or(self.recorded).min(self.recorded);
        let least = if resources.contains(&Resource::Compute) { 0.0 } else { self.compute_ms };
        (self.step_ms * then / self.recorded).max(least.min(self.step_ms))
    }

    /// The step if these resources are free. The first step does not count, and steps differ: a free resource is never slower than a
    /// faster one.
    pub(crate) fn step_if_free(&self, resources: &[Resource]) -> f64 {
        self.step_if(resources, 0.0).min(self.step_if(resources, FASTER))
    }

    /// What a step gains if these resources are free.
    pub(crate) fn gain(&self, resources: &[Resource]) -> f64 {
        self.step_ms - self.step_if_free(resources)
    }
}

/// Every resource that is used, in the order of [`Resource::ALL`].
pub(crate) fn resource_bounds(facts: &Facts<'_>, asked: &Asked<'_>) -> Vec<ResourceBound> {
    let Some(model) = facts.model() else { return Vec::new() };
    let of = |&resource: &Resource| {
        let bound = ResourceBound {
            resource,
            busy_ms: busy_ms(facts, model, resource),
            exposed_ms: exposed_ms(facts, resource),
            step_if_10pct_faster_ms: asked.step_if(&[resource], FASTER),
            step_if_free_ms: asked.step_if_free(&[resource]),
        };
        let is_used = bound.busy_ms > 0.0 || bound.step_if_free_ms < asked.step_ms;
        is_used.then_some(bound)
    };
    Resource::ALL.iter().filter_map(of).collect()
}

fn busy_ms(facts: &Facts<'_>, model: &Model, resource: Resource) -> f64 {
    let device = |ms: f64| facts.breakdown.averaged(ms).unwrap_or(0.0);
    let copies = |route: CopyRoute| {
        let lines = facts.timelines.iter();
        device(lines.map(|line| line.copies_on(route).length().as_millis()).sum())
    };
    match resource {
        Resource::Compute => device(facts.time.compute_ms),
        Resource::H2d => copies(CopyRoute::HostToDevice),
        Resource::D2h => copies(CopyRoute::DeviceToHost),
        Resource::Peer => copies(CopyRoute::Peer),
        Resource::Collectives => device(facts.time.comm_ms),
        Resource::Sync => facts.syncs.avoidable().ms / facts.steps(),
        Resource::Launch | Resource::Host | Resource::Input => {
            host_ms(model, |what| Resource::of_use(what) == Some(resource)) / facts.replayed_share()
        }
    }
}

/// Host time of these uses per step, over all threads.
pub(crate) fn host_ms(model: &Model, wanted: impl Fn(HostUse) -> bool) -> f64 {
    let uses = model.calls.iter().flat_map(|call| {
        let own = (call.cost_use, call.cost);
        call.since.uses.iter().copied().chain([own])
    });
    let total: i64 = uses.filter(|(what, _)| wanted(*what)).map(|(_, time)| time).sum();
    total as f64 / 1e6 / model.steps.max(1) as f64
}

fn exposed_ms(facts: &Facts<'_>, resource: Resource) -> f64 {
    let wanted = |part: Part| match resource {
        Resource::Compute => part == Part::Compute || part == Part::Copy(CopyRoute::WithinDevice),
        Resource::H2d => part == Part::Copy(CopyRoute::HostToDevice),
        Resource::D2h => part == Part::Copy(CopyRoute::DeviceToHost),
        Resource::Peer => part == Part::Copy(CopyRoute::Peer),
        Resource::Collectives => part == Part::Communication,
        Resource::Launch => part == Part::Idle(GapCause::Launch),
        Resource::Host => part == Part::Idle(GapCause::Host),
        Resource::Input => part == Part::Idle(GapCause::Input),
        Resource::Sync => part == Part::Idle(GapCause::Synchronization),
    };
    facts.breakdown.per_step_ms(wanted).unwrap_or(0.0)
}
