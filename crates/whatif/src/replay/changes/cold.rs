//! Which host work runs with cold caches? Staging a copy evicts the CPU caches, so what follows it is slower, less and less so.

use busbound_cause::{HostAction, HostUse, Model, Time, WorkId, WorkKind};

use super::edit::{OwnWaits, WORTH_MOVING};

/// The maximum cost of cold caches for one piece of host work after a staged copy.
const COLD_CACHES: Time = 150_000;
/// The host time after which cold caches cost a third of what they cost right after a staged copy. Measured: launches after
/// staged and after pinned copies of the same program (`accelerate-model_offload_3` in fixtures/frameworks).
const COLD_FOR: Time = 400_000;

/// Per call: the staged copy before it, and how much of its effect is left.
pub(super) struct ColdCaches(Vec<Option<(WorkId, f64)>>);

impl ColdCaches {
    pub(super) fn of(graph: &Model) -> Self {
        let (own, mut cold) = (OwnWaits::of(graph), vec![None; graph.calls.len()]);
        let mut staged: Vec<Option<WorkId>> = vec![None; graph.calls.len()];
        for (id, work) in graph.work.iter().enumerate() {
            let is_large =
                matches!(work.kind, WorkKind::Copy { pageable: true, bytes, .. } if bytes >= WORTH_MOVING);
            let Some(call) = work.call.filter(|_| is_large && !work.dropped) else { continue };
            if graph.calls[call].action == HostAction::IssueBlocking(id) {
                staged[own.get(id).unwrap_or(call)] = Some(id);
            }
        }
        for thread in &graph.threads {
            let (mut last, mut since) = (None, 0);
            for &id in thread {
                let call = &graph.calls[id];
                if since < 4 * COLD_FOR {
                    cold[id] = last.map(|copy| (copy, (-(since as f64) / COLD_FOR as f64).exp()));
                }
                // Freeing memory, the longest of what is not recorded, warms no caches.
                let uses = call.since.uses.iter().filter(|(what, _)| *what != HostUse::Python);
                since += uses.map(|(_, time)| time).sum::<Time>() + call.cost;
                if staged[id].is_some() {
                    (last, since) = (staged[id], 0);
                }
            }
        }
        Self(cold)
    }

    /// Host work behind copies that are no longer staged gets faster: right after them, `kept` of it stays.
    pub(super) fn warm(&self, graph: &mut Model, kept: f64, is_gone: impl Fn(WorkId) -> bool) {
        for (id, cold) in self.0.iter().enumerate() {
            let Some((_, left)) = cold.filter(|(copy, _)| is_gone(*copy)) else { continue };
            let call = &mut graph.calls[id];
            let (gap, share) = (call.gap(), (1.0 - kept) * left);
            call.set_gap(gap - ((gap as f64 * share) as Time).min(COLD_CACHES));
            if matches!(call.action, HostAction::Issue(_)) {
                call.cost -= (call.cost as f64 * share) as Time;
            }
        }
    }
}
