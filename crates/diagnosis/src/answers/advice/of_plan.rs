//! What a plan argues for.

use busbound_whatif::plan::ddp::Ddp;
use busbound_whatif::plan::offload::{Hiding, Offload, OffloadInputs};

use super::{Advice, Because};
use crate::settings::Target;
use crate::settings::offload::{Offloading, pinned, prefetching};

/// Buckets, and the accumulation that reaches the wanted efficiency.
pub fn advice_of_ddp(plan: &Ddp, statement: &str) -> Advice {
    let mut settings = Vec::new();
    let inputs = &plan.inputs;
    let wanted = 100.0 * inputs.wanted_efficiency;
    let exposed = plan.with_overlap.exposed_ms.high;
    if plan.smallest_accumulation > u64::from(inputs.accumulation) {
        Because {
            settings: &mut settings,
            why: format!("{exposed:.1} ms of synchronizing stay exposed in a step; {wanted:.0} % of compute needs this many micro-batches"),
            when: "the optimizer bears a batch that much larger".to_owned(),
        }
        .set(Target::Ddp, "gradient_accumulation_steps", plan.smallest_accumulation)
        .set(Target::Ddp, "no_sync", "for all micro-batches but the last");
    }
    Because {
        settings: &mut settings,
        why: format!("the plan was reckoned with {} buckets of it", plan.buckets),
        when: "gradients become ready evenly over the backward pass".to_owned(),
    }
    // The option counts in MiB.
    .set(
        Target::Ddp,
        "bucket_cap_mb",
        format!("{:.0}", (inputs.bucket_bytes / 1_048_576.0).round().max(1.0)),
    );
    Advice { from: "plan ddp".to_owned(), statement: statement.to_owned(), settings }
}

/// Depth and resident share, by the names that frameworks use.
pub fn advice_of_offload(plan: &Offload, statement: &str) -> Advice {
    let mut settings = Vec::new();
    let advice =
        |settings| Advice { from: "plan offload".to_owned(), statement: statement.to_owned(), settings };
    if plan.hides == Hiding::NothingToHide {
        return advice(settings);
    }
    if !plan.inputs.pinned {
        let mut because = Because {
            settings: &mut settings,
            why: format!("copies from pageable memory hold the host: {:.1} ms a layer", plan.copy_ms),
            when: "the same host buffers serve every step".to_owned(),
        };
        because.take(pinned());
        return advice(settings);
    }
    let resident = match plan.hides {
        Hiding::Cannot => plan.resident_that_hides.high.max(plan.inputs.resident),
        _ => plan.inputs.resident,
    };
    let (hides, short) = (plan.hides, plan.short_gbps.high);
    // With more layers resident another depth may be enough.
    let kept = Offload::plan(OffloadInputs { resident, ..plan.inputs.clone() });
    let plan = kept.as_ref().unwrap_or(plan);
    let why = match hides {
        Hiding::Cannot => format!(
            "the bus is short by {short:.1} GB/s for all of it: {:.0} % must stay on the GPU",
            100.0 * resident
        ),
        _ => format!(
            "beyond depth {} nothing improves, and {:.1} ms of copy hide behind {:.1} ms of compute a layer",
            plan.enough_depth, plan.copy_ms, plan.inputs.compute_ms.low
        ),
    };
    let depth = plan.enough_depth.max(1);
    let layers = f64::from(plan.inputs.layers);
    let slots = f64::from(depth + 1).min(layers * (1.0 - resident));
    let memory = (layers * resident + slots) * plan.inputs.layer_bytes;
    let mut because = Because {
        settings: &mut settings,
        why,
        when: format!(
            "{:.1} GB of GPU memory are free for weights, and host buffers are pinned once and kept",
            memory / 1e9
        ),
    };
    because.take(prefetching(&Offloading { depth, resident, layers: Some(plan.inputs.layers) }));
    advice(settings)
}
