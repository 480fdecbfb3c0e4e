//! Does a fix or a tested change advise what a recorded program already does, or what it cannot do?

use std::path::{Path, PathBuf};

use busbound_diagnosis::{Diagnosis, Finding, FindingId, Options, Source, WhatIf, diagnose, what_if};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, open, read};
use serde_json::{Value, json};

use super::events::{annotation, call, diagnosis, kernel, step};
use crate::common::{diagnosis_of, root};

fn path(run: &str) -> PathBuf {
    root().join(format!("fixtures/frameworks/traces/{run}.json.gz"))
}

fn diagnosed(run: &str) -> Diagnosis {
    diagnosis_of(&path(run))
}

fn found(run: &Diagnosis, id: FindingId) -> &Finding {
    let found = run.findings.iter().find(|finding| finding.id == id);
    found.unwrap_or_else(|| panic!("no {id}"))
}

/// The changes that `whatif` lists by itself.
fn tested(run: &str) -> WhatIf {
    let trace = open(&path(run), &ReadOptions::default()).unwrap();
    what_if(&trace, run, &Machine::default(), &Options::default(), &[]).unwrap()
}

fn has(answer: &WhatIf, change: &str) -> bool {
    answer.scenarios.iter().any(|scenario| scenario.apply.iter().any(|one| one.starts_with(change)))
}

/// The operators of an optimizer on the GPU were taken for its update: `optimizer=gpu`, 4.91 instead of 9.04 ms.
/// "Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", which does nothing where the allocator is off.
#[test]
fn allocation_without_the_caching_allocator_is_ended_by_turning_it_on() {
    let mut events = Vec::new();
    for i in 0..8 {
        let at = i * 3_000;
        events.push(step(i, at, 3_000));
        for j in 0..4 {
            let (id, at) = (i * 100 + j * 3, at + j * 700);
            events.push(
                json!({"ph":"X","cat":"cpu_op","name":"aten::empty","pid":1,"tid":1,"ts":at + 1,"dur":280}),
            );
            events.push(call("cudaMalloc", id + 1, at + 10, 260));
            events.push(call("cudaLaunchKernel", id + 2, at + 300, 5));
            events.push(kernel("gemm", 7, id + 2, at + 310, 200));
            events.push(call("cudaFree", id + 3, at + 320, 250));
        }
    }
    let fix = |variables: Value| {
        let environment = json!({"versions": {"torch": "2.11.0"}, "variables": variables, "gpus": [], "cpus": null, "memory": null});
        let trace = json!({"busbound_environment": environment, "traceEvents": events}).to_string();
        let trace = read(trace.as_bytes(), Path::new("t"), &ReadOptions::default()).unwrap();
        let run = diagnose(&trace, &Source::named("t"), &Machine::default(), &Options::default());
        found(&run, FindingId::AllocationInLoop).fix.clone()
    };
    let usual = fix(json!({}));
    assert!(usual.contains("expandable_segments"), "{usual}");
    let off = fix(json!({"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}));
    assert!(off.contains("PYTORCH_NO_CUDA_MEMORY_CACHING is set") && !off.contains("expandable"), "{off}");
}

#[test]
fn an_optimizer_that_launches_kernels_is_not_moved_to_the_gpu() {
    for run in
        ["loader-w6_9-pageable", "checkpoint-state_9-pinned", "optimizer-adam-gpu", "optimizer-sgd-gpu"]
    {
        assert!(!has(&tested(run), "optimizer"), "{run}");
    }
}

/// The fix was to pin weights that are pinned.
#[test]
fn pinned_weights_of_accelerate_are_not_pinned_again() {
    let (pinned, pageable) =
        (diagnosed("accelerate-prefill_9-pinned"), diagnosed("accelerate-prefill_9-default"));
    let (pinned, pageable) =
        (found(&pinned, FindingId::FrameworkHooks), found(&pageable, FindingId::FrameworkHooks));
    assert!(!pinned.fix.contains("pinned state dict"), "{}", pinned.fix);
    assert!(!pinned.fix_code.as_deref().unwrap().contains("pin_memory"), "{:?}", pinned.fix_code);
    assert!(pageable.fix.contains("pinned state dict"), "{}", pageable.fix);
}

/// The fix was `buf.pin_memory()` for weights that hooks move: nobody has that buffer.
#[test]
fn weights_that_hooks_move_are_pinned_by_a_setting_of_their_framework() {
    let run = diagnosed("accelerate-prefill_14-default");
    let fix = &found(&run, FindingId::PageableCopies).fix;
    assert!(fix.contains("cpu_offload(model, state_dict=pinned)"), "{fix}");
}

/// The first fix was CUDA graphs, which "also remove" the host work of an optimizer on the CPU.
#[test]
fn the_optimizer_that_bounds_the_run_comes_first_and_no_graph_replaces_it() {
    let run = diagnosed("fsdp-train-pinned");
    assert_eq!(run.findings[0].id, FindingId::CpuOptimizer);
    let launches = found(&run, FindingId::LaunchBound);
    // Not the 9.28 ms with the optimizer.
    assert!(launches.seen.contains("which the GPU waits for 3.21 ms/step"), "{}", launches.seen);
}

/// The fix was to update weights one by one, which the program does.
#[test]
fn an_optimizer_that_updates_in_parts_is_not_split() {
    let run = "optimizer-adam_9-overlap";
    let (diagnosis, answer) = (diagnosed(run), tested(run));
    let fix = &found(&diagnosis, FindingId::CpuOptimizer).fix;
    assert!(!fix.contains("gradient"), "{fix}");
    assert!(fix.starts_with("Run the optimizer on the GPU"), "{fix}");
    assert!(!has(&answer, "optimizer=overlap") && has(&answer, "optimizer=gpu"));
    assert!(has(&tested("optimizer-adam_9-serial_pinned"), "optimizer=overlap"));
}

/// Keeping the optimizer on the GPU gains most, but only `whatif` said so.
#[test]
fn the_fix_of_an_optimizer_on_the_cpu_says_what_the_gpu_gives() {
    for run in ["optimizer-adam_9-serial_pageable", "optimizer-adam_9-serial_pinned"] {
        let (diagnosis, answer) = (diagnosed(run), tested(run));
        let on_gpu = answer.scenarios.iter().find(|one| one.apply == ["optimizer=gpu"]).unwrap();
        let said = format!("(168 MB more GPU memory): {:.2} ms/step.", on_gpu.step_ms);
        let finding = found(&diagnosis, FindingId::CpuOptimizer);
        let fix = &finding.fix;
        assert!(fix.contains("as soon as its gradient is complete") && fix.contains(&said), "{fix}");
        // It is what the first line promises.
        assert_eq!(finding.candidate, ["optimizer=gpu"]);
        assert_eq!(diagnosis.prize.as_ref().unwrap().fixes[0].apply, ["optimizer=gpu"]);
    }
}

/// "A deeper prefetch does not help" beside a finding that predicted 4 ms for it.
#[test]
fn prefetching_that_helps_is_not_denied() {
    let run = diagnosed("fsdp-forward_10-pinned");
    let denied = |run: &Diagnosis| found(run, FindingId::BandwidthDeficit).fix.contains("does not help");
    assert!(found(&run, FindingId::SerializedCopies).saves_ms_per_step.low > 1.0);
    assert!(!denied(&run));
    let ahead = diagnosis_of(&root().join("fixtures/pairs/bus_layerwise_d1.json.gz"));
    assert!(denied(&ahead));
}

/// The recipe for copies to the host was one for copies to the device.
#[test]
fn copies_to_the_host_have_their_own_recipe() {
    let run = diagnosed("checkpoint-state_9-pinned");
    let copies = found(&run, FindingId::SerializedCopies);
    assert_eq!(copies.title, "D2H copies serialized with compute");
    assert_eq!(copies.doing, "copying out on a second stream");
    assert_eq!(copies.candidate, ["async"]);
    assert!(!copies.fix.contains("to(device") && copies.fix.starts_with("Copy out"), "{}", copies.fix);
    assert!(copies.fix_code.as_deref().unwrap().contains("device=\"cpu\", pin_memory=True"));
}

/// The fix was to pin and copy buffers that FSDP owns.
#[test]
fn weights_of_fsdp_are_pinned_and_prefetched_by_its_settings() {
    let (pageable, pinned) = (diagnosed("fsdp-train-pageable"), diagnosed("fsdp-forward_10-pinned"));
    for id in [FindingId::PageableCopies, FindingId::PageableD2h] {
        let fix = &found(&pageable, id).fix;
        assert!(fix.starts_with("Use CPUOffloadPolicy(pin_memory=True)."), "{fix}");
    }
    let fix = &found(&pinned, FindingId::SerializedCopies).fix;
    assert!(fix.contains("set_modules_to_forward_prefetch"), "{fix}");
    let own = diagnosed("weights-odd_3-serial_pinned");
    assert!(found(&own, FindingId::SerializedCopies).fix.starts_with("Issue copies on a second stream"));
}

/// Gradients come down and weights go up: nothing that the host already has.
#[test]
fn weights_of_an_optimizer_on_the_cpu_do_not_stay_on_the_host() {
    for way in ["overlap", "serial_pageable", "serial_pinned"] {
        assert!(!has(&tested(&format!("optimizer-adam_9-{way}")), "keep"), "{way}");
    }
    assert!(has(&tested("accelerate-model_offload_9-moved"), "keep"));
}

/// 1.5 ms of allocation were the reason for 10.9 ms.
#[test]
fn a_small_difference_is_not_the_reason_of_an_outlier() {
    let run = diagnosed("accelerate-prefill_9-pinned");
    let outlier = run.window.outliers.iter().find(|outlier| outlier.ms > 30.0).unwrap();
    let expected = "no single difference explains it; the largest: memory allocation calls";
    assert!(outlier.statement.contains(expected), "{}", outlier.statement);
}

/// Hooks of FSDP gather shards, and pipelines of diffusers ask every module for its hooks. Without offloading, they once "moved
/// weights", which was to be done with pinned memory.
#[test]
fn hooks_that_move_no_weights_are_not_reported() {
    for hook in ["FSDP::pre_forward (blocks.8)", "diffusers/hooks/hooks.py(268): _set_context"] {
        let mut events = Vec::new();
        for i in 0..4 {
            let at = i * 10_000;
            events.push(step(i, at, 10_000));
            events.push(annotation(hook, 1, at + 100, 3_000));
            events.push(call("cudaLaunchKernel", i + 1, at + 4_000, 5));
            events.push(kernel("k", 7, i + 1, at + 4_010, 5_980));
        }
        let found: Vec<FindingId> =
            diagnosis(&events, "NVIDIA H200").findings.iter().map(|finding| finding.id).collect();
        assert_eq!(found, [FindingId::PythonTime], "{hook}");
    }
}
