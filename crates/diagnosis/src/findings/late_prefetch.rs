//! Copies have a stream of their own and compute still waits: are they too late?

use serde_json::json;

use super::common::copies::{times_of, total_ms};
use super::common::prefetch::{PREFETCH_CODE, prefetched};
use super::common::{Candidate, Document, Draft, Fix, Rule};
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::findings::FindingId;
use crate::quantity::milliseconds;
use crate::saving::Saving;
use crate::settings::offload::{Offloading, prefetching};

pub(super) static RULE: Rule = Rule {
    title: "Prefetch comes too late or is too shallow",
    precondition: "GPU memory for one more group in flight.",
    basis: "bound: exposed copy time between the first and the last kernel of each step",
    candidate: Candidate::None(
        "`prefetch=N` moves copies that share a stream with kernels or block the host; these already have a stream \
         of their own, and the replay issues them when the program did.",
    ),
    unless: &[FindingId::BandwidthDeficit],
    check,
    document: Document {
        meaning: "Copies have a stream of their own, and yet compute waits for them although its kernels take long \
                  enough to hide them: they are issued too late, or too few groups ahead.",
        computed: "Evidence: copies of 1 MiB and more, not pageable, on streams without kernels are exposed for at \
                   least 5% of the time. Not reported where `bandwidth_deficit` is. Saving: at most their exposed time \
                   between the first and the last kernel of each step, at least 30% of it.",
        fix: "Issue each copy one group earlier (depth 2), before the kernels of the group before it are launched.",
        code: &[PREFETCH_CODE],
        assumes: "The GPU has memory for one more group, and what comes next is known that early.",
    },
};

/// Those with a stream of their own.
fn on_own_streams<'f, 'a>(facts: &'f Facts<'a>) -> Vec<&'f Copy<'a>> {
    // Before the first kernel recorded, the device may have been busy with one that was not.
    let is_after_a_kernel = |copy: &Copy<'_>| {
        let timeline = facts.timelines.iter().find(|timeline| timeline.device == copy.device);
        let kernels = timeline.and_then(|timeline| timeline.kernels.hull());
        kernels.is_some_and(|hull| copy.event.start() >= hull.start)
    };
    prefetched(facts)
        .filter(|copy| !facts.kernels_on_stream.contains_key(&(copy.device, copy.stream)))
        .filter(|copy| is_after_a_kernel(copy))
        .collect()
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let copies = on_own_streams(facts);
    let (steps, unit) = (facts.steps(), facts.unit());
    let total = total_ms(&copies);
    let exposed = facts.exposed_ms(copies.iter().copied());
    if copies.is_empty() || exposed < 0.05 * facts.time.span_ms {
        return None;
    }
    let per_step = copies.len() as f64 / steps;
    // Before a step's first kernel and after its last a copy has nothing of the step to hide behind.
    let high = facts.exposed_between_kernels_ms(&copies);
    if high < 0.02 * facts.time.span_ms {
        return None;
    }
    Some(Draft {
        title: None,
        seen: format!(
            "{per_step:.0} copies a {unit} on a stream of their own take {} and kernels {}, yet {} of the copies run with no kernel beside them.",
            milliseconds(total / steps),
            milliseconds(facts.time.compute_ms / steps),
            milliseconds(exposed / steps),
        ),
        evidence: json!({
            "copies_per_step": per_step,
            "copy_ms_per_step": total / steps,
            "compute_ms_per_step": facts.time.compute_ms / steps,
            "exposed_ms_per_step": exposed / steps,
        }),
        saves: Saving { low: 0.3 * high / steps, high: high / steps },
        fix: Fix::new(
            "Start each copy one group earlier (depth 2), before the kernels of the group before it are launched.",
        )
        .code(PREFETCH_CODE)
        .settings(prefetching(&Offloading { depth: 2, resident: 0.0, layers: None })),
        at: times_of(&copies),
    })
}
