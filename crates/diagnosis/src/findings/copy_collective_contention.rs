//! Do copies and collectives compete for one link?

use busbound_cause::Resource;
use busbound_whatif::replay::Spread;
use serde_json::json;

use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Contention between copies and collectives",
    doing: "moving copies out of collectives",
    precondition: "Either the copies or the collectives can move to another part of the step.",
    basis: "bound: the measured slowdown over the time in which they overlap",
    candidate: Candidate::Changes(|| vec![Spread.into()]),
    effort: Effort::Restructuring,
    unless: &[],
    relieves: &[Resource::H2d, Resource::D2h, Resource::Collectives],
    check,
    document: Document {
        meaning: "Copies and collectives take longer when they run at the same time. Without dedicated links between GPUs, \
                  both use the same PCIe link. In each direction they share its bandwidth and slow each other down, but \
                  they still overlap.",
        computed: "Evidence: the same copies (direction, memory kind, size class) or the same collectives (kernel, element \
                   counts) take longer while overlapping than alone. The 95% confidence interval is above zero, with at \
                   least three of each, and they overlap for at least 1% of the time. Saving: at most what the slowdown \
                   costs while they overlap. What takes 1 + s times as long for t ms loses t × s / (1 + s).",
        fix: "Issue copies after the collective that uses the same direction, or split them so that they run during compute.",
        code: &[],
        assumes: "Either the copies or the collectives can move to another part of the step.",
    },
};

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let evident: Vec<_> = facts.contention.iter().filter(|c| c.is_evident()).collect();
    let shared = facts.overlap.host_copy_comm_ms;
    let worst = evident.iter().max_by(|a, b| a.slower_pct.total_cmp(&b.slower_pct))?;
    if shared < 0.01 * facts.time.analyzed_ms {
        return None;
    }
    let (steps, per) = (facts.steps(), facts.unit().per());
    let path = match facts.link.nvlink_gbps {
        Some(gbps) if gbps > 0.0 => {
            "This GPU has dedicated links to other GPUs, so the shared resource is more likely host memory or a PCIe bridge."
        }
        Some(_) => "Without NVLink, both use this GPU's only PCIe link.",
        None => "Whether this GPU has dedicated links to other GPUs is unknown.",
    };
    let lost = lost_ms(shared, worst.slower_pct / 100.0);
    let others: Vec<String> = evident
        .iter()
        .filter(|other| !std::ptr::eq(**other, *worst))
        .map(|other| format!("{} {:.0}% longer", other.what, other.slower_pct))
        .collect();
    let others = if others.is_empty() { String::new() } else { format!(" Also: {}.", others.join(", ")) };
    Some(Draft {
        title: None,
        seen: format!(
            "{} take {:.0}% longer while overlapping with {} ({:.0}% to {:.0}%; {} overlapping, {} alone); they overlap for {}{per}.{others} {path}",
            worst.what,
            worst.slower_pct,
            worst.other,
            worst.low_pct,
            worst.high_pct,
            worst.count_overlapping,
            worst.count_alone,
            milliseconds(shared / steps),
        ),
        evidence: json!({
            "comparisons": evident,
            "host_copy_comm_ms_per_step": shared / steps,
        }),
        saves: Saving { low: 0.0, high: lost / facts.gpu_steps() },
        fix: Fix::new(
            "Start copies after the collective that uses the same direction, or split them so that they run during compute.",
        ),
        at: facts
            .timelines
            .iter()
            .flat_map(|t| t.bus_copies.intersection(&t.communication).iter().collect::<Vec<_>>())
            .collect(),
    })
}

/// What two transfers lose that overlap for `shared_ms`, if each takes 1 + `slower` times as long meanwhile.
fn lost_ms(shared_ms: f64, slower: f64) -> f64 {
    shared_ms * slower / (1.0 + slower)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five exchanges of 2.0 ms took 4.5 ms each while copies ran: 12.5 ms lost, and not 28.1, which is more than the
    /// 22.5 ms in which they overlapped.
    #[test]
    fn contention_never_loses_more_than_the_time_that_it_lasts() {
        assert!((lost_ms(5.0 * 4.5, 4.5 / 2.0 - 1.0) - 12.5).abs() < 1e-9);
        assert!(lost_ms(22.5, 100.0) < 22.5);
    }
}
