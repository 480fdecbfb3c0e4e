//! Do copies and collectives compete for one link?

use serde_json::json;

use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Copies and collectives slow each other",
    precondition: "One of the two can be moved to another part of the step.",
    basis: "bound: the measured slow-down over the time they run at once",
    candidate: Candidate::None(
        "No change moves collectives, and the replay does not let copies and collectives share a link.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "Copies and collectives take longer when they run at the same time. Without links of their own between \
                  GPUs both use one PCIe link, direction by direction: they slow each other down, they do not exclude \
                  each other.",
        computed: "Evidence: the same copies (direction, memory, size class) or the same collectives (kernel, element \
                   counts) take longer together than alone, with a 95% confidence interval above zero and at least \
                   three of each, and run at the same time for 1% of the time. Saving: the measured slowdown over that \
                   time at most.",
        fix: "Issue copies after the collective of the same direction, or split them so that they run during compute.",
        code: &[],
        assumes: "One of the two can move to another part of the step.",
    },
};

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let evident: Vec<_> = facts.contention.iter().filter(|c| c.is_evident()).collect();
    let shared = facts.overlap.host_copy_comm_ms;
    let worst = evident.iter().max_by(|a, b| a.slower_pct.total_cmp(&b.slower_pct))?;
    if shared < 0.01 * facts.time.span_ms {
        return None;
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
    Some(Draft {
        title: None,
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
        saves: Saving { low: 0.0, high: lost / steps },
        fix: Fix::new(
            "Start copies after the collective of the same direction, or split them so that they fall into compute.",
        ),
        at: facts
            .timelines
            .iter()
            .flat_map(|t| t.bus_copies.intersection(&t.communication).iter().collect::<Vec<_>>())
            .collect(),
    })
}
