//! Are the number of steps, their durations and the time attributed to each correct?

use std::path::Path;

use busbound_diagnosis::{Bound, Diagnosis, FigureId, Options, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::ReadOptions;
use serde_json::{Value, json};

use super::events::{H2D, call, copy, diagnosis, kernel, step};

#[test]
fn two_gpus_do_not_double_the_step() {
    let mut events = Vec::new();
    for i in 0..4 {
        events.push(step(i, i * 10_000, 9_900));
        for device in 0..2 {
            events.push(json!({"ph":"X","cat":"kernel","name":"k","pid":device,"tid":7,"ts":i * 10_000 + 10,"dur":9_980,
                               "args":{"device":device,"stream":7}}));
        }
    }
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    assert!(diagnosis.verdict.statement.contains("10.0 ms step"), "{}", diagnosis.verdict.statement);
}

/// One copy that overlapped with later steps made its own step long and the later steps empty.
#[test]
fn a_copy_that_outlives_its_step_does_not_lengthen_it() {
    let mut events = Vec::new();
    for i in 0..6 {
        let at = i * 1000;
        events.push(step(i, at, 1000));
        events.push(call("cudaLaunchKernel", 2 * i + 1, at + 1, 5));
        events.push(kernel("k", 7, 2 * i + 1, at + 10, 980));
    }
    events.push(call("cudaMemcpyAsync", 100, 20, 5));
    events.push(copy("Memcpy DtoH (Device -> Pinned)", 9, 100, 30, 4500, 1 << 28));
    let steps = diagnosis(&events, "NVIDIA H200").window.steps.unwrap();
    assert!(steps.each_ms.iter().all(|ms| (0.9..1.1).contains(ms)), "{:?}", steps.each_ms);
}

/// Setup was counted as iterations of the pattern that repeats after it.
#[test]
fn work_before_the_first_iteration_is_not_an_iteration() {
    let mut events = Vec::new();
    let mut id = 0;
    let mut at = 0;
    let mut launch = |name: String, events: &mut Vec<Value>| {
        id += 1;
        at += 100;
        events.extend([call("cudaLaunchKernel", id, at, 5), kernel(&name, 7, id, at + 10, 50)]);
    };
    for i in 0..150 {
        launch(format!("init{i}"), &mut events);
    }
    for _ in 0..60 {
        for k in 0..12 {
            launch(format!("layer{k}"), &mut events);
        }
    }
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    assert_eq!(diagnosis.window.steps.as_ref().unwrap().count, 60);
    assert!((diagnosis.time.compute_ms / diagnosis.step_count() - 0.6).abs() < 1e-6);
}

/// Only the longest outliers are listed, but the analyzed stretch must not contain any outlier.
#[test]
fn the_analyzed_stretch_contains_no_outlier() {
    let mut events = Vec::new();
    let mut at = 0;
    for i in 0..200 {
        // Increasing lengths, so the outliers that are not listed are the shortest ones.
        let length = if i % 5 == 4 { 3000 + 10 * i } else { 1000 };
        events.push(step(i, at, length));
        events.push(call("cudaLaunchKernel", i + 1, at + 1, 5));
        events.push(kernel("k", 7, i + 1, at + 10, length - 20));
        at += length;
    }
    let window = diagnosis(&events, "NVIDIA H200").window;
    let steps = window.steps.unwrap();
    // They take half of the time: then they are what the run is about, and nothing is left out.
    assert_eq!((window.outlier_count, window.outliers.len(), steps.count), (40, 20, 200));
}

/// The file has host events of four steps and GPU events of 1.75 steps. GPU time was divided by four.
#[test]
fn in_a_truncated_file_gpu_time_is_divided_by_the_steps_with_gpu_events() {
    let open = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
        let trace = busbound_trace::open(&path, &ReadOptions::default()).unwrap();
        diagnose(&trace, &Source::named(name), &Machine::default(), &Options::default())
    };
    let (whole, cut) = (open("off_block_pageable_c4.json.gz"), open("hostile/cut_in_gpu.json.gz"));
    assert!(!cut.source.complete);
    assert_eq!(cut.verdict.bound, Bound::Transfer);
    let per_step = |diagnosis: &Diagnosis, ms: f64| ms / diagnosis.step_count();
    let near = |what: &str, of: fn(&Diagnosis) -> f64| {
        let (a, b) = (per_step(&whole, of(&whole)), per_step(&cut, of(&cut)));
        assert!((b / a - 1.0).abs() < 0.05, "{what}: {a} and {b} ms/step");
    };
    near("compute", |diagnosis| diagnosis.time.compute_ms);
    near("copies", |diagnosis| diagnosis.time.copy_ms);
    near("span", |diagnosis| diagnosis.time.span_ms);
    let saves = cut.findings[0].saves_ms_per_step;
    assert!(saves.high < per_step(&cut, cut.time.span_ms), "{saves:?}");
}

/// Ten steps whose second kernel lost its launch call were counted as fifteen.
#[test]
fn work_without_a_recorded_launch_does_not_add_steps() {
    let run = |lost: fn(u32) -> bool| {
        let mut events = Vec::new();
        for i in 0..10 {
            let at = i * 10_000;
            events.push(step(i, at, 9_990));
            for k in 0..3 {
                let (id, launched, begins) = (3 * i + k + 1, at + 1 + 10 * k, at + 100 + 3_000 * k);
                if !lost(k) {
                    events.push(call("cudaLaunchKernel", id, launched, 5));
                }
                events.push(kernel("k", 7, id, begins, 2_990));
            }
        }
        diagnosis(&events, "NVIDIA H200")
    };
    let whole = run(|_| false);
    assert_eq!(whole.window.step_count, 10.0);
    // The first, second and last kernel of each step: before, between and after work with recorded launches.
    for lost in [|k| k == 0, |k| k == 1, |k| k == 2, |k| k != 1] {
        let diagnosis = run(lost);
        assert_eq!(diagnosis.window.steps.as_ref().unwrap().count, 10);
        assert_eq!(diagnosis.window.step_count, 10.0);
        assert_eq!(diagnosis.time.compute_ms, whole.time.compute_ms);
    }
}

/// The median of four values was the third one, and other quantiles were not interpolated either.
#[test]
fn quantiles_are_interpolated() {
    let (mut events, mut at) = (Vec::new(), 0);
    for (i, ms) in [10, 11, 13, 14].into_iter().enumerate() {
        let (i, length) = (i as u32, ms * 1_000);
        events.extend([
            step(i, at, length),
            call("cudaMemcpyAsync", 2 * i + 1, at + 1, 5),
            copy(H2D, 9, 2 * i + 1, at + 10, 1_000, u64::from(ms) * 1_000_000),
            call("cudaLaunchKernel", 2 * i + 2, at + 8, 2),
            kernel("k", 7, 2 * i + 2, at + 1_010, length - 1_010),
        ]);
        at += length;
    }
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    let steps = diagnosis.window.steps.as_ref().unwrap();
    let of_all = diagnosis.window.with_outliers.as_ref().unwrap_or(steps);
    assert_eq!((of_all.min_ms, of_all.p50_ms, of_all.max_ms), (10.0, 12.0, 14.0));
    let rates = diagnosis.copies[0].gbps.unwrap();
    assert_eq!((rates.p10, rates.p50, rates.p90), (10.3, 12.0, 13.7));
    assert_eq!(diagnosis.launches.median_kernel_us, 10_990.0);
}

/// On two GPUs, the parts of a step were summed, so they were twice as long as the step.
#[test]
fn the_parts_of_a_step_on_two_gpus_are_their_mean() {
    let on = |device: u32, id: u32, dur: u32| {
        json!({"ph":"X","cat":"kernel","name":"k","pid":device,"tid":7,"ts":0,"dur":dur,
               "args":{"device":device,"stream":7,"correlation":id}})
    };
    let run = diagnosis(&[on(0, 1, 2_000), on(1, 2, 4_000)], "NVIDIA H200");
    assert_eq!(run.time.compute_ms, 6.0);
    for figure in [FigureId::ComputeMs, FigureId::SpanMs, FigureId::AnalyzedStepP50] {
        assert_eq!(figure.of(&run), Some(3.0), "{figure}");
    }
}

/// `cudaFree` creates the context at its first call. It was once "memory allocation within the trace", with advice about the loop.
#[test]
fn initialization_is_not_a_loop() {
    let mut events = vec![call("cudaLaunchKernel", 100, 0, 5), kernel("first", 7, 100, 10, 50)];
    events.push(call("cudaFree", 1, 1000, 600_000));
    for i in 0..3 {
        events.push(call("cudaLaunchKernel", i + 2, 601_100 + i * 1000, 5));
        events.push(kernel("k", 7, i + 2, 601_200 + i * 1000, 50));
    }
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    assert_eq!(diagnosis.verdict.bound, Bound::Unknown);
    assert!(
        diagnosis.verdict.statement.contains("one cudaFree call takes 600 ms"),
        "{}",
        diagnosis.verdict.statement
    );
    assert!(diagnosis.prize.is_none() && diagnosis.findings.is_empty(), "{:?}", diagnosis.findings);
}

/// The first launch of a kernel loads it. A forward pass recorded without a warm-up, with 1.3 s in the first launches, was once
/// launch-bound, "12.7 to 20.1x by using CUDA graphs".
#[test]
fn kernels_that_load_at_their_first_use_are_not_launch_overhead() {
    let (mut events, mut at) = (Vec::new(), 0);
    for i in 0..40 {
        // Five of the kernels are in modules that are not loaded yet.
        let length = if (1..6).contains(&i) { 200_000 } else { 9 };
        events.push(call("cudaLaunchKernel", i, at, length));
        events.push(kernel(&format!("k{i}"), 7, i, at + length + 4, 60));
        at += length + 80;
    }
    let diagnosis = diagnosis(&events, "NVIDIA A100-PCIE-40GB");
    assert_eq!(diagnosis.verdict.bound, Bound::Unknown);
    assert!(
        diagnosis
            .verdict
            .statement
            .contains("loading kernels at their first use takes 1.00 s of the 1.00 s in this trace"),
        "{}",
        diagnosis.verdict.statement
    );
    assert!(diagnosis.prize.is_none() && diagnosis.findings.is_empty(), "{:?}", diagnosis.findings);
}

/// Long calls that are no first launches may be what a program is about.
#[test]
fn slow_launches_of_known_kernels_are_launch_overhead() {
    let mut events = Vec::new();
    for i in 0..40 {
        events.push(call("cudaLaunchKernel", i, i * 2_080, 2_000));
        events.push(kernel("k", 7, i, i * 2_080 + 2_004, 60));
    }
    let diagnosis = diagnosis(&events, "NVIDIA A100-PCIE-40GB");
    assert_eq!(diagnosis.verdict.bound, Bound::Launch, "{}", diagnosis.verdict.statement);
}

/// Several calls that initialize, each below a third of the time, are together what the trace shows.
#[test]
fn initialization_is_the_sum_of_its_calls() {
    let mut events = vec![call("cudaLaunchKernel", 100, 0, 5), kernel("first", 7, 100, 10, 50)];
    events.push(call("cudaFree", 101, 1_000, 250_000));
    events.push(call("cudaLaunchKernel", 1, 300_000, 260_000));
    events.push(kernel("loaded", 7, 1, 560_010, 50));
    events.push(call("cudaLaunchKernel", 2, 999_000, 5));
    events.push(kernel("loaded", 7, 2, 999_010, 990));
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    assert_eq!(diagnosis.verdict.bound, Bound::Unknown);
    assert!(
        diagnosis.verdict.statement.contains(
            "initialization takes 510 ms of the 1000 ms in this trace (loading kernels at their first use 260 ms, cudaFree 250 ms)"
        ),
        "{}",
        diagnosis.verdict.statement
    );
}

/// A capture runs nothing. The trace of one was once launch-bound, "down to 2.06 ms by using CUDA graphs".
#[test]
fn a_capture_of_a_graph_is_not_launch_overhead() {
    let mut events = vec![step(0, 0, 40_000)];
    events.push(call("cudaLaunchKernel", 1, 10, 5));
    events.push(kernel("fill", 7, 1, 20, 5));
    events.push(call("cudaStreamBeginCapture", 2, 100, 10));
    for i in 0..300 {
        events.push(call("cudaLaunchKernel", 10 + i, 200 + i * 100, 5));
    }
    events.push(call("cudaStreamEndCapture", 3, 38_000, 10));
    // No work ends the last gap.
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    assert_eq!(diagnosis.verdict.bound, Bound::Unknown);
    assert!(
        diagnosis.verdict.statement.contains("capturing CUDA graphs takes 37.9 ms"),
        "{}",
        diagnosis.verdict.statement
    );
    assert!(diagnosis.findings.is_empty(), "{:?}", diagnosis.findings);
}

/// A call before the first GPU work was once said to take "2.08 s of the 5.33 ms in this trace".
#[test]
fn a_call_before_the_gpu_work_is_not_a_part_of_it() {
    let mut events = vec![call("cudaMalloc", 100, 0, 2_000_000)];
    for i in 0..10 {
        events.push(call("cudaLaunchKernel", i, 2_001_000 + i * 500, 5));
        events.push(kernel("k", 7, i, 2_001_010 + i * 500, 50));
    }
    let of = diagnosis(&events, "NVIDIA H200");
    assert_eq!(of.verdict.bound, Bound::Unknown);
    assert!(
        of.verdict.statement.contains(
            "the 4.55 ms of GPU work in this trace come after one cudaMalloc call of 2.00 s, which is initialization"
        ),
        "{}",
        of.verdict.statement
    );
    // Copies that follow are what the program does.
    let copies = [
        call("cudaMalloc", 100, 0, 200_000),
        call("cudaMemcpy", 1, 201_000, 9_000),
        copy("Memcpy HtoD (Pageable -> Device)", 7, 1, 201_100, 8_900, 40_000_000),
        call("cudaMemcpy", 2, 210_000, 9_000),
        copy("Memcpy HtoD (Pageable -> Device)", 7, 2, 210_100, 8_900, 40_000_000),
    ];
    let of = diagnosis(&copies, "NVIDIA H200");
    assert_eq!(of.verdict.bound, Bound::Transfer, "{}", of.verdict.statement);
}

/// It takes all of the time from its start to its end: "compute-bound, 100% of the 1 µs trace".
#[test]
fn one_short_kernel_says_nothing_about_a_long_recording() {
    let host = json!({"ph":"X","cat":"cpu_op","name":"store","pid":1,"tid":1,"ts":0,"dur":711});
    let events = [host, call("cuLaunchKernelEx", 1, 400, 140), kernel("store", 7, 1, 542, 1)];
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    assert_eq!(diagnosis.verdict.bound, Bound::Unknown);
    assert!(
        diagnosis
            .verdict
            .statement
            .contains("one kernel of 1.00 µs is the only GPU work in this recording of 711 µs"),
        "{}",
        diagnosis.verdict.statement
    );
}

/// Two steps of 0.1 and 9 ms once promised a speedup of 15x.
#[test]
fn two_unlike_steps_promise_nothing() {
    let mut events = Vec::new();
    for (i, at, length) in [(0, 0, 100), (1, 200, 9_000)] {
        events.push(step(i, at, length));
        events.push(call("cudaLaunchKernel", i + 1, at + length - 60, 5));
        events.push(kernel("k", 7, i + 1, at + length - 50, 40));
    }
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    assert_eq!(diagnosis.verdict.bound, Bound::Unknown);
    assert!(diagnosis.verdict.statement.contains("the only two steps"), "{}", diagnosis.verdict.statement);
    assert!(diagnosis.prize.is_none());
}
