//! Are pinned copies slower than the link allows for their size?

use busbound_machine::LinkSource;
use busbound_trace::MemoryKind;
use serde_json::json;

use super::{Draft, Saving, times_of};
use crate::activity::copies::{Copy, expected_ns};
use crate::analysis::facts::Facts;
use crate::quantity::{count, milliseconds};

const SMALLEST: u64 = 1 << 20;

pub(super) fn check(facts: &Facts<'_>) -> Vec<Draft> {
    // Against an assumed link "slow" would only mean that the assumption is wrong.
    if facts.link.source == LinkSource::Assumed {
        return Vec::new();
    }
    let pinned: Vec<&Copy<'_>> = facts
        .issued_copies()
        .filter(|copy| copy.host_memory() == Some(MemoryKind::Pinned))
        .filter(|copy| copy.bytes().is_some_and(|bytes| bytes >= SMALLEST))
        .collect();
    let total: f64 = pinned.iter().map(|copy| copy.event.duration().as_millis()).sum();
    let expected: f64 = pinned.iter().map(|copy| expected_ns(copy, &facts.link)).sum::<f64>() / 1e6;
    if pinned.is_empty() || expected > 0.7 * total || total < 0.02 * facts.time.span_ms {
        return Vec::new();
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let moved: u64 = pinned.iter().filter_map(|copy| copy.bytes()).sum();
    let exposed = facts.exposed_ms(pinned.iter().copied());
    let (is, could) = (moved as f64 / 1e6 / total, moved as f64 / 1e6 / expected);
    vec![Draft {
        at: times_of(&pinned),
        id: "slow_link",
        title: "Pinned copies are slower than the link allows".to_owned(),
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
        precondition: "The link is what is stated: a trace cannot tell a slot that is narrower or trained down.",
        saves: Saving { low: 0.0, high: (total - expected).min(exposed) / steps },
        basis: "bound: copy time at the link's rate for these sizes, as far as exposed",
        fix: "Check, in this order: link width and speed under load (nvidia-smi -q -d PCIE), the NUMA node of the process \
              (numactl), other traffic on the same bridge."
            .to_owned(),
    }]
}
