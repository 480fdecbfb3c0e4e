//! Volumes by hand, and what fits.

use busbound_machine::{Interconnect, gpu_of_key};

use super::*;
use crate::plan::cluster::Cluster;

fn seven_billion(link: &str, ranks: u32) -> ParallelInputs {
    ParallelInputs {
        workload: Workload::Train,
        layers: 32,
        hidden: 4096,
        heads: 32,
        kv_heads: 32,
        vocabulary: 32_000,
        experts: 1,
        active_experts: 1,
        batch: 64,
        sequence: 4096,
        bytes_per_value: 2.0,
        cluster: Cluster::one_node(ranks, Interconnect::named(link).unwrap()),
        gpu: "h200",
        tflops: 989.0,
        utilization: 0.4,
        gpu_gb: 141.0,
        memory_gbps: 4800.0,
        microbatches: Some(8),
        zero: Some(Zero::Off),
        recompute: Some(true),
    }
}

fn of<'a>(plan: &'a Parallel, name: &str) -> &'a Arrangement {
    plan.ranked.iter().find(|arrangement| arrangement.name == name).unwrap()
}

#[test]
fn volumes_match_hand_computed_values() {
    let plan = Parallel::plan(seven_billion("nvlink4", 8)).unwrap();
    // 12 × 32 × 4096² + 32000 × 4096.
    assert_eq!(plan.parameters, 6_573_522_944.0);
    let data = &of(&plan, "dp8").exchanges[0];
    assert_eq!(data.bytes, 2.0 * 7.0 / 8.0 * plan.parameters * 2.0);
    // 64 × 4096 × 4096 × 2 bytes of activations, times 6 × 32 all-reduces, times 2 × 7/8.
    let tensor = &of(&plan, "tp8").exchanges[0];
    assert_eq!(tensor.bytes, 192.0 * 1.75 * 2_147_483_648.0);
    // 12 × 32 all-to-alls, each of 7/8 of one eighth of them.
    let sequence = &of(&plan, "sp8").exchanges[0];
    assert_eq!(sequence.bytes, 384.0 * 7.0 / 8.0 * 2_147_483_648.0 / 8.0);
    // Without recomputation a third less.
    let kept = ParallelInputs { recompute: Some(false), ..seven_billion("nvlink4", 8) };
    let kept = Parallel::plan(kept).unwrap();
    assert_eq!(of(&kept, "tp8").exchanges[0].bytes, 128.0 * 1.75 * 2_147_483_648.0);
}

#[test]
fn tensor_parallelism_is_slow_on_a_slow_link() {
    let fast = Parallel::plan(seven_billion("nvlink4", 8)).unwrap();
    let slow = Parallel::plan(seven_billion("pcie4x16", 8)).unwrap();
    assert!(of(&slow, "tp8").step_ms > 3.0 * of(&fast, "tp8").step_ms);
    assert!(of(&slow, "tp8").loses_to.as_ref().unwrap().starts_with("tensor"));
    assert_eq!(slow.ranked[0].degrees.tensor, 1);
    // 16 bytes per parameter are 105 GB: a whole replica fits in 141 GB, not in 80.
    assert!(of(&fast, "dp8").fits);
    let small = Parallel::plan(ParallelInputs { gpu_gb: 80.0, ..seven_billion("nvlink4", 8) }).unwrap();
    assert!(!of(&small, "dp8").fits && small.ranked[0].fits);
}

/// Eight groups of two share the eight ports of a node: one port per GPU.
#[test]
fn groups_share_the_ports_of_their_node() {
    let cluster = Cluster {
        ranks: 16,
        nodes: 2,
        link: Interconnect::named("nvlink4").unwrap(),
        net: Some(Interconnect::named("ib-ndr").unwrap()),
        ports: 8,
    };
    let plan =
        Parallel::plan(ParallelInputs { cluster: cluster.clone(), ..seven_billion("nvlink4", 8) }).unwrap();
    let exchange = |plan: &Parallel, name: &str| {
        let arrangement = of(plan, name);
        arrangement.exchanges.iter().find(|e| e.what.starts_with("data")).unwrap().clone()
    };
    // 6.57 billion parameters in eight shards: 1.64 GB per direction over 50 GB/s.
    let across = exchange(&plan, "dp2 × tp8");
    assert!((across.bytes / 1e9 - 1.643).abs() < 0.001 && (32.0..36.0).contains(&across.ms), "{across:?}");
    let fewer = Cluster { ports: 1, ..cluster };
    let plan = Parallel::plan(ParallelInputs { cluster: fewer, ..seven_billion("nvlink4", 8) }).unwrap();
    assert!(exchange(&plan, "dp2 × tp8").ms > 7.0 * across.ms);
    // Sequence-parallel replicas are within a node.
    assert!(exchange(&plan, "pp2 × sp8").ms < 50.0);
}

#[test]
fn a_micro_batch_has_at_least_one_sequence() {
    let plan = Parallel::plan(ParallelInputs { batch: 1, ..seven_billion("nvlink4", 8) }).unwrap();
    let stages = of(&plan, "pp2 × sp4");
    assert_eq!(stages.bubble_ms, stages.compute_ms);
}

#[test]
fn every_hybrid_uses_all_ranks() {
    let plan = Parallel::plan(seven_billion("nvlink4", 8)).unwrap();
    assert!(plan.ranked.len() > 15);
    for arrangement in &plan.ranked {
        let Degrees { data, tensor, pipeline, sequence, .. } = arrangement.degrees;
        assert_eq!(data * tensor * pipeline * sequence, 8);
        assert!(arrangement.step_ms >= arrangement.compute_ms);
    }
}

#[test]
fn invalid_input_is_rejected() {
    for wrong in [
        ParallelInputs { heads: 7, ..seven_billion("nvlink4", 8) },
        ParallelInputs { layers: 0, ..seven_billion("nvlink4", 8) },
        ParallelInputs { utilization: 0.0, ..seven_billion("nvlink4", 8) },
        seven_billion("nvlink4", 0),
    ] {
        assert!(Parallel::plan(wrong).is_err());
    }
}

/// The cluster of four nodes with eight H100 each and one HDR port per GPU.
fn seventy_billion() -> ParallelInputs {
    let cluster = Cluster {
        ranks: 32,
        nodes: 4,
        link: Interconnect::named("nvlink4").unwrap(),
        net: Some(Interconnect::named("ib-hdr").unwrap()),
        ports: 8,
    };
    let h100 = gpu_of_key("h100-sxm").unwrap();
    ParallelInputs {
        layers: 80,
        hidden: 8192,
        heads: 64,
        kv_heads: 8,
        batch: 128,
        cluster,
        microbatches: None,
        zero: None,
        recompute: None,
        ..seven_billion("nvlink4", 8).on(h100)
    }
}

/// "Nothing fits" with 8 micro-batches and no sharding.
#[test]
fn seventy_billion_parameters_fit_on_32_h100() {
    let plan = Parallel::plan(seventy_billion()).unwrap();
    let best = &plan.ranked[0];
    assert!((64e9..71e9).contains(&plan.parameters) && best.fits && plan.nearest.is_none(), "{best:?}");
    assert!(best.memory_gb <= 80.0 && best.degrees.tensor <= 8, "{best:?}");
    // Tensor parallelism stays inside a node in every layout.
    assert!(plan.ranked.iter().all(|layout| layout.degrees.tensor * layout.degrees.sequence <= 8));
}

/// "The least is 84 GB on each GPU (dp32)": dp32 took 1041, and the least was that of another layout.
#[test]
fn nothing_fits_names_the_layout_that_needs_least_and_what_would_help() {
    let fixed = ParallelInputs {
        microbatches: Some(8),
        zero: Some(Zero::Off),
        recompute: Some(true),
        ..seventy_billion()
    };
    let plan = Parallel::plan(fixed).unwrap();
    let nearest = plan.nearest.unwrap();
    let least = plan.ranked.iter().map(|layout| layout.memory_gb).fold(f64::INFINITY, f64::min);
    assert_eq!(nearest.layout.memory_gb, least);
    assert!((nearest.missing_gb - (least - 80.0)).abs() < 1e-9 && nearest.missing_gb > 0.0);
    assert!(matches!(nearest.remedies[0], Remedy::Search { .. }), "{:?}", nearest.remedies);
    assert!(nearest.remedies.iter().any(|remedy| matches!(remedy, Remedy::LargerGpu { .. })));
    // A trillion parameters on one node: more GPUs are named.
    let large = ParallelInputs { layers: 128, hidden: 25_600, heads: 128, kv_heads: 8, ..seventy_billion() };
    let plan = Parallel::plan(large).unwrap();
    let remedies = plan.nearest.unwrap().remedies;
    assert!(
        remedies.iter().any(|remedy| matches!(remedy, Remedy::MoreGpus { ranks, .. } if *ranks > 32)),
        "{remedies:?}"
    );
}

/// 16 bytes per parameter: what each stage shares out.
#[test]
fn zero_stages_share_out_optimizer_gradients_and_weights() {
    let at = |zero| {
        let inputs = ParallelInputs { zero: Some(zero), ..seven_billion("nvlink4", 8) };
        let plan = Parallel::plan(inputs).unwrap();
        plan.ranked.into_iter().find(|layout| layout.degrees.data == 8).unwrap()
    };
    let billions = 6.573_522_944;
    let near = |gb: f64, expected: f64| assert!((gb - expected).abs() < 1e-6, "{gb} and {expected}");
    let (off, one, two, three) = (at(Zero::Off), at(Zero::One), at(Zero::Two), at(Zero::Three));
    near(off.memory.optimizer_gb, 12.0 * billions);
    near(one.memory.optimizer_gb, 12.0 * billions / 8.0);
    near(one.memory.gradients_gb, 2.0 * billions);
    near(two.memory.gradients_gb, 2.0 * billions / 8.0);
    // An eighth, and two layers that are gathered.
    near(three.memory.weights_gb, 2.0 * billions / 8.0 + 2.0 * 2.0 * billions / 32.0);
    // FSDP gathers twice and scatters once: one and a half times the bytes, for each of 8 micro-batches.
    assert_eq!(three.exchanges[0].bytes, 12.0 * off.exchanges[0].bytes);
    assert_eq!((one.exchanges[0].bytes, three.name.as_str()), (off.exchanges[0].bytes, "dp8, FSDP"));
}

#[test]
fn decoding_is_bound_by_reading_the_weights() {
    let inputs = ParallelInputs {
        workload: Workload::Decode,
        batch: 8,
        microbatches: None,
        ..seven_billion("nvlink4", 1)
    };
    let plan = Parallel::plan(inputs).unwrap();
    let one = &plan.ranked[0];
    // 13.1 GB of weights and 8 × 4096 × 32 × 2 × 4096 × 2 bytes of KV cache at 4.8 TB/s.
    let expected = (13.147 + 17.180) / 4.8;
    assert!((one.step_ms / expected - 1.0).abs() < 0.001, "{} and {expected}", one.step_ms);
    assert!((one.tokens_per_second / (8.0 / one.step_ms * 1e3) - 1.0).abs() < 1e-9);
    assert_eq!((one.memory.optimizer_gb, one.memory.gradients_gb), (0.0, 0.0));
    let eight = ParallelInputs {
        workload: Workload::Decode,
        batch: 8,
        microbatches: None,
        ..seven_billion("nvlink4", 8)
    };
    let plan = Parallel::plan(eight).unwrap();
    assert!(plan.ranked.iter().all(|layout| layout.degrees.sequence == 1));
    // Tensor parallelism divides the weights that each token reads, data parallelism does not.
    assert!(of(&plan, "tp8").compute_ms < 0.2 * of(&plan, "dp8").compute_ms + 1.0);
}

#[test]
fn inference_moves_no_gradients_and_diffusion_has_no_vocabulary() {
    for workload in [Workload::Prefill, Workload::Diffusion] {
        let plan = Parallel::plan(ParallelInputs { workload, ..seven_billion("nvlink4", 8) }).unwrap();
        let exchanges = || plan.ranked.iter().flat_map(|layout| &layout.exchanges);
        assert!(exchanges().all(|exchange| !exchange.what.starts_with("data")), "{workload:?}");
        // 2 × 32 all-reduces in one pass.
        assert_eq!(of(&plan, "tp8").exchanges[0].bytes, 64.0 * 1.75 * 2_147_483_648.0);
    }
    let diffusion = ParallelInputs { workload: Workload::Diffusion, ..seven_billion("nvlink4", 8) };
    assert_eq!(Parallel::plan(diffusion).unwrap().parameters, 12.0 * 32.0 * 4096.0 * 4096.0);
}

#[test]
fn experts_are_spread_over_data_parallel_ranks() {
    let inputs = ParallelInputs { experts: 8, active_experts: 2, ..seven_billion("nvlink4", 8) };
    let plan = Parallel::plan(inputs).unwrap();
    // 32 layers of 4 + 64 hidden², and the embedding.
    assert_eq!(plan.parameters, 32.0 * 68.0 * 4096.0 * 4096.0 + 32_000.0 * 4096.0);
    let (alone, spread) = (of(&plan, "dp8"), of(&plan, "dp8 × ep8"));
    assert!(spread.memory_gb < 0.25 * alone.memory_gb, "{} and {}", spread.memory_gb, alone.memory_gb);
    let exchange = spread.exchanges.iter().find(|e| e.what.starts_with("expert")).unwrap();
    // 6 × 32 all-to-alls of 7/8 of a rank's tokens to 2 experts each.
    assert_eq!(exchange.bytes, 192.0 * 2.0 * 7.0 / 8.0 * 2_147_483_648.0 / 8.0);
}
