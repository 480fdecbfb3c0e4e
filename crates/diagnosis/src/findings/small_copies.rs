//! Do many small copies cost more for their calls than for their bytes?

use busbound_whatif::replay::Coalesce;
use serde_json::json;

use super::common::copies::{times_of, total_ms};
use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, count, milliseconds};
use crate::saving::Saving;
use busbound_cause::idle::GapCause;

pub(super) static RULE: Rule = Rule {
    title: "Many small copies",
    precondition: "The small tensors are available at the same time.",
    basis: "bound: exposed time of these copies, and host time inside their calls",
    candidate: Candidate::Changes(|| vec![Coalesce.into()]),
    unless: &[],
    check,
    document: Document {
        meaning: "Many copies are so small that each call costs more than its bytes on the bus.",
        computed: "Evidence: at least 30 copies below 64 KiB per step, whose device time and host calls take at least 2% of \
                   the time. Saving: the trace replayed with `coalesce`. If that is not possible, a bound: their exposed \
                   time, and the host time inside their calls.",
        fix: "Pack the tensors into one pinned buffer, copy it once and use views on the GPU. Create constants on the \
              GPU.",
        code: &[CODE],
        assumes: "The small tensors are available at the same time.",
    },
};

const CODE: &str = "\
flat = torch.empty(sum(t.numel() for t in small), dtype=small[0].dtype, pin_memory=True)
sent = torch.cuda.Event()    # both once; tensors of one dtype go into one buffer
for small in batches:
    sent.synchronize()       # the previous copy has read the buffer
    torch.cat([t.flatten() for t in small], out=flat)
    on_device = flat.to(device, non_blocking=True)    # one copy
    sent.record()
    parts = on_device.split([t.numel() for t in small])";

/// Below this size, the call takes longer than the bytes on any existing link.
const SMALL: u64 = 64 << 10;
const MANY_PER_STEP: f64 = 30.0;

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let (steps, unit) = (facts.steps(), facts.unit());
    let small: Vec<&Copy<'_>> = facts
        .issued_copies()
        .filter(|copy| copy.is_on_bus() && copy.bytes().is_some_and(|bytes| bytes < SMALL))
        .collect();
    let device = total_ms(&small);
    let launching = facts.idle.iter().find(|idle| idle.cause == GapCause::Launch);
    let waiting = launching.map_or(0.0, |idle| idle.before_copies_ms);
    let host: f64 = small.iter().filter_map(|copy| copy.call).map(|call| call.duration().as_millis()).sum();
    let per_step = small.len() as f64 / steps;
    if per_step < MANY_PER_STEP || device + host < 0.02 * facts.time.span_ms {
        return None;
    }
    let moved: u64 = small.iter().filter_map(|copy| copy.bytes()).sum();
    let exposed = facts.exposed_ms(small.iter().copied());
    let place = small[0].call.and_then(|call| facts.host.around(&call).describe());
    Some(Draft {
        title: None,
        seen: format!(
            "{} copies per {unit}, {} on average, {} in total: {} on the GPU, {} in host calls, and {} of GPU idle time before the next copy.",
            count(per_step.round() as u64),
            bytes(moved / small.len() as u64),
            bytes((moved as f64 / steps) as u64),
            milliseconds(device / steps),
            milliseconds(host / steps),
            milliseconds(waiting / steps),
        ),
        evidence: json!({
            "copies_per_step": per_step,
            "bytes_per_step": moved as f64 / steps,
            "device_ms_per_step": device / steps,
            "host_ms_per_step": host / steps,
            "exposed_ms_per_step": exposed / steps,
            "idle_before_them_ms_per_step": waiting / steps,
            "place": place,
        }),
        saves: Saving { low: 0.5 * (exposed + waiting) / steps, high: (exposed + waiting.max(host)) / steps },
        fix: Fix::new(
            "Pack the tensors into one pinned buffer, copy it once and use views on the GPU. Create constants on the GPU.",
        )
        .code(CODE),
        at: times_of(&small),
    })
}
