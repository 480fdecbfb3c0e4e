//! Do copies on their own stream still arrive too late for compute?

use busbound_cause::Resource;
use serde_json::json;

use super::common::copies::{times_of, total_ms};
use super::common::prefetch::{PREFETCH_CODE, prefetched};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::findings::FindingId;
use crate::quantity::milliseconds;
use crate::saving::Saving;
use crate::settings::offload::{Offloading, prefetching};

pub(super) static RULE: Rule = Rule {
    title: "Late or shallow prefetch",
    doing: "starting copies earlier",
    precondition: "The GPU has memory for one more layer (or batch) in flight.",
    basis: "bound: exposed copy time between the first and the last kernel of each step",
    candidate: Candidate::None(
        "`prefetch=N` moves copies that share a stream with kernels or block the host. These copies already have their \
         own stream, and the replay issues them when the program did.",
    ),
    effort: Effort::Setting,
    unless: &[FindingId::BandwidthDeficit],
    relieves: &[Resource::H2d],
    check,
    document: Document {
        meaning: "Copies have their own stream, but compute still waits for them, although the kernels run long enough to hide \
                  them. The copies are issued too late, or too few layers (or batches) ahead.",
        computed: "Evidence: copies of 1 MiB or more, not pageable, on streams without kernels are exposed for at least 5% of \
                   the time. Not reported if `bandwidth_deficit` is reported. Saving: 30% to 100% of their exposed time \
                   between the first and the last kernel of each step.",
        fix: "Start the copy for layer i+2, not i+1, before you launch the kernels of layer i. That needs a third buffer.",
        code: &[PREFETCH_CODE],
        assumes: "The GPU has memory for one more layer (or batch), and the data to copy is known that early.",
    },
};

/// Copies on streams that run no kernels.
fn on_own_streams<'f, 'a>(facts: &'f Facts<'a>) -> Vec<&'f Copy<'a>> {
    // Before the first recorded kernel, the GPU may have been busy with a kernel that was not recorded.
    let is_after_a_kernel = |copy: &Copy<'_>| {
        let timeline = facts.timelines.iter().find(|timeline| timeline.device == copy.device);
        let kernels = timeline.and_then(|timeline| timeline.kernels.hull());
        kernels.is_some_and(|hull| copy.event.start() >= hull.start)
    };
    prefetched(facts)
        .filter(|copy| facts.shares_stream_with_kernels(copy) == Some(false))
        .filter(|copy| is_after_a_kernel(copy))
        .collect()
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let copies = on_own_streams(facts);
    let (steps, unit) = (facts.steps(), facts.unit());
    let total = total_ms(&copies);
    let exposed = facts.exposed_ms(copies.iter().copied());
    if copies.is_empty() || exposed < 0.05 * facts.time.analyzed_ms {
        return None;
    }
    // Copies that take longer than the kernels cannot hide behind them, however early they are issued.
    if total > facts.time.compute_ms {
        return None;
    }
    let per_step = copies.len() as f64 / steps;
    // Before the first and after the last kernel of a step, a copy has no kernel of the step to overlap with.
    // And no prefetch gets a step below the time that the link needs for its copies.
    let link_idle = facts.time.analyzed_ms - facts.bus_busy_ms();
    let high = facts.exposed_between_kernels_ms(&copies).min(link_idle);
    if high < 0.02 * facts.time.analyzed_ms {
        return None;
    }
    let not_hidden = match exposed > 0.99 * total {
        true => "none of the copy time overlaps with a kernel".to_owned(),
        false => format!("{} of the copy time overlaps with no kernel", milliseconds(exposed / steps)),
    };
    Some(Draft {
        title: None,
        seen: format!(
            "{per_step:.0} copies per {unit} on their own stream take {}, and kernels take {}, but {not_hidden}.",
            milliseconds(total / steps),
            milliseconds(facts.time.compute_ms / steps),
        ),
        evidence: json!({
            "copies_per_step": per_step,
            "copy_ms_per_step": total / steps,
            "compute_ms_per_step": facts.time.compute_ms / steps,
            "exposed_ms_per_step": exposed / steps,
        }),
        saves: Saving { low: 0.3 * high / facts.gpu_steps(), high: high / facts.gpu_steps() },
        fix: Fix::new(
            "Start the copy for layer i+2, not i+1, before you launch the kernels of layer i. That needs a third buffer.",
        )
        .code(PREFETCH_CODE)
        .settings(prefetching(Offloading { depth: 2, resident: 0.0, layer_bytes: None })),
        at: times_of(&copies),
    })
}
