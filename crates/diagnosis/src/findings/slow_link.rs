//! Are pinned copies slower than the link allows for their size?

use busbound_machine::LinkSource;
use busbound_trace::MemoryKind;
use serde_json::json;

use super::common::copies::{is_large, times_of, total_ms};
use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::activity::copies::{Copy, expected_ns};
use crate::analysis::facts::Facts;
use crate::quantity::{count, milliseconds};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Pinned copies are slower than the link allows",
    precondition: "The link is what is stated: a trace cannot tell a slot that is narrower or trained down.",
    basis: "bound: copy time at the link's rate for these sizes, as far as exposed",
    candidate: Candidate::None(
        "`link=NAME` replaces a link by another; here the link already is the one that is stated, and something \
         outside the trace slows it.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "Pinned copies run well below what the link gives for their sizes.",
        computed: "Evidence: pinned copies of 1 MiB and more at less than 70% of what the stated link gives for their \
                   sizes, for 2% of the time. Not reported where the link itself is only assumed. Saving: their time \
                   beyond the link's rate at most, as far as exposed.",
        fix: "Check, in this order: link width and speed under load (`nvidia-smi -q -d PCIE`), the NUMA node of the \
              process (`numactl`), other traffic on the same bridge.",
        code: &[],
        assumes: "The link is the one that is stated: a trace does not show a slot that is narrower or trained down.",
    },
};

fn check(facts: &Facts<'_>) -> Option<Draft> {
    // Against an assumed link "slow" would only mean that the assumption is wrong.
    if facts.link.source == LinkSource::Assumed {
        return None;
    }
    let is_judged = |copy: &&Copy<'_>| copy.host_memory() == Some(MemoryKind::Pinned) && is_large(copy);
    let pinned: Vec<&Copy<'_>> = facts.issued_copies().filter(is_judged).collect();
    let total = total_ms(&pinned);
    let expected: f64 = pinned.iter().map(|copy| expected_ns(copy, &facts.link)).sum::<f64>() / 1e6;
    if pinned.is_empty() || expected > 0.7 * total || total < 0.02 * facts.time.span_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let moved: u64 = pinned.iter().filter_map(|copy| copy.bytes()).sum();
    let exposed = facts.exposed_ms(pinned.iter().copied());
    let (is, could) = (moved as f64 / 1e6 / total, moved as f64 / 1e6 / expected);
    Some(Draft {
        title: None,
        seen: format!(
            "{} pinned copies of 1 MiB and more run at {is:.1} GB/s; {} gives {could:.1} GB/s for these sizes. They cost {} a {unit}, {} of it exposed.",
            count(pinned.len() as u64),
            facts.link.name,
            milliseconds(total / steps),
            milliseconds(exposed / steps),
        ),
        evidence: json!({
            "copies": pinned.len(),
            "gbps": is,
            "expected_gbps": could,
            "ms_per_step": total / steps,
            "exposed_ms_per_step": exposed / steps,
            "link": facts.link.name,
            "link_source": facts.link.source,
        }),
        saves: Saving { low: 0.0, high: (total - expected).min(exposed) / steps },
        fix: Fix::new(
            "Check, in this order: link width and speed under load (nvidia-smi -q -d PCIE), the NUMA node of the process \
             (numactl), other traffic on the same bridge.",
        ),
        at: times_of(&pinned),
    })
}
