//! Findings about the kernels themselves, and about what is copied: fp32 products, attention in separate kernels, float batches.

use crate::common;
use busbound_diagnosis::{Bound, Diagnosis, Finding, FindingId};

fn run(name: &str) -> Diagnosis {
    common::diagnosis_of(&common::root().join("fixtures").join(name))
}

fn found(run: &Diagnosis, id: FindingId) -> Option<&Finding> {
    run.findings.iter().find(|finding| finding.id == id)
}

#[test]
fn fp32_products_are_found_where_compute_bounds_the_run() {
    for name in ["graph_replay.json.gz", "train_ahead.json.gz", "coverage/attention.json"] {
        let run = run(name);
        let finding = found(&run, FindingId::Fp32Matmul).unwrap();
        assert_eq!(run.verdict.bound, Bound::Compute);
        // How much faster TF32 is depends on shapes: the least is nothing.
        let (saves, ms) =
            (finding.saves_ms_per_step, finding.evidence["kernel_ms_per_step"].as_f64().unwrap());
        assert!(
            saves.low == 0.0 && saves.high <= 0.875 * ms + 1e-9 && saves.high > 0.5 * ms,
            "{saves:?} of {ms}"
        );
    }
}

#[test]
fn kernels_do_not_matter_where_something_else_bounds_the_run() {
    // Four fifths of its kernels' time are fp32 products, and it waits for other ranks.
    let host_bound = run("collectives/delayed/rank-1.json.gz");
    assert_eq!((host_bound.verdict.bound, found(&host_bound, FindingId::Fp32Matmul)), (Bound::Host, None));
    // bf16 products.
    for name in ["compute_only_c4.json.gz", "off_layerwise_d2_c4.json.gz"] {
        assert_eq!(found(&run(name), FindingId::Fp32Matmul), None, "{name}");
    }
    // Products of 4 µs each are bound by their latency.
    assert_eq!(found(&run("frameworks/traces/launch-bert-graph.json.gz"), FindingId::Fp32Matmul), None);
}

#[test]
fn attention_in_separate_kernels_is_found() {
    let run = run("coverage/attention.json");
    let finding = found(&run, FindingId::UnfusedAttention).unwrap();
    let evidence = |key: &str| finding.evidence[key].as_f64().unwrap();
    // 300 + 250 + 350 + 300 µs, twelve times; 600 of them between the products.
    assert_eq!(evidence("turns_per_step"), 12.0);
    assert!((evidence("attention_ms_per_step") - 14.4).abs() < 1e-6);
    assert!((finding.saves_ms_per_step.high - 7.2).abs() < 0.01, "{:?}", finding.saves_ms_per_step);
}

#[test]
fn float_batches_from_uint8_on_the_host_are_found() {
    let run = run("coverage/images.json");
    let finding = found(&run, FindingId::FloatInput).unwrap();
    let evidence = |key: &str| finding.evidence[key].as_f64().unwrap();
    assert_eq!(evidence("bytes_per_step"), 4.0 * 256.0 * 3.0 * 224.0 * 224.0);
    assert_eq!((evidence("copies_per_step"), evidence("exposed_ms_per_step")), (1.0, 16.0));
    // Weights and activations are float too, and nobody converted them.
    for name in ["off_block_pageable_c4.json.gz", "train_pageable.json.gz", "train_ahead.json.gz"] {
        assert_eq!(found(&self::run(name), FindingId::FloatInput), None, "{name}");
    }
}

#[test]
fn reading_and_decoding_are_apart_where_annotations_name_them() {
    let run = run("coverage/images.json");
    let finding = found(&run, FindingId::InputWait).unwrap();
    let evidence = |key: &str| finding.evidence[key].as_f64().unwrap();
    assert_eq!((evidence("fetch_read_ms_per_step"), evidence("fetch_decode_ms_per_step")), (12.0, 25.0));
    assert!(!finding.seen.contains("read and decode (outside torch)"), "{}", finding.seen);
}

#[test]
fn copies_around_the_collectives_of_fsdp_are_counted() {
    let run = run("coverage/fsdp_gpu.json");
    let [gather, scatter] = run.copies_around.as_slice() else { panic!("{:?}", run.copies_around) };
    let near = |near: &busbound_diagnosis::NearCopies| (near.copies, near.bytes, near.gap_ms);
    assert_eq!((gather.count, near(&gather.before)), (32, (32, 32 * 42_000_000, Some(0.05))));
    assert_eq!((scatter.count, near(&scatter.after)), (32, (32, 32 * 42_000_000, Some(0.03))));
    assert_eq!((gather.after.copies, scatter.before.copies), (0, 0));
}

/// Waits in gloo's collectives were called work of the host, with the advice to move it out of the loop.
#[test]
fn waits_for_other_ranks_are_not_called_work_of_the_host() {
    let run = run("collectives/delayed/rank-0.json.gz");
    let statement = &run.verdict.statement;
    assert!(statement.contains("the host waits for other ranks, mostly in gloo:all_reduce"), "{statement}");
    let finding = found(&run, FindingId::PythonTime).unwrap();
    assert!(finding.title.contains("other ranks") && finding.fix.contains("NCCL"), "{finding:?}");
}

#[test]
fn decoding_that_dominates_the_loader_can_go_to_the_gpu() {
    let fix = |name: &str| found(&run(name), FindingId::InputWait).unwrap().fix.clone();
    let images = fix("coverage/images.json");
    assert!(images.contains("nvJPEG") && images.contains("NVIDIA DALI"), "{images}");
}
