//! Do the bytes that go up come down again in each step?

use busbound_cause::Resource;
use busbound_whatif::replay::Keep;
use serde_json::json;

use super::common::copies::{times_of, total_ms};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::gaps::{call_times, idle_inside_ms};
use crate::analysis::bounds::Asked;
use crate::analysis::facts::Facts;
use crate::analysis::returned::Returned;
use crate::quantity::{bytes, milliseconds, plural};
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Data copied back unchanged",
    doing: "not copying unchanged data back",
    precondition: "The step does not change the data. A trace shows sizes, not contents.",
    basis: "bound: exposed time of the D2H copies and idle time inside their calls, limited to what the step gains if D2H copies take no time",
    candidate: Candidate::Changes(|| vec![Keep.into()]),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[Resource::D2h],
    check,
    document: Document {
        meaning: "In each step, the same amount of data goes to the GPU and comes back: tensors of the same sizes, each first up, \
                  then down. This looks like weights or caches that nothing has changed, and the host already has them. \
                  `module.to(\"cpu\")` does this.",
        computed: "Evidence: for copies of 64 KiB or more, at least 95% of the bytes in both directions are in pairs of equal size, \
                   H2D first and D2H after it in the same step, and fewer are in pairs with D2H first (as gradients and \
                   weights of an optimizer on the CPU are). The D2H copies are exposed, or the GPU is idle inside their calls, \
                   for at least 2% of the time. Saving: at most that time, and at most what the step gains if D2H \
                   copies take no time.",
        fix: "Keep the host copy, and drop the copy on the GPU after use.",
        code: &[CODE],
        assumes: "The step does not change the data. A trace shows sizes, not contents.",
    },
};

const CODE: &str = "\
kept = {p: p.data.pin_memory() for p in layer.parameters()}    # once
for p in layer.parameters():
    p.data = kept[p].to(device, non_blocking=True)
x = layer(x)
for p in layer.parameters():
    p.data = kept[p]    # not layer.to(\"cpu\"): the host still has the weights";

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let Returned { up, down, share, copies } = Returned::of(facts)?;
    let exposed = facts.exposed_ms(copies.iter().copied());
    // A copy to pageable memory takes most of its time on the host, after its bytes have crossed the bus.
    let staging = idle_inside_ms(&facts.gaps, &call_times(copies.iter().filter_map(|copy| copy.call)));
    if exposed + staging < 0.02 * facts.time.analyzed_ms {
        return None;
    }
    let (steps, unit) = (facts.steps(), facts.unit());
    let per_step = facts.breakdown.averaged(exposed + staging)?;
    let high = Asked::of(facts).map_or(per_step, |asked| asked.gain(&[Resource::D2h]).min(per_step));
    Some(Draft {
        title: None,
        seen: format!(
            "{} go to the GPU per {unit}, and copies of the same sizes come back after use: {} of {} on average take {}, {} of it exposed, and the GPU is idle for {} more inside their calls.",
            bytes((up as f64 / steps) as u64),
            plural((copies.len() as f64 / steps).round().max(1.0) as u64, "D2H copy", "D2H copies"),
            bytes(down / copies.len() as u64),
            milliseconds(total_ms(&copies) / steps),
            milliseconds(exposed / steps),
            milliseconds(staging / steps),
        ),
        evidence: json!({
            "h2d_bytes_per_step": up as f64 / steps,
            "d2h_bytes_per_step": down as f64 / steps,
            "returned_share": share,
            "d2h_copies_per_step": copies.len() as f64 / steps,
            "d2h_ms_per_step": total_ms(&copies) / steps,
            "exposed_ms_per_step": exposed / steps,
            "idle_in_calls_ms_per_step": staging / steps,
        }),
        saves: Saving { low: 0.5 * high, high },
        fix: Fix::new("If nothing changes the data, do not copy it back: keep the host copy, and drop the one on the GPU.").code(CODE),
        at: times_of(&copies),
    })
}
