//! Which settings does a plan support?

use busbound_whatif::plan::ddp::Ddp;
use busbound_whatif::plan::offload::{Hiding, Offload, OffloadInputs};

use super::{Advice, Because};
use crate::settings::Target;
use crate::settings::offload::{Offloading, pinned, prefetching};

/// The bucket size, and the accumulation that reaches the target efficiency.
pub fn advice_of_ddp(plan: &Ddp, statement: &str) -> Advice {
    let mut settings = Vec::new();
    let inputs = &plan.inputs;
    let wanted = 100.0 * inputs.wanted_efficiency;
    let exposed = plan.with_overlap.exposed_ms.high;
    if plan.smallest_accumulation > u64::from(inputs.accumulation) {
        Because {
            settings: &mut settings,
            why: format!("{exposed:.1} ms of gradient synchronization is exposed per step; reaching {wanted:.0}% of compute needs this many micro-batches"),
            when: "training still converges with the larger batch".to_owned(),
        }
        .set(Target::Ddp, "gradient_accumulation_steps", plan.smallest_accumulation)
        .set(Target::Ddp, "no_sync", "for all micro-batches except the last");
    }
    Because {
        settings: &mut settings,
        why: format!("the plan assumes {} buckets of this size", plan.buckets),
        when: "gradients become ready evenly over the backward pass".to_owned(),
    }
    // The option is in MiB.
    .set(
        Target::Ddp,
        "bucket_cap_mb",
        format!("{:.0}", (inputs.bucket_bytes / 1_048_576.0).round().max(1.0)),
    );
    Advice { from: "plan ddp".to_owned(), statement: statement.to_owned(), settings }
}

/// Prefetch depth and resident share, under the names that frameworks use.
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
            why: format!("copies from pageable memory block the host: {:.1} ms per layer", plan.copy_ms),
            when: "every step uses the same host buffers".to_owned(),
        };
        because.take(pinned());
        return advice(settings);
    }
    let resident = match plan.hides {
        Hiding::Cannot => plan.resident_that_hides.high.max(plan.inputs.resident),
        _ => plan.inputs.resident,
    };
    let (hides, short) = (plan.hides, plan.short_gbps.high);
    // With more layers resident, another depth may be enough.
    let kept = Offload::plan(OffloadInputs { resident, ..plan.inputs.clone() });
    let plan = kept.as_ref().unwrap_or(plan);
    let why = match hides {
        Hiding::Cannot => format!(
            "not enough PCIe bandwidth: {short:.1} GB/s too little to offload everything, so {:.0}% must stay on the GPU",
            100.0 * resident
        ),
        _ => format!(
            "a depth above {} gains nothing; {:.1} ms of copies overlap with {:.1} ms of compute per layer",
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
            "{:.1} GB of GPU memory is free for weights, and host buffers are pinned once and reused",
            memory / 1e9
        ),
    };
    because.take(prefetching(&Offloading { depth, resident, layers: Some(plan.inputs.layers) }));
    advice(settings)
}
