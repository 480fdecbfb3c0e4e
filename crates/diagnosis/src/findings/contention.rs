//! Do copies and collectives fight over one link?

use serde_json::json;

use super::{Draft, Saving};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    let evident: Vec<_> = facts.contention.iter().filter(|c| c.is_evident()).collect();
    let shared = facts.overlap.host_copy_comm_ms;
    let Some(worst) = evident.iter().max_by(|a, b| a.slower_pct.total_cmp(&b.slower_pct)) else {
        return Vec::new();
    };
    if shared < 0.01 * facts.time.span_ms {
        return Vec::new();
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let path = match facts.link.nvlink_gbps {
        Some(gbps) if gbps > 0.0 => {
            "This GPU has links of its own to other GPUs, so the shared part is more likely the host's memory or a bridge."
        }
        Some(_) => "Without NVLink both cross this GPU's one PCIe link.",
        None => "Whether this GPU has links of its own to others is not known.",
    };
    let lost = shared * worst.slower_pct / 100.0;
    vec![Draft {
        at: facts.timelines.iter().flat_map(|t| t.bus_copies.intersection(&t.communication).iter().collect::<Vec<_>>()).collect(),
        id: "copy_collective_contention",
        title: "Copies and collectives slow each other".to_owned(),
        seen: format!(
            "{} take {:.0} % longer beside {} ({:.0} to {:.0} %, {} beside and {} alone); they run at once for {} a {unit}. {path}",
            worst.what,
            worst.slower_pct,
            worst.beside,
            worst.low_pct,
            worst.high_pct,
            worst.count_beside,
            worst.count_alone,
            milliseconds(shared / steps),
        ),
        evidence: json!({
            "comparisons": evident,
            "host_copy_comm_ms_per_step": shared / steps,
        }),
        precondition: "One of the two can be moved to another part of the step.",
        saves: Saving { low: 0.0, high: lost / steps },
        basis: "bound: the measured slow-down over the time they run at once",
        fix: "Start copies after the collective of the same direction, or split them so that they fall into compute.".to_owned(),
    }]
}
