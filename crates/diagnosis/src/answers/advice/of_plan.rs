//! Which settings does a plan support?

use busbound_whatif::plan::ddp::Ddp;
use busbound_whatif::plan::offload::{Hiding, Offload, OffloadInputs};

use super::{Advice, Because, Remedy, Setting};
use crate::settings::Target;
use crate::settings::ddp::constant_graph;
use crate::settings::offload::{ENGINES, Offloading, ahead, engine_proposals, pinned};

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
        .set(Target::Ddp, "no_sync", "for all micro-batches except the last")
        .set(Target::DeepSpeed, "gradient_accumulation_steps", plan.smallest_accumulation);
    }
    Because {
        settings: &mut settings,
        why: format!("the plan assumes {} buckets of this size", plan.buckets),
        when: "gradients become ready evenly over the backward pass".to_owned(),
    }
    // The option is in MiB.
    .set(Target::Ddp, "bucket_cap_mb", (inputs.bucket_bytes / 1_048_576.0).round().max(1.0) as u64);
    Because {
        settings: &mut settings,
        why: "the plan assumes that buckets are reduced during the backward pass; DDP then knows their order, searches \
              nothing in the graph, and copies no gradients into buckets"
            .to_owned(),
        when: "every step uses the same parameters, and each of them gets a gradient".to_owned(),
    }
    .take(constant_graph());
    launch(plan, &mut settings);
    settings.sort_by_key(|setting| setting.target);
    Advice { from: "plan ddp".to_owned(), statement: statement.to_owned(), settings, remedies: Vec::new() }
}

/// One process per GPU.
fn launch(plan: &Ddp, settings: &mut Vec<Setting>) {
    let (ranks, nodes) = (plan.inputs.cluster.ranks, plan.inputs.cluster.nodes.max(1));
    let per_node = ranks / nodes;
    let mut because = Because {
        settings,
        why: format!("the plan has {ranks} ranks, {per_node} on each node"),
        when: "no other launcher starts the processes; `busbound topo --emit sh` has the numactl line of each GPU"
            .to_owned(),
    };
    because
        .set(Target::Launch, "torchrun", format!("torchrun --nnodes={nodes} --nproc-per-node={per_node}"))
        .set(Target::Accelerate, "distributed_type", "MULTI_GPU")
        .set(Target::Accelerate, "num_machines", nodes)
        .set(Target::Accelerate, "num_processes", ranks);
}

/// Prefetch depth and resident share, under the names that frameworks use.
pub fn advice_of_offload(plan: &Offload, statement: &str) -> Advice {
    let mut settings = Vec::new();
    let advice = |settings| Advice {
        from: "plan offload".to_owned(),
        statement: statement.to_owned(),
        settings,
        remedies: Vec::new(),
    };
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
    let again = |depth: u32| Offload::plan(OffloadInputs { resident, depth, ..plan.inputs.clone() });
    let depth = again(plan.inputs.depth).map_or(plan.enough_depth, |kept| kept.enough_depth).max(1);
    let kept = again(depth);
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
    let layers = f64::from(plan.inputs.layers);
    let slots = f64::from(depth + 1).min(layers * (1.0 - resident));
    let memory = (layers * resident + slots) * plan.inputs.layer_bytes;
    let when = format!(
        "{:.1} GB of GPU memory is free for weights, and host buffers are pinned once and reused",
        memory / 1e9
    );
    let remedies = of_engines(plan, &mut settings);
    let layer_bytes = Some(plan.inputs.layer_bytes);
    Because { settings: &mut settings, why, when }.take(ahead(Offloading { depth, resident, layer_bytes }));
    settings.sort_by_key(|setting| setting.target);
    Advice { remedies, ..advice(settings) }
}

/// The settings of the engines that choose layers, simulated by their own rules; what an engine cannot do is a remedy
/// without it.
fn of_engines(plan: &Offload, settings: &mut Vec<Setting>) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    for (target, engine) in ENGINES {
        let Some(step) = plan.engine_step(engine) else {
            let others = ENGINES.iter().map(|(other, _)| *other).filter(|other| *other != target);
            remedies.push(Remedy {
                title: "Streamed layers".to_owned(),
                fix: "No group size and prefetch step of this engine fits the plan's GPU memory; give it more, or \
                      another number of layers."
                    .to_owned(),
                targets: others.collect(),
            });
            continue;
        };
        let (layers, bytes) = (plan.inputs.layers, plan.inputs.layer_bytes);
        Because {
            settings,
            why: format!(
                "its own rule, simulated: {} of {layers} layers are streamed, and a step takes {:.1} ms; the plan's takes {:.1} ms",
                step.streamed, step.step_ms.high, plan.step_ms.high
            ),
            when: format!("{:.1} GB of GPU memory is free for weights, and all {layers} layers are alike", f64::from(step.on_gpu) * bytes / 1e9),
        }
        .take(engine_proposals(target, step.settings));
    }
    remedies
}
