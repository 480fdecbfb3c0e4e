//! `pin`: pins host memory.

use std::fmt;

use busbound_cause::thresholds::EVENT_PASSES;
use busbound_cause::{CallId, HostAction, Model, Time, WorkKind};

use super::edit::{OwnWaits, WORTH_MOVING, copy_ns};
use super::{About, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin;

/// The maximum cost of cold caches on the host after a staged copy.
const COLD_CACHES: Time = 150_000;

impl Declared for Pin {
    const ABOUT: About = About {
        name: "pin",
        spelling: "pin",
        help: "pin host memory",
        doing: "pinning host buffers",
        effort: "pin the host buffers once (`pin_memory()`)",
        precondition: "the same host buffers are reused and fit in pinned memory",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let mut made = Made::default();
        let own = OwnWaits::of(graph);
        // Per call: whether it staged a copy that the host no longer has to wait for.
        let mut is_behind = vec![false; graph.calls.len()];
        for id in 0..graph.work.len() {
            let WorkKind::Copy { direction, pageable: true, bytes } = graph.work[id].kind else { continue };
            // The time of a copy of unknown size cannot be predicted.
            if graph.work[id].kind.bus().is_none() || graph.work[id].dropped || bytes == 0 {
                continue;
            }
            let work = &mut graph.work[id];
            work.kind = WorkKind::Copy { direction, pageable: false, bytes };
            work.alone = copy_ns(bytes, direction, false, terms.link) * terms.assumed.copies;
            // The measured delay includes staging, which starts before the copy.
            work.after_call = work.after_call.min(2 * EVENT_PASSES);
            if let Some(call) = work.call
                && graph.calls[call].action == HostAction::IssueBlocking(id)
            {
                graph.calls[call].action = HostAction::Issue(vec![id]);
                graph.calls[call].cost = graph.copy_call;
                if bytes >= WORTH_MOVING {
                    is_behind[own.get(id).unwrap_or(call)] = true;
                }
            }
            made.changed += 1;
        }
        warm_caches(graph, &is_behind, terms.assumed.behind_staging);
        made
    }
}

/// Host work after a copy that is no longer staged gets faster.
fn warm_caches(graph: &mut Model, is_behind: &[bool], behind_staging: f64) {
    for thread in &graph.threads {
        for pair in thread.windows(2).filter(|pair: &&[CallId]| is_behind[pair[0]]) {
            let next = &mut graph.calls[pair[1]];
            let saved = (next.gap() as f64 * (1.0 - behind_staging)) as Time;
            next.set_gap(next.gap() - saved.min(COLD_CACHES));
        }
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}
