//! Does the way the run was profiled change what it shows?

use serde_json::json;

use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::activity::syncs::blocks_that_end_in_sync;
use crate::analysis::facts::Facts;
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Each block ends in a device synchronization",
    precondition: "The synchronization is there for measuring.",
    basis: "none: these figures serve attribution, not throughput",
    candidate: Candidate::None(
        "It says how the run was recorded. `nosync` replays it without the waits; `sync_in_loop` covers their cost.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "The blocks of an annotation end in a synchronization of the whole device. Nothing overlaps across \
                  them, which a run without it may do: such a trace serves attribution, not throughput.",
        computed: "Evidence: at least 80% of the blocks of one annotation within the steps, and three per step, end in a \
                   device-wide synchronization. It saves nothing by itself.",
        fix: "Record again without `synchronize()` at each block before judging overlap; use `record_function` alone.",
        code: &[],
        assumes: "The synchronization is there for measuring.",
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
            "{blocks} blocks `{pattern}` end in a synchronization of the whole device: nothing overlaps across them, which a run without it may do.",
        ),
        evidence: json!({ "pattern": pattern, "blocks": blocks }),
        saves: Saving::NONE,
        fix: Fix::new(
            "Record again without synchronize() at each block before judging overlap; use record_function alone.",
        ),
        at: facts.syncs.device_wide.clone(),
    })
}
