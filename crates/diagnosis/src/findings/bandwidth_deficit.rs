//! Do the bytes take longer on the bus than the kernels run? No prefetch depth hides that.

use busbound_cause::Resource;
use busbound_trace::Direction;
use busbound_whatif::replay::Prefetch;
use serde_json::json;

use super::common::copies::times_of;
use super::common::prefetch::prefetched;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::{Copy, expected_ns};
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds};
use crate::saving::Saving;
use crate::settings::offload::{Offloading, prefetching};
use crate::unit::Unit;

pub(super) static RULE: Rule = Rule {
    title: "Not enough PCIe bandwidth",
    doing: "keeping part of the copied data on the GPU",
    precondition: "The GPU has memory for the resident share, or you can send fewer bytes (smaller dtype, larger batch for the same weights).",
    basis: "bound: bus time beyond the kernels' time, if the resident share stays on the GPU and the rest is prefetched",
    candidate: Candidate::None(
        "The fix computes the share to keep on the GPU from the run, and prefetches the rest. `resident=N%` takes a \
         given share and does not change the order of the other copies.",
    ),
    effort: Effort::Restructuring,
    unless: &[],
    relieves: &[Resource::H2d],
    check,
    document: Document {
        meaning: "The bytes take longer on the bus than the kernels run. No prefetch depth hides that.",
        computed: "Evidence: H2D copies of 1 MiB or more, not from pageable memory, take over 10% longer at the link's rate \
                   than the kernels run, and are exposed for at least 10% of the time. Not reported if copies run \
                   faster than the stated link allows. Saving: bus time beyond the kernels' time, limited to exposed \
                   time. It is unknown where no step is found: the data may be copied only once.",
        fix: "Keep a share of the data on the GPU: 1 − C/B, with compute time C and bus time B per step. Or send fewer \
              bytes: use a smaller dtype, or a larger batch for the same weights.",
        code: &[],
        assumes: "The GPU has memory for the resident share, and the rest is prefetched.",
    },
};

/// What the H2D copies need from the bus; over all steps, in milliseconds.
struct Demand<'f, 'a> {
    inbound: Vec<&'f Copy<'a>>,
    needed: f64,
    compute: f64,
    exposed: f64,
    moved: u64,
}

impl<'f, 'a> Demand<'f, 'a> {
    /// `None` if the kernels run long enough.
    fn of(facts: &'f Facts<'a>) -> Option<Self> {
        let inbound: Vec<_> =
            prefetched(facts).filter(|copy| copy.transfer.direction == Direction::HostToDevice).collect();
        let needed: f64 = inbound.iter().map(|copy| expected_ns(copy, &facts.links)).sum::<f64>() / 1e6;
        let exposed = facts.exposed_ms(inbound.iter().copied());
        let compute = facts.time.compute_ms;
        let is_enough = inbound.is_empty()
            || compute <= 0.0
            || facts.is_faster_than_link()
            || needed <= 1.1 * compute
            || exposed < 0.1 * facts.time.analyzed_ms;
        let moved = inbound.iter().filter_map(|copy| copy.bytes()).sum();
        (!is_enough).then_some(Self { inbound, needed, compute, exposed, moved })
    }
}

/// Whether the copies still share a stream with kernels or block the host, and the step is shorter without that.
fn gains_from_prefetch(facts: &Facts<'_>) -> bool {
    facts.replay().is_some_and(|replay| replay.gains(&[Prefetch(1).into()]))
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let Demand { inbound, needed, compute, exposed, moved } = Demand::of(facts)?;
    let (steps, per) = (facts.gpu_steps(), facts.unit().per());
    let resident = 1.0 - compute / needed;
    // Includes the first copy of a step, which a resident group makes unnecessary.
    let beyond = needed - compute + needed / inbound.len() as f64 * steps;
    let rate = facts.link.reachable_gbps();
    let wanted = moved as f64 / 1e6 / compute.max(1e-9);
    Some(Draft {
        title: None,
        seen: format!(
            "{}{per} of H2D copies take {} at the {rate:.0} GB/s that {} reaches, but the kernels run for only {}; to hide all copies behind them, the link would need {wanted:.0} GB/s.",
            bytes((moved as f64 / steps) as u64),
            milliseconds(needed / steps),
            facts.link.name,
            milliseconds(compute / steps),
        ),
        evidence: json!({
            "bytes_per_step": moved as f64 / steps,
            "bus_ms_per_step": needed / steps,
            "compute_ms_per_step": compute / steps,
            "exposed_ms_per_step": exposed / steps,
            "resident_share_needed": resident,
            "gbps_needed": wanted,
        }),
        saves: match facts.unit() {
            Unit::Trace => Saving::NONE,
            _ => Saving {
                low: 0.6 * (needed - compute).min(exposed) / steps,
                high: beyond.min(exposed) / steps,
            },
        },
        fix: fix(facts, resident, moved as f64 / steps),
        at: times_of(&inbound),
    })
}

fn fix(facts: &Facts<'_>, resident: f64, moved: f64) -> Fix {
    // Where nothing shows that work repeats, the data may be copied only once.
    if facts.unit() == Unit::Trace {
        return Fix::new(
            "Send less: a smaller dtype, or only what the kernels read. If later passes copy the same data again, keep it on the GPU.",
        )
        .saving_known(false);
    }
    Fix::new(format!(
        "Keep {} ({:.0}%) of the copied data on the GPU, or send it in a smaller dtype.{}",
        bytes((resident * moved) as u64),
        100.0 * resident,
        if gains_from_prefetch(facts) { "" } else { " A deeper prefetch does not help." }
    ))
    .doing(format!("keeping {:.0}% of the copied data on the GPU", 100.0 * resident))
    .settings(prefetching(Offloading {
        depth: 2,
        resident: resident.clamp(0.0, 1.0),
        layer_bytes: None,
    }))
}
