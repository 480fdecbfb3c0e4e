//! Does the GPU wait for its next batch?

use serde_json::json;

use super::common::copies::gaps_of;
use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;
use crate::settings::Target;
use busbound_cause::idle::GapCause;

pub(super) static RULE: Rule = Rule {
    title: "The GPU waits for input",
    precondition: "CPU cores and memory for the workers.",
    basis: "bound: idle time under the loader",
    candidate: Candidate::None(
        "No change loads batches in other processes: how long a batch takes there is not in the trace.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "The GPU is idle while the launching thread fetches the next batch.",
        computed: "Evidence: idle time of 3% or more during which the launching thread was inside a DataLoader's \
                   `__next__`. Saving: that idle time at most, half of it at least.",
        fix: "Load in worker processes (`num_workers`, `persistent_workers=True`, a deeper `prefetch_factor`), and move \
              decoding out of the loop.",
        code: &[CODE],
        assumes: "There are CPU cores and memory for the workers.",
    },
};

const CODE: &str = "\
loader = DataLoader(dataset, batch_size, num_workers=8, persistent_workers=True,
                    prefetch_factor=4, pin_memory=True)";

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let idle = facts.idle.iter().find(|idle| idle.cause == GapCause::Input)?;
    if idle.ms < 0.03 * facts.time.span_ms {
        return None;
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
    Some(Draft {
        title: None,
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
        saves: Saving { low: 0.5 * idle.ms / steps, high: idle.ms / steps },
        fix: Fix::new(fix).code(CODE).setting(Target::DataLoader, "num_workers", 4),
        at: gaps_of(facts, GapCause::Input),
    })
}
