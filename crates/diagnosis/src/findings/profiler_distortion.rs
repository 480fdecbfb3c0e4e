//! Does the profiling setup change the run?

use serde_json::json;

use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::syncs::blocks_that_end_in_sync;
use crate::analysis::facts::Facts;
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Device sync at the end of each block",
    doing: "recording without a sync in each block",
    precondition: "The sync was added only for measurement.",
    basis: "none: use this trace for attribution, not for throughput",
    candidate: Candidate::None(
        "This finding is about how the run was recorded. `nosync` replays the trace without the waits; `sync_in_loop` covers their cost.",
    ),
    effort: Effort::Setting,
    unless: &[],
    relieves: &[],
    check,
    document: Document {
        meaning: "The blocks of an annotation end with a device-wide synchronization. Nothing overlaps across these blocks, \
                  although it may in a run without the sync. Use such a trace for attribution, not for throughput.",
        computed: "Evidence: at least 80% of the blocks of one annotation within the steps, and at least three per step, end \
                   with a device-wide synchronization. Saving: none.",
        fix: "Record again without `synchronize()` in each block before you analyze overlap. Use only `record_function`.",
        code: &[],
        assumes: "The sync was added only for measurement.",
    },
};

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let within_steps = facts.host.annotations().into_iter().filter(|event| !facts.marks_steps(event.name()));
    let (pattern, blocks) = blocks_that_end_in_sync(&facts.syncs, within_steps)?;
    if (blocks as f64) < 3.0 * facts.steps() {
        return None;
    }
    Some(Draft {
        title: None,
        seen: format!(
            "{blocks} blocks `{pattern}` end with a device-wide synchronization, so nothing overlaps across them. Without the sync, work may overlap.",
        ),
        evidence: json!({ "pattern": pattern, "blocks": blocks }),
        saves: Saving::NONE,
        fix: Fix::new(
            "Record again without synchronize() in each block before you analyze overlap. Use only record_function.",
        ),
        at: facts.syncs.device_wide.clone(),
    })
}
