//! Does the GPU wait for the next batch?

use serde_json::json;

use super::common::copies::gaps_of;
use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::quantity::{milliseconds, plural};
use crate::saving::Saving;
use crate::settings::Target;
use busbound_cause::idle::GapCause;

pub(super) static RULE: Rule = Rule {
    title: "Waiting for input",
    precondition: "The host has CPU cores and memory for the workers.",
    basis: "bound: idle time inside the data loader",
    candidate: Candidate::None(
        "No what-if change moves loading to worker processes: the trace does not show how long a batch takes there.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "The GPU is idle while the launching thread fetches the next batch.",
        computed: "Evidence: GPU idle time while the launching thread is inside `__next__` of a DataLoader is 3% or more of \
                   the time. Saving: 50% to 100% of that idle time.",
        fix: "Load batches in worker processes (`num_workers`, `persistent_workers=True`, a higher `prefetch_factor`), and \
              move decoding out of the loop.",
        code: &[CODE],
        assumes: "The host has CPU cores and memory for the workers.",
    },
};

const CODE: &str = "\
loader = DataLoader(dataset, batch_size, num_workers=8, persistent_workers=True,
                    prefetch_factor=4, pin_memory=True)";

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let idle = facts.idle.iter().find(|idle| idle.cause == GapCause::Input)?;
    if idle.ms < 0.03 * facts.time.analyzed_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let single = facts.trace.names().iter().any(|name| name.contains("_SingleProcessDataLoaderIter"));
    let (how, fix) = if single {
        (
            " The DataLoader runs in the training process (num_workers=0).",
            "Use DataLoader(num_workers=4 or more, persistent_workers=True, pin_memory=True, prefetch_factor=4).",
        )
    } else {
        (
            "",
            "Use more workers (num_workers), persistent_workers=True and a higher prefetch_factor. Move decoding out of the loop.",
        )
    };
    Some(Draft {
        title: None,
        seen: format!(
            "{} in which the host fetches a batch: {}/{unit}, the longest {}.{how}",
            plural(idle.count, "idle gap", "idle gaps"),
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
