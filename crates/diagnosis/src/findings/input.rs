//! Does the GPU wait for its next batch?

use serde_json::json;

use super::{Draft, Saving, gaps_of};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use busbound_cause::idle::GapCause;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let Some(idle) = facts.idle.iter().find(|idle| idle.cause == GapCause::Input) else { return Vec::new() };
    if idle.ms < 0.03 * facts.time.span_ms {
        return Vec::new();
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let single = facts.trace.names().iter().any(|name| name.contains("_SingleProcessDataLoaderIter"));
    let (how, fix) = if single {
        (
            " The loader runs in the training process (num_workers=0).",
            "DataLoader(num_workers=4 or more, persistent_workers=True, pin_memory=True, prefetch_factor=4).",
        )
    } else {
        (
            "",
            "More workers (num_workers), persistent_workers=True and a deeper prefetch_factor; move decoding off the loop.",
        )
    };
    vec![Draft {
        at: gaps_of(facts, GapCause::Input),
        id: "input_wait",
        title: "The GPU waits for input".to_owned(),
        seen: format!(
            "{} gaps in which the host was fetching a batch: {} a {unit}, the longest {}.{how}",
            idle.count,
            milliseconds(idle.ms / steps),
            milliseconds(idle.longest_ms),
        ),
        evidence: json!({
            "gaps": idle.count,
            "idle_ms_per_step": idle.ms / steps,
            "longest_ms": idle.longest_ms,
            "single_process_loader": single,
        }),
        precondition: "CPU cores and memory for the workers.",
        saves: Saving { low: 0.5 * idle.ms / steps, high: idle.ms / steps },
        basis: "bound: idle time under the loader",
        fix: fix.to_owned(),
    }]
}
