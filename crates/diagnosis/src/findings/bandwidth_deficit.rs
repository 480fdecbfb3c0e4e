//! Do the bytes need longer on the bus than the kernels take? No prefetch depth hides that.

use busbound_trace::Direction;
use serde_json::json;

use super::common::copies::times_of;
use super::common::prefetch::prefetched;
use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::activity::copies::{Copy, expected_ns};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;
use crate::settings::offload::{Offloading, prefetching};

pub(super) static RULE: Rule = Rule {
    title: "The bus is too short for the bytes: no prefetch hides them all",
    precondition: "GPU memory for the resident share, or fewer bytes (smaller dtype, larger batch for the same weights).",
    basis: "bound: what the bus needs beyond the kernels' time, if the resident share is kept on the GPU and the rest is prefetched",
    candidate: Candidate::None(
        "The fix keeps a share on the GPU that is computed from the run, and prefetches the rest; `resident=N%` \
         takes a given share and leaves the order of the other copies as it is.",
    ),
    unless: &[],
    check,
    document: Document {
        meaning: "Not enough PCIe bandwidth: the bytes need longer on the bus than the kernels take. No prefetch depth \
                  hides that.",
        computed: "Evidence: host-to-device copies of 1 MiB and more, not pageable, need at least 10% longer at the \
                   link's rate than the kernels take, and are exposed for 10% of the time. Not reported where copies \
                   run faster than the stated link. Saving: what the bus needs beyond the kernels' time, as far as \
                   exposed.",
        fix: "Keep a share of the data on the GPU: with compute time C and bus time B per step, the share 1 − C/B. Or \
              send fewer bytes: a smaller dtype, or a larger batch for the same weights.",
        code: &[],
        assumes: "The GPU has memory for the resident share, and the rest is prefetched.",
    },
};

/// What the copies to the device ask of the bus; of all steps, in milliseconds.
struct Demand<'f, 'a> {
    inbound: Vec<&'f Copy<'a>>,
    needed: f64,
    compute: f64,
    exposed: f64,
    moved: u64,
}

impl<'f, 'a> Demand<'f, 'a> {
    /// `None` where the kernels take long enough.
    fn of(facts: &'f Facts<'a>) -> Option<Self> {
        let inbound: Vec<_> =
            prefetched(facts).filter(|copy| copy.transfer.direction == Direction::HostToDevice).collect();
        let needed: f64 = inbound.iter().map(|copy| expected_ns(copy, &facts.link)).sum::<f64>() / 1e6;
        let exposed = facts.exposed_ms(inbound.iter().copied());
        let compute = facts.time.compute_ms;
        let is_enough = inbound.is_empty()
            || compute <= 0.0
            || facts.is_faster_than_link()
            || needed <= 1.1 * compute
            || exposed < 0.1 * facts.time.span_ms;
        let moved = inbound.iter().filter_map(|copy| copy.bytes()).sum();
        (!is_enough).then_some(Self { inbound, needed, compute, exposed, moved })
    }
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let Demand { inbound, needed, compute, exposed, moved } = Demand::of(facts)?;
    let (steps, unit) = (facts.steps(), facts.unit());
    let resident = 1.0 - compute / needed;
    // And the first copy of a step, which a resident group makes unneeded.
    let beyond = needed - compute + needed / inbound.len() as f64 * steps;
    let rate = facts.link.reachable_gbps();
    let wanted = moved as f64 / 1e6 / compute.max(1e-9);
    Some(Draft {
        title: None,
        seen: format!(
            "{:.2} GB a {unit} need {} at the {rate:.0} GB/s that {} reaches, and the kernels take {}; hiding all would need {wanted:.0} GB/s.",
            moved as f64 / 1e9 / steps,
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
        saves: Saving {
            low: 0.6 * (needed - compute).min(exposed) / steps,
            high: beyond.min(exposed) / steps,
        },
        fix: Fix::new(format!(
            "Keep {:.0} % of what is copied on the GPU, or send it in a smaller dtype; more prefetch depth will not help.",
            100.0 * resident
        ))
        .settings(prefetching(&Offloading { depth: 2, resident: resident.clamp(0.0, 1.0), layers: None })),
        at: times_of(&inbound),
    })
}
