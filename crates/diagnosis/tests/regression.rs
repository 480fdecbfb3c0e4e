//! Every wrong sentence found in a diagnosis or comparison, by what was wrong.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::path::Path;

use busbound_diagnosis::{
    Bound, CopyRoute, Diagnosis, FigureId, FindingId, Labels, LimitationId, Options, Part, Source, compare,
    diagnose,
};
use busbound_machine::{LinkSource, Machine};
use busbound_trace::{EventKind, MemoryKind, ReadOptions, read};
use serde_json::{Value, json};

fn diagnosis(events: &[Value], gpu: &str) -> Diagnosis {
    let trace = json!({"deviceProperties": [{"id": 0, "name": gpu}], "traceEvents": events}).to_string();
    let trace = read(trace.as_bytes(), Path::new("t"), &ReadOptions::default()).unwrap();
    diagnose(&trace, &Source::named("t"), &Machine::default(), &Options::default())
}

fn step(i: u32, ts: u32, dur: u32) -> Value {
    json!({"ph":"X","cat":"user_annotation","name":format!("ProfilerStep#{i}"),"pid":1,"tid":1,"ts":ts,"dur":dur})
}

fn call(name: &str, correlation: u32, ts: u32, dur: u32) -> Value {
    json!({"ph":"X","cat":"cuda_runtime","name":name,"pid":1,"tid":1,"ts":ts,"dur":dur,"args":{"correlation":correlation}})
}

fn kernel(name: &str, stream: u32, correlation: u32, ts: u32, dur: u32) -> Value {
    json!({"ph":"X","cat":"kernel","name":name,"pid":0,"tid":stream,"ts":ts,"dur":dur,
           "args":{"device":0,"stream":stream,"correlation":correlation}})
}

fn copy(name: &str, stream: u32, correlation: u32, ts: u32, dur: u32, bytes: u64) -> Value {
    json!({"ph":"X","cat":"gpu_memcpy","name":name,"pid":0,"tid":stream,"ts":ts,"dur":dur,
           "args":{"device":0,"stream":stream,"correlation":correlation,"bytes":bytes}})
}

const H2D: &str = "Memcpy HtoD (Pinned -> Device)";

/// No sentence may hold what a division by nothing prints.
fn check_words(diagnosis: &Diagnosis) {
    let text = serde_json::to_string(diagnosis).unwrap();
    assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
    assert!(!diagnosis.verdict.statement.is_empty());
}

#[test]
fn events_without_length_get_a_sentence_and_no_finding() {
    for events in [vec![kernel("k", 7, 1, 5, 0)], vec![copy(H2D, 7, 1, 5, 0, 100)]] {
        let diagnosis = diagnosis(&events, "NVIDIA H200");
        check_words(&diagnosis);
        assert_eq!(diagnosis.verdict.bound, Bound::Unknown);
        assert!(diagnosis.findings.is_empty(), "{:?}", diagnosis.findings);
    }
}

#[test]
fn unexplained_idle_time_is_named_and_not_left_blank() {
    let events = [kernel("k", 7, 1, 0, 1000), kernel("k", 7, 2, 2000, 1000)];
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    check_words(&diagnosis);
    assert!(
        diagnosis.verdict.statement.contains("for reasons this trace does not show"),
        "{:?}",
        diagnosis.verdict
    );
}

#[test]
fn copies_between_gpus_are_not_called_host_copies() {
    let events = [
        copy("Memcpy PtoP (Device -> Device)", 9, 1, 0, 8900, 1_000_000_000),
        copy(H2D, 9, 2, 9000, 20, 1000),
        kernel("k", 7, 3, 9100, 900),
    ];
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    assert!(diagnosis.verdict.statement.contains("copies between GPUs"), "{}", diagnosis.verdict.statement);
}

#[test]
fn a_copy_queued_long_before_a_gap_is_not_laid_to_the_host() {
    let mut events = Vec::new();
    for i in 0..4 {
        let at = i * 5000;
        events.push(step(i, at, 4900));
        events.push(call("cudaLaunchKernel", 10 + i, at + 10, 5));
        events.push(call("cudaMemcpyAsync", 20 + i, at + 20, 5));
        events.push(kernel("k", 7, 10 + i, at + 100, 1000));
        // It waits for something on the device that the trace does not show.
        events.push(copy(H2D, 9, 20 + i, at + 3100, 1450, 80_000_000));
    }
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    assert_ne!(diagnosis.verdict.bound, Bound::Launch, "{}", diagnosis.verdict.statement);
    assert!(diagnosis.findings.iter().all(|finding| finding.id != FindingId::LaunchBound));
}

#[test]
fn idle_time_after_the_last_synchronisation_is_not_laid_to_an_item_call() {
    let mut events = Vec::new();
    for i in 0..4 {
        let at = i * 10_000;
        events.push(step(i, at, 9_900));
        events.push(call("cudaLaunchKernel", 10 + i, at + 10, 5));
        events.push(
            json!({"ph":"X","cat":"cpu_op","name":"aten::item","pid":1,"tid":1,"ts":at + 1000,"dur":10}),
        );
        events.push(call("cudaStreamSynchronize", 30 + i, at + 1001, 5));
        events.push(kernel("k", 7, 10 + i, at + 100, 5000));
        events.push(call("cudaDeviceSynchronize", 40 + i, at + 1100, 4005));
        events.push(json!({"ph":"X","cat":"cpu_op","name":"work","pid":1,"tid":1,"ts":at + 5200,"dur":4600}));
    }
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    assert!(
        diagnosis.findings.iter().all(|finding| finding.id != FindingId::SyncInLoop),
        "{:?}",
        diagnosis.findings
    );
}

#[test]
fn a_superchip_is_judged_by_its_own_link_and_a_wrong_link_is_said() {
    let events: Vec<_> = (0..6).map(|i| copy(H2D, 9, i, i * 1100, 1000, 380_000_000)).collect();
    let right = diagnosis(&events, "NVIDIA GH200 480GB");
    assert!(right.copies[0].utilization.unwrap() < 1.0);
    let wrong = diagnosis(&events, "NVIDIA H100 PCIe");
    assert!(wrong.limitations.iter().any(|limitation| limitation.id == LimitationId::LinkWrong));
    assert!(wrong.findings.iter().all(|finding| finding.id != FindingId::BandwidthDeficit));
}

#[test]
fn a_trace_without_kernels_needs_no_infinite_bandwidth() {
    let events: Vec<_> = (0..6).map(|i| copy(H2D, 9, i, i * 2100, 2000, 100_000_000)).collect();
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    check_words(&diagnosis);
    assert!(diagnosis.findings.iter().all(|finding| finding.id != FindingId::BandwidthDeficit));
    assert!(diagnosis.limitations.iter().any(|limitation| limitation.id == LimitationId::NoKernels));
}

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

#[test]
fn runs_that_cannot_be_compared_are_not() {
    let steps: Vec<_> = (0..3)
        .flat_map(|i| {
            [
                step(i, i * 1000, 900),
                call("cudaLaunchKernel", i, i * 1000 + 5, 5),
                kernel("k", 7, i, i * 1000 + 20, 800),
            ]
        })
        .collect();
    let marked = diagnosis(&steps, "NVIDIA H200");
    let bare = diagnosis(&[kernel("k", 7, 1, 0, 100_000)], "NVIDIA H200");
    let empty = diagnosis(&[kernel("k", 7, 1, 0, 0)], "NVIDIA H200");
    let host = diagnosis(&[step(0, 0, 900), step(1, 1000, 900)], "NVIDIA H200");
    for (a, b) in [(&marked, &bare), (&bare, &empty), (&marked, &host)] {
        let labels = Labels { key: "batch".to_owned(), values: vec![1.0, 2.0] };
        let comparison = compare(&[a.clone(), b.clone()], Some(&labels));
        assert!(comparison.statement.starts_with("Cannot be compared"), "{}", comparison.statement);
        assert!(comparison.figures.is_empty() && comparison.sweep.is_none());
    }
}

#[test]
fn a_tiny_copy_that_took_long_did_not_cross_the_bus_for_that() {
    let event = json!({"ph":"X","cat":"cpu_op","name":"aten::copy_","pid":1,"tid":1,"ts":1,"dur":4940,
        "args":{"Input Dims":[[246],[246],[]],"Input type":["float","float","Scalar"],"Concrete Inputs":["","","False"]}});
    let diagnosis = diagnosis(&[event], "NVIDIA H200");
    assert_eq!(diagnosis.cpu_copies.len(), 1);
    assert_eq!(diagnosis.cpu_copies[0].class, busbound_diagnosis::CpuCopyClass::Undecided);
}

fn annotation(name: &str, thread: u32, ts: u32, dur: u32) -> Value {
    json!({"ph":"X","cat":"user_annotation","name":name,"pid":1,"tid":thread,"ts":ts,"dur":dur})
}

fn call_on(thread: u32, correlation: u32, ts: u32, dur: u32) -> Value {
    json!({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":thread,"ts":ts,"dur":dur,"args":{"correlation":correlation}})
}

fn with(events: &[Value], change: impl FnOnce(&mut Options)) -> Diagnosis {
    let trace = json!({"traceEvents": events}).to_string();
    let trace = read(trace.as_bytes(), Path::new("t"), &ReadOptions::default()).unwrap();
    let mut options = Options::default();
    change(&mut options);
    diagnose(&trace, &Source::named("t"), &Machine::default(), &options)
}

fn by(wanted: &str) -> impl FnOnce(&mut Options) {
    let choice = busbound_diagnosis::BlockChoice::Matching(regex_lite::Regex::new(wanted).unwrap());
    move |options| options.blocks = choice
}

/// A wait of milliseconds that ends some microseconds after a copy was called turn-around, and so was one
/// that nothing explains.
#[test]
fn a_long_wait_is_not_turn_around() {
    let mut events = vec![step(0, 0, 3000)];
    events.extend([call("cudaLaunchKernel", 1, 0, 5), kernel("a", 7, 1, 10, 500)]);
    events.extend([call("cudaMemcpyAsync", 2, 10, 5), copy(H2D, 8, 2, 20, 3000, 1 << 27)]);
    events.extend([call("cudaLaunchKernel", 3, 20, 5), kernel("b", 7, 3, 3035, 500)]);
    let path = diagnosis(&events, "NVIDIA H200").critical_path.unwrap();
    let share = |path: &busbound_diagnosis::CriticalPath, class| {
        path.classes.iter().find(|share| share.class == class).map_or(0.0, |share| share.ms)
    };
    use busbound_diagnosis::PathClass;
    assert!((share(&path, PathClass::Copy) - 3.0).abs() < 0.001, "{:?}", path.classes);
    events.retain(|event| event["cat"] != "gpu_memcpy");
    let path = diagnosis(&events, "NVIDIA H200").critical_path.unwrap();
    assert!(share(&path, PathClass::Unexplained) > 2.5, "{:?}", path.classes);
    assert!(share(&path, PathClass::Turnaround) < 0.1, "{:?}", path.classes);
}

/// The backward pass fell outside of all blocks as soon as its thread had an annotation anywhere.
#[test]
fn a_thread_with_annotations_elsewhere_still_belongs_to_the_backward_pass() {
    let events = [
        annotation("backward", 1, 0, 1000),
        annotation("forward", 1, 2000, 100),
        annotation("nccl:all_reduce", 2, 900, 50),
        call_on(2, 1, 100, 5),
        kernel("dgrad", 7, 1, 200, 300),
        call_on(2, 2, 910, 5),
        kernel("reduce", 7, 2, 920, 20),
        call_on(1, 3, 1500, 5),
        kernel("other", 7, 3, 1510, 20),
    ];
    let attribution = with(&events, by("backward|nccl")).attribution.unwrap();
    let gpu = |name: &str| attribution.blocks.iter().find(|block| block.name == name).unwrap().gpu_ms;
    assert_eq!((gpu("backward"), gpu("nccl:all_reduce")), (0.3, 0.02));
    // What the program's own thread launches outside of blocks is outside.
    assert_eq!(attribution.outside.gpu_ms, 0.02);
}

#[test]
fn annotations_that_overlap_without_nesting_each_get_their_own() {
    let mut events = Vec::new();
    for i in 0..20 {
        let at = i * 1000;
        events.extend([annotation("A", 1, at, 100), annotation("B", 1, at + 50, 100)]);
        for (k, launched) in [20, 60, 120, 200].into_iter().enumerate() {
            let id = i * 10 + k as u32 + 1;
            events.push(call("cudaLaunchKernel", id, at + launched, 2));
            events.push(kernel("k", 7, id, at + launched + 10, 10));
        }
    }
    let attribution = with(&events, by("^[AB]$")).attribution.unwrap();
    let totals: Vec<(&str, usize, f64)> = attribution
        .blocks
        .iter()
        .map(|b| (b.name.as_str(), b.depth, (b.gpu_ms * b.count * 1e3).round()))
        .collect();
    // One kernel in A alone, one in both, one in B alone, one in neither.
    assert_eq!(
        totals.iter().map(|(name, depth, _)| (*name, *depth)).collect::<Vec<_>>(),
        [("A", 0), ("B", 1)]
    );
    let per_round = |ms: f64| (ms / attribution.outside.gpu_ms).round();
    assert_eq!(per_round(attribution.blocks[1].gpu_ms), 2.0);
    assert_eq!(per_round(attribution.blocks[0].gpu_ms), 3.0);
}

/// A gate passed because the steps it should catch had been left out as outliers.
#[test]
fn a_gate_sees_the_steps_that_took_longer() {
    let mut events = Vec::new();
    let mut at = 0;
    for i in 0..40 {
        let length = if i % 10 == 9 { 5000 } else { 1000 };
        events.push(step(i, at, length));
        events.push(call("cudaLaunchKernel", i + 1, at + 1, 5));
        events.push(kernel("k", 7, i + 1, at + 10, length - 20));
        at += length;
    }
    let run = diagnosis(&events, "NVIDIA H200");
    assert!(run.window.steps.as_ref().unwrap().outliers_dropped > 0);
    let figures = busbound_diagnosis::Baseline::of(&run).figures;
    assert_eq!(figures["outlier_steps"], 4.0);
    assert!(figures["step_max"] > 4.9 && figures["step_p99"] > 4.9, "{figures:?}");
    assert!(figures["step_p50"] < 1.1);
}

/// Figures a step stood against figures of a whole trace.
#[test]
fn a_gate_does_not_compare_a_step_with_a_trace() {
    use busbound_diagnosis::{Baseline, Requirement, gate};
    let work = |i: u32| {
        [call("cudaLaunchKernel", i, 1000 * i, 5), kernel("k", 7, i, 1000 * i + 10, 400 + 7 * i * i)]
    };
    let bare: Vec<Value> = (1..4).flat_map(work).collect();
    let mut marked = bare.clone();
    marked.extend((1..4).map(|i| step(i, 1000 * i, 900)));
    let (bare, marked) = (diagnosis(&bare, "NVIDIA H200"), diagnosis(&marked, "NVIDIA H200"));
    let wanted = [Requirement::parse("compute_ms <= 1.05 * baseline").unwrap()];
    let gate = gate(&[marked], &wanted, Some(&Baseline::of(&bare)), false);
    assert!(!gate.passed);
    let why = gate.runs[0].checks[0].why.as_ref().unwrap();
    assert!(why.contains("for a step") && why.contains("for a trace"), "{why}");
}

/// One copy that runs on beside later steps made its own step long and those after it nothing.
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

/// Setting up was counted as rounds of what repeats after it.
#[test]
fn what_comes_before_a_period_is_no_round() {
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

#[test]
fn a_stage_that_launches_nothing_once_does_not_shift_the_others() {
    let mut events = Vec::new();
    for i in 0..6 {
        let at = i * 1000;
        events.extend([annotation("load", 1, at, 100), annotation("compute", 1, at + 200, 100)]);
        if i != 2 {
            events.extend([
                call("cudaLaunchKernel", 2 * i + 1, at + 10, 5),
                kernel("l", 7, 2 * i + 1, at + 20, 100),
            ]);
        }
        events.extend([
            call("cudaLaunchKernel", 2 * i + 2, at + 210, 5),
            kernel("c", 7, 2 * i + 2, at + 220, 500),
        ]);
    }
    let choice = |name: &str| busbound_diagnosis::StageChoice {
        name: name.to_owned(),
        matching: regex_lite::Regex::new(name).unwrap(),
    };
    let stages = with(&events, |o| o.stages = vec![choice("load"), choice("compute")]).stages.unwrap();
    assert_eq!(stages.items, 6);
    assert_eq!(stages.each[5].stages_ms, [0.1, 0.5]);
    // A millisecond an item for 0.6 ms of stages.
    assert_eq!(stages.shape, busbound_diagnosis::PipelineShape::More);
    assert!(stages.statement.contains("more than its stages together"), "{}", stages.statement);
}

/// Only the longest outliers are told, but none may lie in the stretch that figures are for.
#[test]
fn a_steady_stretch_holds_no_outlier_however_many_there_are() {
    let mut events = Vec::new();
    let mut at = 0;
    for i in 0..200 {
        // Longer and longer, so that the shortest of them are those that are not told.
        let length = if i % 5 == 4 { 3000 + 10 * i } else { 1000 };
        events.push(step(i, at, length));
        events.push(call("cudaLaunchKernel", i + 1, at + 1, 5));
        events.push(kernel("k", 7, i + 1, at + 10, length - 20));
        at += length;
    }
    let window = diagnosis(&events, "NVIDIA H200").window;
    let steps = window.steps.unwrap();
    assert_eq!((window.outlier_count, window.outliers.len(), steps.count), (40, 20, 4));
    assert!(steps.max_ms < 1.5, "{:?}", steps.each_ms);
}

/// The host's part of four steps is there, the GPU's of one and three quarters: what the GPU did was divided by four.
#[test]
fn a_file_cut_among_its_gpu_events_is_divided_by_the_steps_that_these_hold() {
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
        assert!((b / a - 1.0).abs() < 0.05, "{what}: {a} and {b} ms a step");
    };
    near("compute", |diagnosis| diagnosis.time.compute_ms);
    near("copies", |diagnosis| diagnosis.time.copy_ms);
    near("span", |diagnosis| diagnosis.time.span_ms);
    let saves = cut.findings[0].saves_ms_per_step;
    assert!(saves.high < per_step(&cut, cut.time.span_ms), "{saves:?}");
}

/// One event at time zero beside those of today: the span times ten was more than 64 bits hold.
#[test]
fn events_decades_apart_are_no_panic() {
    let events = [
        kernel("k", 1, 1, 0, 1),
        json!({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":1,
        "ts":1_700_000_000_000_000i64,"dur":1,"args":{"device":0,"stream":1,"correlation":2}}),
    ];
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    check_words(&diagnosis);
    assert!(diagnosis.time.span_ms > 1.6e12);
}

/// One program, once recorded by us and once by torch.profiler, on an H200: fixtures/recorded.
#[test]
fn a_recording_says_of_copies_what_torch_profiler_says() {
    let trace = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded").join(name);
        busbound_trace::open(&path, &ReadOptions::default()).unwrap()
    };
    let (ours, theirs) = (trace("offload.bbt"), trace("offload.json.gz"));
    let copies = |trace: &busbound_trace::Trace| {
        let mut all: std::collections::BTreeMap<_, Vec<(i64, u64)>> = std::collections::BTreeMap::new();
        for event in trace.events() {
            if let Some(transfer) = event.transfer().filter(|_| event.kind() == EventKind::Copy) {
                let one = (event.duration().get(), transfer.bytes.unwrap().get());
                all.entry((transfer.direction, transfer.src, transfer.dst)).or_default().push(one);
            }
        }
        all.values_mut().for_each(|list| list.sort_unstable());
        all
    };
    let (ours_by_kind, theirs_by_kind) = (copies(&ours), copies(&theirs));
    assert_eq!(ours_by_kind.len(), 4);
    for (kind, list) in &ours_by_kind {
        let their = &theirs_by_kind[kind];
        let bytes = |list: &[(i64, u64)]| list.iter().map(|(_, bytes)| bytes).sum::<u64>();
        assert_eq!((list.len(), bytes(list)), (their.len(), bytes(their)), "{kind:?}");
        // How fast pageable memory is staged differs from run to run, and so do the first copies; the link does not.
        let median = |list: &[(i64, u64)]| list[list.len() / 2].0 as f64;
        let off = (median(list) / median(their) - 1.0).abs();
        assert!(![kind.1, kind.2].contains(&MemoryKind::Pinned) || off < 0.01, "{kind:?}: {off}");
    }
    let verdict =
        |trace| diagnose(trace, &Source::named("t"), &Machine::default(), &Options::default()).verdict.bound;
    assert_eq!((verdict(&ours), verdict(&theirs)), (Bound::Transfer, Bound::Transfer));
}

/// A recording in which the driver told this link, of at most PCIe 5 x16: the real one, with its link records changed.
fn recorded_on(generation: u32, lanes: u32) -> busbound_trace::Trace {
    use busbound_capture::format::{Chunk, ChunkReader, ChunkWriter, MAGIC, Record, Records};
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/offload.bbt");
    let file = std::fs::read(path).unwrap();
    let mut chunks = ChunkReader::new(file.strip_prefix(MAGIC).unwrap());
    let mut changed = MAGIC.to_vec();
    while let Some(chunk) = chunks.next_chunk().unwrap() {
        let Chunk::Whole { payload, .. } = chunk else { panic!("the recording is whole") };
        let mut writer = ChunkWriter::default();
        for record in Records::of(&payload) {
            match record {
                Record::Link { gpu, max_generation, max_lanes, .. } => {
                    // At rest the link is slower, which is no finding.
                    writer.add(&Record::Link { gpu, generation: 1, lanes, max_generation, max_lanes });
                    writer.add(&Record::Link { gpu, generation, lanes, max_generation, max_lanes });
                }
                other => writer.add(&other),
            }
        }
        changed.extend(writer.take().unwrap());
    }
    busbound_trace::read(changed.as_slice(), Path::new("run.bbt"), &ReadOptions::default()).unwrap()
}

#[test]
fn a_recording_is_judged_against_the_link_that_was_recorded() {
    let of = |generation, lanes| {
        let trace = recorded_on(generation, lanes);
        diagnose(&trace, &Source::named("t"), &Machine::default(), &Options::default())
    };
    let whole = of(5, 16);
    let link = &whole.machine.gpus[0].link;
    assert_eq!((link.name.as_str(), link.source), ("PCIe 5 x16", LinkSource::Recorded));
    assert!(whole.findings.iter().all(|finding| finding.id != FindingId::NarrowLink));
    let state = whole.limitations.iter().find(|limitation| limitation.id == LimitationId::LinkState).unwrap();
    assert_eq!(state.text, "Whether the process ran on the wrong NUMA node is not in a recording.");

    let half = of(5, 8);
    let link = &half.machine.gpus[0].link;
    assert_eq!((link.name.as_str(), link.source), ("PCIe 5 x8", LinkSource::Recorded));
    let finding = half.findings.iter().find(|finding| finding.id == FindingId::NarrowLink).unwrap();
    assert_eq!(finding.title, "The link ran at PCIe 5 x8, and could be PCIe 5 x16");
    let exposed = finding.evidence["exposed_ms_per_step"].as_f64().unwrap();
    assert!((finding.saves_ms_per_step.high - exposed / 2.0).abs() < 1e-9);

    let given = Machine::named("pcie5x16").unwrap();
    let told = diagnose(&recorded_on(5, 8), &Source::named("t"), &given, &Options::default());
    assert_eq!(told.machine.gpus[0].link.source, LinkSource::Given);
    assert!(told.findings.iter().all(|finding| finding.id != FindingId::NarrowLink));
}

/// Its survey used to name settings of torch.profiler, which `busbound record` does not have.
#[test]
fn what_a_recording_lacks_is_had_by_recording_otherwise() {
    let survey = busbound_diagnosis::survey(&recorded_on(5, 16), &Source::named("run.bbt"));
    let remedies: Vec<_> = survey.missing.iter().map(|missing| (missing.id, missing.remedy)).collect();
    assert_eq!(
        remedies.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [LimitationId::Operators, LimitationId::Stacks, LimitationId::Memory]
    );
    assert!(remedies[..2].iter().all(|(_, remedy)| remedy.contains("torch.cuda.nvtx.range")));
    assert!(remedies.iter().all(|(_, remedy)| !remedy.contains("ProfilerActivity")), "{remedies:?}");
}

/// The first line laid all copies to the largest group: here a sixth of the waiting is for pinned ones.
#[test]
fn the_first_line_lays_to_a_group_of_copies_what_is_its_own() {
    let trace = recorded_on(5, 16);
    let diagnosis = diagnose(&trace, &Source::named("t"), &Machine::default(), &Options::default());
    assert_eq!(
        diagnosis.verdict.statement,
        "Transfer-bound: 78 % of each 21.5 ms step waits for copies over the bus, 65 % for host-to-device copies from pageable memory."
    );
}

/// Copies that do not tell their direction were said to be the GPU's own work, within the device.
#[test]
fn a_copy_of_unknown_direction_is_neither_within_the_device_nor_on_the_bus() {
    let run = |name: &str| {
        let mut events = Vec::new();
        for i in 0..4 {
            let (at, id) = (i * 10_000, 2 * i + 1);
            events.extend([
                step(i, at, 9_990),
                call("cudaMemcpyAsync", id, at + 1, 5),
                copy(name, 7, id, at + 10, 6_000, 100_000_000),
                call("cudaLaunchKernel", id + 1, at + 8, 5),
                kernel("k", 7, id + 1, at + 6_010, 3_990),
            ]);
        }
        diagnosis(&events, "NVIDIA H200")
    };
    let known = run("Memcpy DtoD (Device -> Device)");
    let within = |run: &Diagnosis| {
        run.breakdown.sum_of(|part| part == Part::Copy(CopyRoute::WithinDevice)).as_millis()
    };
    assert_eq!((known.verdict.bound, within(&known)), (Bound::Compute, 24.0));
    assert_eq!(known.time.exposed_unplaced_copy_ms, 0.0);

    let unknown = run("Memcpy");
    assert_eq!((unknown.time.copy_ms, unknown.time.exposed_copy_ms), (24.0, 24.0));
    assert_eq!((unknown.time.exposed_unplaced_copy_ms, within(&unknown)), (24.0, 0.0));
    assert_eq!(unknown.verdict.bound, Bound::Unknown);
    assert_eq!(
        unknown.verdict.statement,
        "Not told: 60 % of each 10.0 ms step the GPU copies, and this trace does not tell whether over the bus; \
         next, 40 % is spent in compute kernels."
    );
    let said =
        unknown.limitations.iter().find(|limitation| limitation.id == LimitationId::CopyDirection).unwrap();
    assert_eq!(
        said.text,
        "4 copies (24.0 ms) have no known direction; that prevents telling whether they crossed the bus."
    );
    assert!(known.limitations.iter().all(|limitation| limitation.id != LimitationId::CopyDirection));
    // From host to host is known, and is not within the device either.
    assert_eq!(within(&run("Memcpy HtoH (Pinned -> Pinned)")), 0.0);
}

/// Ten steps whose second kernel lost its launch call were counted as fifteen.
#[test]
fn work_without_a_recorded_launch_makes_no_more_steps() {
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
    assert_eq!(whole.window.rounds, 10.0);
    // The first, the middle and the last of each step: before, within and after the work of which launches are known.
    for lost in [|k| k == 0, |k| k == 1, |k| k == 2, |k| k != 1] {
        let diagnosis = run(lost);
        assert_eq!(diagnosis.window.steps.as_ref().unwrap().count, 10);
        assert_eq!(diagnosis.window.rounds, 10.0);
        assert_eq!(diagnosis.time.compute_ms, whole.time.compute_ms);
    }
}

/// The median of four was the third, and so were the other quantiles whole values of the list.
#[test]
fn quantiles_of_an_even_number_lie_between_two_of_them() {
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
    assert_eq!((of_all.min_ms, of_all.p50_ms, of_all.max_ms), (9.99, 12.0, 14.0));
    let rates = diagnosis.copies[0].gbps.unwrap();
    assert_eq!((rates.p10, rates.p50, rates.p90), (10.3, 12.0, 13.7));
    assert_eq!(diagnosis.launches.median_kernel_us, 10_990.0);
}

/// Copies between GPUs counted as copies over the bus in the times and the verdict, but in no rate and no finding.
#[test]
fn a_peer_copy_is_exposed_and_crosses_no_host_link() {
    let events = [
        kernel("k", 7, 1, 0, 1_000),
        copy(H2D, 8, 2, 1_000, 2_000, 1_000_000),
        // One millisecond of it runs while a bus copy does.
        copy("Memcpy PtoP (Device -> Device)", 9, 3, 2_000, 4_000, 1_000_000),
        kernel("k", 7, 4, 6_000, 2_000),
    ];
    let run = diagnosis(&events, "NVIDIA H200");
    let figures = [FigureId::ExposedCopyMs, FigureId::ExposedBusCopyMs, FigureId::ExposedPeerCopyMs];
    assert_eq!(figures.map(|figure| figure.of(&run)), [Some(5.0), Some(2.0), Some(3.0)]);
    assert_eq!((run.time.exposed_copy_ms, run.time.exposed_bus_copy_ms), (5.0, 2.0));
    assert_eq!((run.verdict.bound, run.verdict.share), (Bound::Transfer, 0.625));
    assert_eq!(
        run.verdict.statement,
        "Transfer-bound: 62 % of the 8.00 ms trace waits for copies over the bus and between GPUs, 50 % for copies between GPUs."
    );
}

/// The report divided bytes by the durations of copies added up, the gate by the time at which any ran. Two copies at once
/// share the link: its rate is that of both together.
#[test]
fn copies_at_once_have_the_rate_of_the_link_in_report_and_gate() {
    let events = [
        copy(H2D, 8, 1, 0, 1_000, 25_000_000),
        copy(H2D, 9, 2, 0, 1_000, 25_000_000),
        kernel("k", 7, 3, 1_000, 1_000),
    ];
    let run = diagnosis(&events, "NVIDIA H200");
    let group = &run.copies[0];
    let rates = group.gbps.unwrap();
    assert_eq!((rates.weighted, rates.p50), (50.0, 25.0));
    assert_eq!(group.utilization, Some(50.0 / run.machine.gpus[0].link.peak_gbps));
    assert_eq!(FigureId::H2dGbps.of(&run), Some(50.0));
    // A copy that does not record its bytes takes no part in the rate.
    let mut unsized_copy = copy(H2D, 8, 4, 2_000, 1_000, 0);
    unsized_copy["args"].as_object_mut().unwrap().remove("bytes");
    let run = diagnosis(&[events[0].clone(), unsized_copy, events[2].clone()], "NVIDIA H200");
    assert_eq!((run.copies[0].gbps.unwrap().weighted, FigureId::H2dGbps.of(&run)), (25.0, Some(25.0)));
}

/// A comparison said that its parts add up to the step, and had no part for memsets.
#[test]
fn the_parts_of_a_comparison_sum_to_the_span() {
    let memset = json!({"ph":"X","cat":"gpu_memset","name":"Memset (Device)","pid":0,"tid":7,"ts":1_000,"dur":3_000,
                        "args":{"device":0,"stream":7,"correlation":2,"bytes":1_000_000}});
    let events = [kernel("k", 7, 1, 0, 1_000), memset, kernel("k", 7, 3, 4_000, 2_000)];
    let run = diagnosis(&events, "NVIDIA H200");
    let compared = compare(&[run.clone(), run.clone()], None);
    let value =
        |label: &str| compared.figures.iter().find(|figure| figure.name == label).map(|f| f.values[0]);
    assert_eq!((value("compute"), value("memset")), (Some(3.0), Some(3.0)));
    let parts: f64 = FigureId::PARTS.iter().filter_map(|part| value(part.label())).sum();
    assert_eq!(Some(parts), FigureId::SpanMs.of(&run));
}

/// The bars of a run on two GPUs were as long as both together, and the step half as long.
#[test]
fn the_parts_of_a_step_on_two_gpus_are_their_mean() {
    let on = |device: u32, id: u32, dur: u32| {
        json!({"ph":"X","cat":"kernel","name":"k","pid":device,"tid":7,"ts":0,"dur":dur,
               "args":{"device":device,"stream":7,"correlation":id}})
    };
    let run = diagnosis(&[on(0, 1, 2_000), on(1, 2, 4_000)], "NVIDIA H200");
    assert_eq!(run.time.compute_ms, 6.0);
    for figure in [FigureId::ComputeMs, FigureId::SpanMs, FigureId::JudgedStepP50] {
        assert_eq!(figure.of(&run), Some(3.0), "{figure}");
    }
}

/// Copies of every device were judged by the link of the first.
#[test]
fn copies_are_judged_by_the_link_of_their_own_device() {
    let run = |devices: &[u32]| {
        let copies = devices.iter().flat_map(|&device| {
            (0..10).map(move |i| {
                json!({"ph":"X","cat":"gpu_memcpy","name":H2D,"pid":device,"tid":7,"ts":5000 * i,"dur":4000,
                       "args":{"device":device,"stream":7,"bytes":100_000_000}})
            })
        });
        let gpus = json!([{"id": 0, "name": "NVIDIA H100 PCIe"}, {"id": 1, "name": "NVIDIA A100-PCIE-40GB"}]);
        let events: Vec<Value> = copies.collect();
        let trace = json!({"deviceProperties": gpus, "traceEvents": events}).to_string();
        let trace = read(trace.as_bytes(), Path::new("t"), &ReadOptions::default()).unwrap();
        let run = diagnose(&trace, &Source::named("t"), &Machine::default(), &Options::default());
        (run.copies[0].utilization.unwrap(), run.copies[0].of_expected.unwrap())
    };
    let (newer, older, both) = (run(&[0]), run(&[1]), run(&[0, 1]));
    assert!(older.0 > 1.5 * newer.0 && older.1 > 1.5 * newer.1, "{newer:?} {older:?}");
    assert!((both.0 - 0.5 * (newer.0 + older.0)).abs() < 1e-9, "{both:?}");
    assert!((both.1 - 0.5 * (newer.1 + older.1)).abs() < 1e-9, "{both:?}");
}
