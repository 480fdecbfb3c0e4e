//! Does the way the run was profiled change what it shows?

use serde_json::json;

use super::{Draft, Saving};
use crate::activity::syncs::blocks_that_end_in_sync;
use crate::analysis::facts::Facts;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let within_steps = facts.host.annotations().into_iter().filter(|event| !facts.marks_steps(event.name()));
    let Some((pattern, blocks)) = blocks_that_end_in_sync(&facts.syncs, within_steps) else {
        return Vec::new();
    };
    if (blocks as f64) < 3.0 * facts.steps() {
        return Vec::new();
    }
    vec![Draft {
        at: facts.syncs.device_wide.clone(),
        id: "profiler_distortion",
        title: "Each block ends in a device synchronisation".to_owned(),
        seen: format!(
            "{blocks} blocks `{pattern}` end in a synchronisation of the whole device: nothing overlaps across them, which a run without it may do.",
        ),
        evidence: json!({ "pattern": pattern, "blocks": blocks }),
        precondition: "The synchronisation is there for measuring.",
        saves: Saving { low: 0.0, high: 0.0 },
        basis: "none: these figures serve attribution, not throughput",
        fix: "Record again without synchronize() at each block before judging overlap; use record_function alone.".to_owned(),
    }]
}
