//! `loader=pin`: batches are pinned by the loader's own thread.

use std::collections::BTreeSet;
use std::fmt;

use busbound_cause::{CallId, HostUse, Model, Time, WorkId, WorkKind};
use busbound_trace::Direction;

use super::edit::{OwnWaits, next_calls};
use super::{About, Declared, Made, Pin, Terms};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoaderPin;

impl Declared for LoaderPin {
    const ABOUT: About = About {
        name: "loader",
        spelling: "loader=pin",
        help: "let the loader's own thread pin each batch",
        doing: "pinning batches in the loader",
        effort: "`DataLoader(pin_memory=True)` and `non_blocking=True`",
        precondition: "the loader's thread keeps up with the steps",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        if value == Some("pin") { Ok(Self) } else { Err("loader takes pin") }
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let batches: Vec<WorkId> = (0..graph.work.len()).filter(|id| is_batch(graph, *id)).collect();
        let receipts = Receipts::of(graph, &batches);
        let steps = graph.steps.max(1) as f64;
        // The loader's thread receives, copies and releases each batch while the steps run; they wait if it is slower than the rest.
        let moved = receipts.total(graph) / steps;
        let rest = (graph.end as f64 / steps - moved).max(0.0);
        let wait = (moved * terms.assumed.pin_thread - rest).clamp(0.0, moved);
        let share = if moved > 0.0 { wait / moved } else { 0.0 };
        for call in receipts.around.iter().copied() {
            let since = &mut graph.calls[call].since;
            let received: Time = since
                .uses
                .iter_mut()
                .filter(|(what, _)| is_receipt(*what))
                .map(|(_, time)| std::mem::take(time))
                .sum();
            since
                .uses
                .push((HostUse::Input, (received as f64 * share.max(terms.assumed.handing_over)) as Time));
        }
        for (call, staging) in &receipts.staged {
            graph.calls[*call].since.uses.push((HostUse::Input, (*staging as f64 * share) as Time));
        }
        Pin.apply(graph, terms)
    }
}

/// What the training thread does to receive batches.
struct Receipts {
    /// Copy calls, and how long they stage.
    staged: Vec<(CallId, Time)>,
    /// Calls with host work before them that receives or releases a batch: copy calls, and those after them.
    around: BTreeSet<CallId>,
}

impl Receipts {
    fn of(graph: &Model, batches: &[WorkId]) -> Self {
        let (own, next) = (OwnWaits::of(graph), next_calls(graph));
        let (mut staged, mut around) = (Vec::new(), BTreeSet::new());
        for &id in batches {
            let Some(call) = graph.work[id].call else { continue };
            staged.push((call, graph.calls[call].end - graph.calls[call].start));
            around.insert(call);
            around.extend(next[own.get(id).unwrap_or(call)]);
        }
        Self { staged, around }
    }

    /// Nanoseconds over all steps.
    fn total(&self, graph: &Model) -> f64 {
        let uses = self.around.iter().flat_map(|call| &graph.calls[*call].since.uses);
        let received: Time = uses.filter(|(what, _)| is_receipt(*what)).map(|(_, time)| time).sum();
        let staging: Time = self.staged.iter().map(|(_, time)| time).sum();
        (received + staging) as f64
    }
}

/// Shared memory of a worker is mapped, and unmapped after the copy.
fn is_receipt(what: HostUse) -> bool {
    matches!(what, HostUse::Input | HostUse::Python | HostUse::Cast)
}

fn is_batch(graph: &Model, id: WorkId) -> bool {
    let work = &graph.work[id];
    !work.dropped
        && matches!(work.kind, WorkKind::Copy { direction: Direction::HostToDevice, pageable: true, .. })
}

impl fmt::Display for LoaderPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=pin", Self::ABOUT.name)
    }
}
