//! Are steps, blocks, stages, the critical path, kernels and the gate correct on runs whose answers are known by construction
//! or were computed by hand from the raw events?

use std::fs::File;
use std::path::{Path, PathBuf};

use busbound_diagnosis::{
    Baseline, BlockChoice, Diagnosis, KernelBound, LimitationId, Options, PathClass, PipelineShape,
    Requirement, Source, StageChoice, StepQuantity, StepsFound, compare, diagnose, gate,
};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, Trace, open, read_ncu};
use regex_lite::Regex;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn trace(name: &str) -> Trace {
    open(&root().join("fixtures").join(format!("{name}.json.gz")), &ReadOptions::default()).unwrap()
}

fn with(name: &str, options: &Options) -> Diagnosis {
    diagnose(&trace(name), &Source::named(name), &Machine::default(), options)
}

fn fixture(name: &str) -> Diagnosis {
    with(name, &Options::default())
}

fn options(change: impl FnOnce(&mut Options)) -> Options {
    let mut options = Options::default();
    change(&mut options);
    options
}

fn near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value - expected).abs() <= tolerance * expected.abs()
}

// Steps.

#[test]
fn steps_are_what_the_expression_matches() {
    let diagnosis =
        with("runs/nested_blocks", &options(|o| o.steps = Some(Regex::new("^forward$").unwrap())));
    let steps = diagnosis.window.steps.unwrap();
    assert_eq!((steps.found, steps.count), (StepsFound::Given, 5));
    // A step lasts until the next one starts: all work except the first batch's copy, which comes before.
    let all = fixture("runs/nested_blocks");
    assert_eq!(diagnosis.time.compute_ms, all.time.compute_ms);
    assert_eq!((all.copies[0].count, diagnosis.copies[0].count), (5, 4));
}

#[test]
fn an_expression_that_matches_nothing_is_reported_and_not_replaced() {
    let diagnosis = with("runs/nested_blocks", &options(|o| o.steps = Some(Regex::new("^epoch$").unwrap())));
    assert!(diagnosis.window.steps.is_none());
    assert!(diagnosis.limitations.iter().any(|l| l.id == LimitationId::Steps && l.text.contains("^epoch$")));
}

#[test]
fn without_marks_the_detected_iteration_is_the_step() {
    // Three steps of six tokens of eight layers, with a sync after each step: 36 launches per token.
    let decode = fixture("runs/bare_decode").window;
    let steps = decode.steps.unwrap();
    assert_eq!((steps.found, steps.count), (StepsFound::Period, 3));
    assert_eq!(decode.step_count, 3.0);
    // The same programs with marked steps give the same figures per step.
    let marked = fixture("runs/weights_pageable_24x32mb");
    let bare = fixture("runs/bare_weights_pageable");
    assert_eq!(bare.window.steps.as_ref().unwrap().count, 3);
    let copies = |run: &Diagnosis| run.copies[0].count as f64 / run.step_count();
    assert_eq!((copies(&marked), copies(&bare)), (24.0, 24.0));
}

#[test]
fn an_operator_in_a_loop_is_not_a_step() {
    // 48 consecutive matrix products without marks: only the sync at the end of the step separates them.
    let trace = trace("compute_only_c4");
    let unmarked = trace.part(|event| !event.name().starts_with("step"));
    let diagnosis = diagnose(&unmarked, &Source::named("x"), &Machine::default(), &Options::default());
    let steps = diagnosis.window.steps.unwrap();
    assert_eq!((steps.found, steps.count), (StepsFound::Period, 4));
    assert!(near(steps.p50_ms, fixture("compute_only_c4").window.steps.unwrap().p50_ms, 0.02));
}

#[test]
fn warm_up_is_excluded_on_request() {
    let all = fixture("off_block_pinned_c4");
    let later = with("off_block_pinned_c4", &options(|o| o.warmup = Some(2)));
    let steps = later.window.steps.as_ref().unwrap();
    assert_eq!((steps.count, steps.warmup_dropped), (2, 2));
    assert_eq!((all.copies[0].count, later.copies[0].count), (48, 24));
    assert!(near(later.time.compute_ms, all.time.compute_ms / 2.0, 0.02));
    assert_eq!(later.verdict.bound, all.verdict.bound);
}

#[test]
fn slow_steps_are_outliers_with_their_differences() {
    let diagnosis = fixture("runs/unlike_steps");
    let did = |index: usize| -> Vec<StepQuantity> {
        let outlier = diagnosis.window.outliers.iter().find(|outlier| outlier.index == index).unwrap();
        outlier.differences.iter().map(|difference| difference.what).collect()
    };
    assert_eq!(did(4)[0], StepQuantity::Allocation);
    assert_eq!(did(10), [StepQuantity::Copy]);
    assert!(did(12).contains(&StepQuantity::Capture));
    // Only the capture is start-up; the others are too much of the run to be left out.
    let steps = diagnosis.window.steps.as_ref().unwrap();
    assert_eq!((steps.count, steps.outliers_dropped), (12, 4));
    let kept = with("runs/unlike_steps", &options(|o| o.warmup = Some(0)));
    assert_eq!(kept.window.steps.unwrap().count, 16);
}

#[test]
fn a_recompilation_is_an_outlier_and_is_counted() {
    let diagnosis = fixture("runs/broken_compile");
    let outlier = &diagnosis.window.outliers[0];
    assert_eq!((outlier.index, outlier.differences[0].what), (5, StepQuantity::Compilation));
    let compiled = &diagnosis.launches.compiled;
    assert_eq!((compiled.regions, compiled.frames, compiled.recompiled), (160, 2, 2));
    assert!(compiled.compiling_ms > 500.0);
    // 2.4 ms/step recorded, 1.6 without the profiler, not the mean that includes the step with the compilation.
    let own = diagnosis.window.steps.as_ref().unwrap().unprofiled_ms.unwrap().mid;
    assert!((1.60..1.64).contains(&own), "{own}");
    let statement = &diagnosis.verdict.statement;
    assert!(statement.contains("of each recorded 2.35 ms step"), "{statement}");
}

// Blocks.

#[test]
fn blocks_and_the_time_outside_them_sum_to_the_device_time() {
    let layers = Regex::new(r"layer\d+").unwrap();
    for name in ["off_layerwise_d2_c4", "off_layerwise_pageable_d2_c4"] {
        let diagnosis = with(name, &options(|o| o.blocks = BlockChoice::Matching(layers.clone())));
        let attribution = diagnosis.attribution.as_ref().unwrap();
        assert_eq!(attribution.blocks.len(), 12);
        let trace = trace(name);
        let work = trace.events().filter(|event| event.kind().is_gpu_work());
        let all = work.map(|event| event.duration().as_millis()).sum::<f64>() / 4.0;
        let blocks: f64 = attribution.blocks.iter().map(|block| block.gpu_ms).sum();
        assert!(near(blocks + attribution.outside.gpu_ms, all, 1e-9));
        // Every matrix product is launched inside a layer, every copy outside.
        let compute: f64 = attribution.blocks.iter().map(|block| block.compute_ms).sum();
        assert!(near(compute, diagnosis.time.compute_ms / 4.0, 1e-9));
        assert_eq!(attribution.outside.compute_ms, 0.0);
        assert!(attribution.synchronized.is_none());
    }
}

#[test]
fn blocks_nest_and_the_backward_pass_belongs_to_the_block_that_waits_for_it() {
    let diagnosis = with("runs/nested_blocks", &options(|o| o.blocks = BlockChoice::Depth(3)));
    let blocks = diagnosis.attribution.unwrap().blocks;
    let names: Vec<(usize, &str)> = blocks.iter().map(|b| (b.depth, b.name.as_str())).take(6).collect();
    assert_eq!(
        names,
        [(0, "input"), (0, "forward"), (1, "block0"), (2, "attention"), (2, "mlp"), (1, "block1")]
    );
    let gpu = |name: &str| blocks.iter().filter(|b| b.name == name).map(|b| b.gpu_ms).sum::<f64>();
    assert!(gpu("block0") < gpu("forward"));
    assert!(near(gpu("attention") + gpu("mlp"), gpu("block0") + gpu("block1") + gpu("block2"), 0.02));
    // About twice the forward pass, on a thread without annotations.
    assert!((1.5..2.5).contains(&(gpu("backward") / gpu("forward"))));
}

#[test]
fn the_backward_pass_is_attributed_to_its_block_if_no_other_block_contains_it() {
    let by = |wanted: &str| {
        let choice = BlockChoice::Matching(Regex::new(wanted).unwrap());
        with("runs/nested_blocks", &options(|o| o.blocks = choice)).attribution.unwrap()
    };
    let (blocks, forward) = (by(r"^block\d$"), by("^forward$"));
    let gpu = |list: &[busbound_diagnosis::BlockTime]| list.iter().map(|b| b.gpu_ms).sum::<f64>();
    assert!(gpu(&blocks.blocks) > 2.0 * 1.5, "{}", gpu(&blocks.blocks));
    assert!(gpu(&blocks.blocks) > 0.8 * gpu(&forward.blocks));
}

#[test]
fn blocks_that_end_with_a_sync_are_only_for_attribution() {
    let attribution = fixture("runs/sync_after_each_block").attribution.unwrap();
    assert!(attribution.synchronized.unwrap().contains("`block*`"));
}

// Stages.

fn stages(names: &[&str]) -> Vec<StageChoice> {
    let stage = |name: &&str| StageChoice {
        name: (*name).to_owned(),
        matching: Regex::new(&format!("^{name}$")).unwrap(),
    };
    names.iter().map(stage).collect()
}

#[test]
fn the_overlap_score_matches_the_one_computed_by_hand() {
    let overlap = fixture("pipe_overlap").stages.unwrap();
    // Computed by hand from the GPU spans: 0.972, with 12.63 and 7.94 ms and a period of 12.85 ms.
    assert!((overlap.overlap_score - 0.972).abs() < 0.001, "{}", overlap.overlap_score);
    assert_eq!((overlap.items, overlap.shape), (24, PipelineShape::Longest));
    assert!(
        near(overlap.stages[0].median_ms, 12.63, 0.001) && near(overlap.stages[1].median_ms, 7.94, 0.001)
    );
    let serial = fixture("pipe_serial").stages.unwrap();
    assert!(serial.overlap_score <= 0.05, "{}", serial.overlap_score);
    assert_eq!(serial.shape, PipelineShape::Sum);
    assert_eq!(serial.each[0].period_ms, None);
    let item = &serial.each[5];
    let hidden = item.stages_ms.iter().sum::<f64>() - item.period_ms.unwrap();
    assert_eq!(item.hidden_ms, Some(hidden));
}

#[test]
fn a_comparison_shows_what_the_score_hides() {
    let change = compare(&[fixture("pipe_serial"), fixture("pipe_overlap")], None).stages.unwrap();
    assert_eq!(change.period_pct.round(), -11.0);
    let longer: Vec<f64> = change.stages.iter().map(|(_, pct)| pct.round()).collect();
    assert_eq!(longer, [42.0, 47.0]);
    assert!(change.gained_share.unwrap() < 0.25);
    assert!(change.statement.contains("Most of the overlap gains nothing"), "{}", change.statement);
}

#[test]
fn three_stages_by_name() {
    let diagnosis = with("runs/three_stages", &options(|o| o.stages = stages(&["load", "compute", "store"])));
    let found = diagnosis.stages.unwrap();
    assert_eq!(found.items, 24);
    assert!(found.overlap_score > 0.9);
    assert!(near(found.period_ms, found.stages[1].median_ms, 0.02), "compute is the longest");
}

#[test]
fn a_missing_stage_is_reported_with_the_existing_ones() {
    let diagnosis = with("pipe_serial", &options(|o| o.stages = stages(&["stage0", "decode"])));
    assert!(diagnosis.stages.is_none());
    let why = diagnosis.limitations.iter().find(|l| l.id == LimitationId::Stages).unwrap();
    assert!(why.text.contains("decode") && why.text.contains("`stage1`"), "{}", why.text);
}

// Launches.

#[test]
fn the_queue_is_deep_if_the_host_runs_ahead_and_empty_if_it_cannot() {
    let queue = |name: &str| fixture(name).launches.queue.unwrap();
    // 108 launches per step, all within the first milliseconds.
    let ahead = queue("off_layerwise_d2_c4");
    assert!(ahead.max_depth > 100 && ahead.empty_share < 0.05, "{ahead:?}");
    assert!(near(ahead.over_time.iter().sum::<f64>() / 60.0, ahead.mean_depth, 1e-9));
    let behind = queue("launch_bound");
    assert!(behind.max_depth < 5 && behind.empty_share > 0.7, "{behind:?}");
    assert_eq!(fixture("graph_replay").launches.graph_launches, 30);
}

// The critical path.

fn share(diagnosis: &Diagnosis, class: PathClass) -> f64 {
    let path = diagnosis.critical_path.as_ref().unwrap();
    path.classes.iter().find(|share| share.class == class).map_or(0.0, |share| share.share)
}

#[test]
fn the_path_is_as_long_as_the_step_and_consists_of_what_bounds_it() {
    for (name, class, least) in [
        ("compute_only_c4", PathClass::Compute, 0.98),
        ("off_layerwise_d2_c4", PathClass::Compute, 0.93),
        ("off_block_pageable_c4", PathClass::Copy, 0.70),
        ("train_pageable", PathClass::Input, 0.40),
        ("launch_bound", PathClass::Launch, 0.50),
        ("runs/bus_too_short", PathClass::Copy, 0.80),
        ("runs/weights_pageable_24x32mb", PathClass::Copy, 0.80),
        ("runs/nested_blocks", PathClass::Launch, 0.70),
        ("runs/three_stages", PathClass::Compute, 0.80),
    ] {
        let diagnosis = fixture(name);
        let path = diagnosis.critical_path.as_ref().unwrap();
        assert!(near(path.path_ms, path.step_ms, 1e-6), "{name}: {} of {}", path.path_ms, path.step_ms);
        assert!(share(&diagnosis, class) > least, "{name}: {:?}", path.classes);
        let shares: f64 = path.classes.iter().map(|class| class.share).sum();
        assert!(near(shares, 1.0, 1e-9));
        assert_eq!(path.longest.len(), 10.min(path.pieces), "{name}");
    }
}

#[test]
fn recorded_waits_put_the_awaited_copies_on_the_path() {
    // Each of twelve groups waits for its copy, so all copies are on the path, whether the waits are recorded or not.
    for name in ["runs/prefetch_too_late", "runs/recorded_prefetch_too_late"] {
        let diagnosis = fixture(name);
        let copies = diagnosis.copies[0].busy_ms / diagnosis.step_count();
        let path = diagnosis.critical_path.as_ref().unwrap();
        assert!(near(share(&diagnosis, PathClass::Copy) * path.path_ms, copies, 0.05), "{name}");
    }
    // Host waits are recorded there, but this profiler does not record which event a stream waited for.
    let edges = fixture("runs/recorded_prefetch_too_late").critical_path.unwrap().edges;
    assert!(edges.recorded_waits >= 2 && edges.inferred_waits >= 60, "{edges:?}");
    let edges = fixture("runs/prefetch_too_late").critical_path.unwrap().edges;
    assert_eq!(edges.recorded_waits, 0);
}

#[test]
fn paths_of_external_traces_follow_their_recorded_waits() {
    let folder = root().join("../shared/peers/hta/critical_path");
    if !folder.is_dir() {
        eprintln!("skipped: ../shared/peers does not exist");
        return;
    }
    let path_of = |file: &str, options: &Options| {
        let trace = open(&folder.join(file), &ReadOptions::default()).unwrap();
        diagnose(&trace, &Source::named(file), &Machine::default(), options).critical_path.unwrap()
    };
    let measured = options(|o| o.steps = Some(Regex::new(r"measure\|forward").unwrap()));
    let alexnet = path_of("alexnet/benchmark_result_2869224_1695835535_trace.json.gz", &measured);
    assert!(near(alexnet.path_ms, alexnet.step_ms, 0.01));
    // The final Context Sync, and the Stream Wait Event before the last kernels.
    assert_eq!((alexnet.edges.recorded_waits, alexnet.edges.inferred_waits), (2, 0));
    assert_eq!(alexnet.edges.stream_order, 32);
    assert!(alexnet.longest.iter().any(|piece| piece.name.contains("cudaMalloc")), "{:?}", alexnet.longest);
    let event_sync = path_of("cuda_event_sync/event_sync_trace.json.gz", &Options::default());
    assert!(near(event_sync.path_ms, event_sync.step_ms, 0.01));
    // The Event Sync on the spinning kernel. The copy to pageable memory always blocks.
    assert_eq!((event_sync.edges.recorded_waits, event_sync.edges.inferred_waits), (1, 1));
    let streams = path_of("cuda_event_sync_multi_stream/event_sync_trace.json.gz", &Options::default());
    assert!(near(streams.path_ms, streams.step_ms, 0.01));
    assert_eq!(streams.edges.inferred_waits, 0);
}

// Kernels.

#[test]
fn kernels_are_reported_only_if_compute_bounds_the_run() {
    let kernels = fixture("compute_only_c4").kernels.unwrap();
    assert!(kernels.top[0].name.starts_with("nvjet") && kernels.top[0].share > 0.99);
    assert_eq!(kernels.top[0].runs_per_step, 48.0);
    assert_eq!(kernels.top[0].geometry.unwrap().block, [384, 1, 1]);
    assert!(fixture("off_block_pageable_c4").kernels.is_none());
}

#[test]
fn nsight_compute_places_kernels_on_the_roofline() {
    let export = |file: &str| read_ncu(File::open(root().join("fixtures/ncu").join(file)).unwrap()).unwrap();
    let raw = export("raw.csv");
    assert_eq!(raw.len(), 8);
    // Exactly 2 × 4096³ tensor-core operations. Without tensor cores, 2 × 2048³ plus the loop overhead.
    assert_eq!(raw[0].operations[0].count, 2.0 * 4096f64.powi(3));
    assert_eq!(raw[0].operations[0].precision, "bf16 tensor");
    assert!(near(raw[1].operations[0].count, 2.0 * 2048f64.powi(3), 0.01));
    // 100 million floats, read and written.
    assert!(near(raw[2].memory_bytes.unwrap(), 800e6, 0.05), "{:?}", raw[2].memory_bytes);
    assert!(near(raw[2].memory_roof.unwrap(), 4.8e12, 0.01));

    let diagnosis = with("ncu/kernels", &options(|o| o.measured_kernels = Some(raw.clone())));
    let kernels = diagnosis.kernels.unwrap();
    assert_eq!(kernels.measured.unwrap().found_in_trace, 8);
    let bounds: Vec<(&str, KernelBound)> = kernels
        .top
        .iter()
        .filter_map(|kernel| Some((kernel.name.as_str(), kernel.roofline.as_ref()?.bound?)))
        .collect();
    let of = |part: &str| bounds.iter().find(|(name, _)| name.contains(part)).unwrap().1;
    assert_eq!(of("nvjet"), KernelBound::Compute);
    assert_eq!(of("simt_sgemm"), KernelBound::Compute);
    assert_eq!(of("MulFunctor"), KernelBound::Memory);
    assert_eq!(of("reduce_kernel"), KernelBound::Memory);
    assert_eq!(of("radixSortKVInPlace"), KernelBound::Latency);
    let product = kernels.top.iter().find(|k| k.name.starts_with("nvjet")).unwrap().roofline.clone().unwrap();
    assert!(near(product.tflops.unwrap(), 780.3, 0.001));
    assert!(near(product.of_precision_roof.unwrap(), 0.9035, 0.001));

    // The page that ncu prints by default has the same kernels with less detail.
    let details = export("details.csv");
    for (a, b) in raw.iter().zip(&details) {
        assert_eq!((&a.name, a.grid, a.block), (&b.name, b.grid, b.block));
        assert!(near(a.duration_ns.unwrap(), b.duration_ns.unwrap(), 0.005));
        assert!((a.memory_pct.unwrap() - b.memory_pct.unwrap()).abs() < 0.006);
        assert!((a.compute_pct.unwrap() - b.compute_pct.unwrap()).abs() < 0.2);
        assert!(b.operations.is_empty());
    }
}

// The gate.

#[test]
fn a_gate_fails_requirements_that_are_false_or_unknown() {
    let runs = [fixture("pipe_overlap")];
    let baseline = Baseline::of(&fixture("pipe_serial"));
    let wanted = |list: &[&str]| -> Vec<Requirement> {
        list.iter().map(|text| Requirement::parse(text).unwrap()).collect()
    };
    let passes = wanted(&["overlap_score>=0.30", "exposed_copy_ms<5", "step_p50<=1.05*baseline"]);
    assert!(gate(&runs, &passes, Some(&baseline), false).passed);
    let fails = wanted(&["overlap_score >= 0.99", "step_p50 <= 0.9 * baseline", "h2d_gbps > 1"]);
    let failed = gate(&runs, &fails, Some(&baseline), false);
    assert!(!failed.passed && failed.runs[0].checks.iter().all(|check| !check.passed));
    assert!(failed.runs[0].checks[2].why.as_ref().unwrap().contains("h2d_gbps is not available"));
}

#[test]
fn gate_figures_match_the_diagnosis_per_step() {
    let run = fixture("off_block_pageable_c4");
    let figures = Baseline::of(&run).figures;
    assert_eq!(figures["step_p50"], run.window.steps.as_ref().unwrap().p50_ms);
    assert_eq!(figures["exposed_copy_ms"], run.time.exposed_copy_ms / 4.0);
    assert!(near(figures["h2d_mb"], 12.0 * 167.772_160, 1e-9));
    assert_eq!(figures["pageable_mb"], figures["h2d_mb"]);
    assert!(near(figures["h2d_gbps"], run.copies[0].gbps.unwrap().weighted, 1e-9));
    assert_eq!(figures["high_findings"], 1.0);
    assert!(!figures.contains_key("overlap_score"));
}
