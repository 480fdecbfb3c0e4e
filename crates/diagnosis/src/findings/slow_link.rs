//! Are pinned copies slower than the link allows for their sizes?

use busbound_cause::Resource;
use busbound_machine::LinkSource;
use busbound_trace::{Direction, IntervalSet, MemoryKind};
use serde_json::json;

use super::common::copies::{times_of, total_ms};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::{Copy, expected_ns};
use crate::analysis::facts::Facts;
use crate::quantity::{milliseconds, plural};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Slow pinned copies",
    doing: "finding what slows the link down",
    precondition: "The stated link is correct. A trace does not show a narrower slot or a downgraded link.",
    basis: "bound: copy time beyond the link's rate for these sizes, limited to exposed time",
    candidate: Candidate::None(
        "`link=NAME` replaces the link with another. Here the link is already the stated one, and something that is not \
         visible in the trace slows it down.",
    ),
    effort: Effort::Machine,
    unless: &[],
    relieves: &[Resource::H2d, Resource::D2h],
    check,
    document: Document {
        meaning: "Pinned copies run well below the rate that the link reaches for their sizes.",
        computed: "Evidence: pinned copies of 1 MiB or more run at less than 70% of the rate that the stated link reaches for \
                   their sizes, and take at least 2% of the time. Not reported if the link is only assumed. Saving: at \
                   most their time beyond the link's rate, limited to exposed time, and to what they take side by side beyond \
                   the busier direction.",
        fix: "Check, in this order: link width and speed under load (`nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv -l 1`), the NUMA node of the \
              process (`numactl`), other traffic on the same PCIe bridge.",
        code: &[],
        assumes: "The stated link is correct. A trace does not show a narrower slot or a downgraded link.",
    },
};

/// A link that carries this share of what it reaches is full.
const FULL: f64 = 0.8;

/// How much longer the copies take, side by side, than the link needs for the busier direction.
fn beyond_busiest_ms(facts: &Facts<'_>, copies: &[&Copy<'_>]) -> f64 {
    let of = |direction| {
        let some = copies.iter().filter(|copy| copy.transfer.direction == direction);
        some.map(|copy| expected_ns(copy, &facts.links)).sum::<f64>() / 1e6
    };
    let busiest = [Direction::HostToDevice, Direction::DeviceToHost].map(of).into_iter().fold(0.0, f64::max);
    let taken = IntervalSet::from_unsorted(times_of(copies)).length().as_millis();
    (taken - busiest).max(0.0)
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    // If the link is only assumed, "slow" may just mean that the assumption is wrong.
    if facts.link.source == LinkSource::Assumed {
        return None;
    }
    let is_candidate = |copy: &&Copy<'_>| copy.host_memory() == Some(MemoryKind::Pinned) && copy.is_large();
    let pinned: Vec<&Copy<'_>> = facts.issued_copies().filter(is_candidate).collect();
    let total = total_ms(&pinned);
    let expected: f64 = pinned.iter().map(|copy| expected_ns(copy, &facts.links)).sum::<f64>() / 1e6;
    if pinned.is_empty() || expected > 0.7 * total || total < 0.02 * facts.time.analyzed_ms {
        return None;
    }
    let (steps, per) = (facts.steps(), facts.unit().per());
    let moved: u64 = pinned.iter().filter_map(|copy| copy.bytes()).sum();
    let exposed = facts.exposed_ms(pinned.iter().copied());
    let (is, could) = (moved as f64 / 1e6 / total, moved as f64 / 1e6 / expected);
    // Kernels that read host memory at the same time share the link: it is full, not slow.
    if is + facts.host_memory_gbps() > FULL * could {
        return None;
    }
    Some(Draft {
        title: None,
        seen: format!(
            "{} of 1 MiB or more run at {is:.1} GB/s; {} reaches {could:.1} GB/s for these sizes. They take {}{per}, {} of it exposed.",
            plural(pinned.len() as u64, "pinned copy", "pinned copies"),
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
        saves: Saving {
            low: 0.0,
            high: (total - expected).min(exposed).min(beyond_busiest_ms(facts, &pinned)) / facts.gpu_steps(),
        },
        fix: Fix::new(
            "Check, in this order: link width and speed under load (nvidia-smi --query-gpu=pcie.link.gen.current,pcie.link.width.current --format=csv -l 1), the NUMA node of the process \
             (numactl), other traffic on the same PCIe bridge.",
        ),
        at: times_of(&pinned),
    })
}
