//! If the bottleneck of a run is known by construction, is it reported, and nothing else?

use busbound_diagnosis::{
    Bound, CpuCopyClass, Diagnosis, FindingId, Labels, LimitationId, Options, Source, compare, diagnose,
};
use busbound_machine::Machine;
use busbound_machine::bench::Samples;
use busbound_trace::{ReadOptions, open};

use crate::common::{diagnosis_of, root};

fn fixture(name: &str) -> Diagnosis {
    diagnosis_of(&root().join("fixtures").join(format!("{name}.json.gz")))
}

fn ids(diagnosis: &Diagnosis) -> Vec<&'static str> {
    diagnosis.findings.iter().map(|finding| finding.id.as_str()).collect()
}

/// The verdict, and the findings in order, largest saving first.
const KNOWN: &[(&str, Bound, &[&str])] = &[
    ("compute_only_c4", Bound::Compute, &[]),
    ("off_block_pageable_c4", Bound::Transfer, &["pageable_copies"]),
    ("off_block_pinned_c4", Bound::Mixed, &["serialized_copies"]),
    ("off_layerwise_d2_c4", Bound::Compute, &[]),
    ("off_layerwise_pageable_d2_c4", Bound::Transfer, &["non_blocking_pageable"]),
    ("launch_bound", Bound::Launch, &["launch_bound"]),
    ("pipe_serial", Bound::Compute, &["sync_in_loop", "serialized_copies"]),
    ("pipe_overlap", Bound::Compute, &[]),
    // Copies in both directions set the pace; kernels run under them.
    ("swap_duplex", Bound::Transfer, &[]),
    ("graph_replay", Bound::Compute, &["fp32_matmul"]),
    ("train_pageable", Bound::Mixed, &["input_wait", "pageable_copies"]),
    ("train_pinned", Bound::Input, &["input_wait", "python_time"]),
    ("runs/weights_pageable_24x32mb", Bound::Transfer, &["pageable_copies"]),
    ("runs/activations_to_pageable", Bound::Transfer, &["page_faults"]),
    ("runs/activations_to_pinned_async", Bound::Compute, &[]),
    ("runs/small_copies", Bound::Launch, &["copy_calls"]),
    ("runs/item_every_layer", Bound::Compute, &["sync_in_loop", "launch_bound"]),
    ("runs/prefetch_too_late", Bound::Compute, &["late_prefetch"]),
    ("runs/bus_too_short", Bound::Transfer, &["bandwidth_deficit"]),
    (
        "runs/offload_that_would_fit",
        Bound::Transfer,
        &["unneeded_offload", "serialized_copies", "bandwidth_deficit"],
    ),
    ("runs/slow_loader", Bound::Input, &["input_wait", "slow_link"]),
    ("runs/healthy_prefetch", Bound::Compute, &[]),
    ("runs/clones_on_device", Bound::Compute, &["device_copies"]),
    ("runs/sync_after_each_block", Bound::Compute, &["sync_in_loop", "profiler_distortion"]),
    ("runs/two_streams_contending", Bound::Transfer, &["bandwidth_deficit"]),
    ("runs/scheduled_bus_too_short", Bound::Transfer, &["bandwidth_deficit"]),
    // No steps are marked: the sync that ends each step is not a sync within it.
    ("runs/bare_prefetch_too_late", Bound::Compute, &["late_prefetch"]),
    ("runs/bare_weights_pageable", Bound::Transfer, &["pageable_copies"]),
    // Outliers are too much of the time to be left out.
    ("runs/unlike_steps", Bound::Mixed, &["serialized_copies", "pageable_copies", "allocation_in_loop"]),
    ("runs/broken_compile", Bound::Launch, &["launch_bound"]),
    // An overlapping pipeline: only its first load and its last store are exposed.
    ("runs/three_stages", Bound::Compute, &[]),
    ("runs/recorded_three_stages", Bound::Compute, &[]),
    ("runs/nested_blocks", Bound::Launch, &["launch_bound"]),
    ("runs/bare_decode", Bound::Launch, &["launch_bound"]),
    ("runs/recorded_prefetch_too_late", Bound::Compute, &["late_prefetch"]),
];

#[test]
fn every_known_bottleneck_is_reported() {
    let mut wrong = Vec::new();
    for (name, bound, findings) in KNOWN {
        let diagnosis = fixture(name);
        if diagnosis.verdict.bound != *bound || ids(&diagnosis) != *findings {
            wrong.push(format!("{name}: {:?} {:?}", diagnosis.verdict.bound, ids(&diagnosis)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_mixed_verdict_names_what_it_consists_of() {
    let verdict = fixture("off_block_pinned_c4").verdict;
    assert_eq!(verdict.between, [Bound::Compute, Bound::Transfer]);
    assert!(verdict.statement.starts_with("Mixed (compute and copies): "), "{}", verdict.statement);
    for (name, bound, _) in KNOWN.iter().filter(|(_, bound, _)| *bound != Bound::Mixed) {
        assert!(fixture(name).verdict.between.is_empty(), "{name}: {bound:?}");
    }
}

#[test]
fn every_finding_has_evidence_a_fix_and_an_ordered_range() {
    for (name, ..) in KNOWN {
        for finding in fixture(name).findings {
            assert!(!finding.evidence.is_empty() && !finding.fix.is_empty(), "{name}: {}", finding.id);
            let saves = finding.saves_ms_per_step;
            assert!(0.0 <= saves.low && saves.low <= saves.high, "{name}: {} {saves:?}", finding.id);
            assert!(finding.docs.ends_with(finding.id.as_str()));
        }
    }
}

#[test]
fn no_saving_is_longer_than_the_step() {
    for (name, ..) in KNOWN {
        let diagnosis = fixture(name);
        let step = diagnosis.time.analyzed_ms / diagnosis.step_count();
        for finding in &diagnosis.findings {
            assert!(
                finding.saves_ms_per_step.high <= step,
                "{name}: {} saves more than the step",
                finding.id
            );
        }
    }
}

/// Step times of the same programs after the fix, without the profiler (fixtures/walls.json).
#[test]
fn measured_gains_are_within_the_stated_range() {
    let walls: serde_json::Value =
        serde_json::from_slice(&std::fs::read(root().join("fixtures/walls.json")).unwrap()).unwrap();
    let wall = |name: &str| walls[name]["median_s"].as_f64().unwrap() * 1e3;
    for (before, after, id) in [
        ("off_block_pageable_c4", "off_block_pinned_c4", FindingId::PageableCopies),
        ("off_block_pinned_c4", "off_layerwise_d2_c4", FindingId::SerializedCopies),
        ("off_layerwise_pageable_d2_c4", "off_layerwise_d2_c4", FindingId::NonBlockingPageable),
        ("pipe_serial", "pipe_overlap", FindingId::SyncInLoop),
    ] {
        let finding = fixture(before).findings.into_iter().find(|finding| finding.id == id).unwrap();
        let gain = wall(before) - wall(after);
        let saves = finding.saves_ms_per_step;
        // Two runs of one program differ by a few percent of the step.
        let slack = 0.03 * wall(before);
        assert!(
            saves.low - slack <= gain && gain <= saves.high + slack,
            "{before}: {gain:.1} ms not in {saves:?}"
        );
    }
}

/// Steps marked by `prof.step()` without a sync: the host marks five steps while the GPU runs one.
#[test]
fn a_host_that_runs_ahead_does_not_shorten_the_steps() {
    let walls: serde_json::Value =
        serde_json::from_slice(&std::fs::read(root().join("fixtures/runs/walls.json")).unwrap()).unwrap();
    let diagnosis = fixture("runs/scheduled_bus_too_short");
    let wall = walls["scheduled_bus_too_short"]["median_s"].as_f64().unwrap() * 1e3;
    let steps = diagnosis.window.steps.as_ref().unwrap();
    assert!((steps.p50_ms / wall - 1.0).abs() < 0.03, "{} ms, expected {wall} ms", steps.p50_ms);
    // Work of the step before the first was recorded too, so totals are for four steps, not three.
    assert!((diagnosis.window.step_count - 4.0).abs() < 0.35, "{}", diagnosis.window.step_count);
}

/// The profiler started while 54 ms of a step's kernels were queued, after its copy had finished: 0.9 steps by number of
/// kernels, 0.7 steps by time.
#[test]
fn work_queued_before_the_first_step_counts_by_time() {
    let diagnosis = fixture("train_ahead");
    let steps = diagnosis.window.steps.as_ref().unwrap();
    assert!((steps.p50_ms - 78.67).abs() < 0.02, "{}", steps.p50_ms);
    assert!(
        diagnosis.verdict.statement.starts_with("Compute-bound: 75% of each 78.7 ms step"),
        "{}",
        diagnosis.verdict.statement
    );
    // The first step is clearly longer and is left out, and with it what was queued before it.
    assert_eq!(diagnosis.window.step_count, steps.count as f64);
}

/// Whether the profiler makes the steps longer.
fn steps_are_slowed(diagnosis: &Diagnosis) -> bool {
    diagnosis.window.steps.as_ref().is_some_and(|steps| steps.unprofiled_ms.is_some())
}

#[test]
fn the_median_step_is_the_wall_time_without_the_profiler() {
    let read = |file: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(root().join(file)).unwrap()).unwrap()
    };
    let (walls, more) = (read("fixtures/walls.json"), read("fixtures/runs/walls.json"));
    // If the host is the bottleneck, the profiler itself makes the step longer.
    let host_bound = [Bound::Launch, Bound::Input, Bound::Sync, Bound::Host];
    for (name, bound, _) in KNOWN.iter().filter(|(_, bound, _)| !host_bound.contains(bound)) {
        let diagnosis = fixture(name);
        // The median of steps that differ depends on which of them were recorded.
        if diagnosis.window.outlier_count > 0 || steps_are_slowed(&diagnosis) {
            continue;
        }
        let Some(steps) = diagnosis.window.steps.as_ref().filter(|steps| steps.count > 1) else { continue };
        let walls = if let Some(run) = name.strip_prefix("runs/") {
            &more[run.trim_start_matches("recorded_")]
        } else {
            &walls[*name]
        };
        let wall = walls["median_s"].as_f64().unwrap() * 1e3;
        let off = (steps.p50_ms / wall - 1.0).abs();
        assert!(off < 0.13, "{name} ({bound:?}): {} ms, expected {wall} ms", steps.p50_ms);
    }
}

#[test]
fn without_gpu_events_the_answer_says_what_is_unknown() {
    let blocking = fixture("cpuonly_block_pageable");
    assert_eq!(blocking.verdict.bound, Bound::Unknown);
    assert!(blocking.verdict.statement.contains("looks transfer-bound"), "{}", blocking.verdict.statement);
    let bus = blocking.cpu_copies.iter().find(|sum| sum.class == CpuCopyClass::BusTransfer).unwrap();
    assert_eq!((bus.count, bus.bytes), (36, 36 * 167_772_160));
    assert!(bus.gbps.unwrap() > 5.0 && bus.gbps.unwrap() < 15.0);
    let limits: Vec<_> = blocking.limitations.iter().map(|limitation| limitation.id).collect();
    assert!(
        limits.contains(&LimitationId::CpuOnly) && limits.contains(&LimitationId::GpuActivity),
        "{limits:?}"
    );

    let mixed = fixture("runs/cpu_only_mixed");
    let classes: Vec<_> = mixed.cpu_copies.iter().map(|sum| (sum.class, sum.count)).collect();
    assert_eq!(
        classes,
        [
            (CpuCopyClass::BusTransfer, 3),
            (CpuCopyClass::GpuInternal, 3),
            (CpuCopyClass::AsynchronousLaunch, 3)
        ]
    );
    let launched = &mixed.cpu_copies[2];
    assert_eq!((launched.bytes, launched.gbps), (600_000_000, None), "a launch has no bandwidth");
}

#[test]
fn two_gpus_are_separate_and_summed() {
    let path = root().join("fixtures/hostile/two_gpus_two_processes.json");
    let diagnosis = diagnosis_of(&path);
    let spans: Vec<_> = diagnosis.devices.iter().map(|device| (device.device, device.time.span_ms)).collect();
    assert_eq!(spans, [(0, 2.51), (1, 2.51)]);
    assert_eq!(diagnosis.time.span_ms, 5.02);
    assert_eq!(diagnosis.time.compute_ms, 3.0);
    // 90 of each copy's 100 µs overlap with the kernel that starts 10 µs later.
    assert!((diagnosis.overlap.copy_compute_ms - 0.54).abs() < 1e-9);
    assert_eq!(diagnosis.machine.gpus.len(), 2);
}

#[test]
fn a_given_machine_changes_the_link_that_copies_are_compared_with() {
    let path = root().join("fixtures/off_block_pinned_c4.json.gz");
    let trace = open(&path, &ReadOptions::default()).unwrap();
    let on = |machine: &str| {
        let machine = Machine::named(machine).unwrap();
        diagnose(&trace, &Source::named("x"), &machine, &Options::default()).copies[0].utilization.unwrap()
    };
    assert!((on("pcie5x16") - 0.881).abs() < 0.002);
    assert!((on("pcie6x16") - 0.459).abs() < 0.002);
}

#[test]
fn histogram_edges_are_configurable_and_every_copy_is_in_one_bin() {
    let path = root().join("fixtures/train_pageable.json.gz");
    let trace = open(&path, &ReadOptions::default()).unwrap();
    let mut options = Options::default();
    options.histogram_edges = vec![9.0, 10.0];
    let diagnosis = diagnose(&trace, &Source::named("x"), &Machine::default(), &options);
    for group in &diagnosis.copies {
        assert_eq!(group.histogram.len(), 3);
        assert_eq!(
            group.histogram.iter().map(|bin| bin.count).sum::<u64>(),
            group.count - group.without_bytes
        );
        assert_eq!(group.histogram.iter().map(|bin| bin.bytes).sum::<u64>(), group.bytes);
        assert_eq!(group.sizes.iter().map(|class| class.count).sum::<u64>(), group.count);
    }
}

#[test]
fn compare_reports_what_changed_and_whether_it_is_significant() {
    let (before, after) = (fixture("off_block_pageable_c4"), fixture("off_layerwise_d2_c4"));
    let comparison = compare(&[before.clone(), after], None);
    assert!(comparison.statement.starts_with("3.5x faster (274 ms → 79.5 ms)"), "{}", comparison.statement);
    assert_eq!(comparison.gone, [FindingId::PageableCopies]);
    assert!(comparison.appeared.is_empty());
    let compute = comparison.figures.iter().find(|figure| figure.name == "compute").unwrap();
    assert!((compute.delta_pct.unwrap() - 13.8).abs() < 0.5, "the GPU clocks down: {compute:?}");
    let same = compare(&[before.clone(), before], None);
    assert!(same.statement.starts_with("No clear difference"), "{}", same.statement);
}

#[test]
fn a_sweep_names_the_part_that_grew_faster_than_the_label() {
    let runs = [fixture("off_block_pinned_c4"), fixture("off_block_pageable_c4")];
    let labels = Labels::new("batch", vec![1.0, 2.0]);
    let comparison = compare(&runs, Some(&labels));
    let sweep = comparison.sweep.unwrap();
    assert_eq!(sweep.grew_faster[0].part, "copying only");
    assert!((sweep.grew_faster[0].factor.unwrap() - 5.65).abs() < 0.05);
    assert!(
        sweep.throughput[1] < sweep.throughput[0],
        "a larger batch is slower here, and the cause is reported"
    );
}

/// More runs of the same types, if they are next to the checkout.
#[test]
fn runs_next_to_the_checkout_get_their_verdicts() {
    let traces = root().join("../shared/traces");
    if !traces.is_dir() {
        eprintln!("skipped: no further traces next to the checkout");
        return;
    }
    let of = |name: &str| diagnosis_of(&traces.join(format!("{name}.json.gz")));
    for c in ["c1", "c4", "c12"] {
        assert_eq!(of(&format!("compute_only_{c}")).verdict.bound, Bound::Compute);
        let pageable = of(&format!("off_block_pageable_{c}"));
        assert_eq!((pageable.verdict.bound, ids(&pageable)[0]), (Bound::Transfer, "pageable_copies"), "{c}");
        assert!(ids(&of(&format!("off_block_pinned_{c}"))).contains(&"serialized_copies"), "{c}");
        assert_eq!(ids(&of(&format!("off_layerwise_pageable_d2_{c}"))), ["non_blocking_pageable"], "{c}");
    }
    for name in ["off_layerwise_d2_c4", "off_layerwise_d2_c12"] {
        assert_ne!(of(name).verdict.bound, Bound::Transfer, "{name}");
    }
    assert_eq!(of("launch_bound").verdict.bound, Bound::Launch);
    assert_eq!(of("pipe_serial").verdict.bound, Bound::Compute);
    assert_eq!(ids(&of("pipe_serial"))[0], "sync_in_loop");
    let layerwise = of("cpuonly_layerwise_d2");
    assert!(layerwise.verdict.statement.starts_with("Inconclusive"), "{}", layerwise.verdict.statement);
}

fn nsight(name: &str) -> Diagnosis {
    diagnosis_of(&root().join("fixtures/nsight").join(name))
}

#[test]
fn an_nsight_export_is_diagnosed_like_any_other_trace() {
    let run = nsight("off.sqlite");
    assert_eq!(run.verdict.bound, Bound::Transfer);
    assert_eq!(ids(&run), ["pageable_copies"]);
    let steps = run.window.steps.unwrap();
    assert_eq!((steps.count, steps.pattern.as_str(), steps.warmup_dropped), (4, "step", 1));
    let copies: Vec<_> = run.copies.iter().map(|group| (group.kind(), group.count, group.bytes)).collect();
    assert_eq!(
        copies,
        [("H2D pageable".to_owned(), 40, 40 * 67_108_864), ("H2D pinned".to_owned(), 40, 40 * 67_108_864)]
    );
}

/// The fastest way to move the pieces of a loop is advice only where it was measured; the evidence says what is assumed.
#[test]
fn copies_issued_one_by_one_name_the_fastest_method_and_where_that_is_from() {
    let path = root().join("fixtures/runs/small_copies.json.gz");
    let finding = |machine: &Machine| {
        let trace = open(&path, &ReadOptions::default()).unwrap();
        let run = diagnose(&trace, &Source::named("small_copies.json.gz"), machine, &Options::default());
        run.findings.into_iter().find(|finding| finding.id == FindingId::CopyCalls).unwrap()
    };
    let assumed = finding(&Machine::default());
    assert_eq!(assumed.evidence["scatter_source"], "assumed");
    assert!(!assumed.fix.contains("Fastest"), "{}", assumed.fix);
    let text = std::fs::read_to_string(root().join("fixtures/scatter/scatter-2.json")).unwrap();
    let measured = finding(&Machine::measured(Samples::parse(&text).unwrap().profile()));
    assert_eq!(measured.evidence["scatter_source"], "measured");
    assert!(measured.fix.contains("Fastest on this machine for"), "{}", measured.fix);
}
