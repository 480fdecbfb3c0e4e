//! Every wrong sentence found in a diagnosis or comparison, by what was wrong.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::path::Path;

use busbound_diagnosis::{Bound, Diagnosis, Labels, Options, Source, compare, diagnose};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, read};
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
    assert!(diagnosis.findings.iter().all(|finding| finding.id != "launch_bound"));
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
        diagnosis.findings.iter().all(|finding| finding.id != "sync_in_loop"),
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
    assert!(wrong.limitations.iter().any(|limitation| limitation.id == "link_wrong"));
    assert!(wrong.findings.iter().all(|finding| finding.id != "bandwidth_deficit"));
}

#[test]
fn a_trace_without_kernels_needs_no_infinite_bandwidth() {
    let events: Vec<_> = (0..6).map(|i| copy(H2D, 9, i, i * 2100, 2000, 100_000_000)).collect();
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    check_words(&diagnosis);
    assert!(diagnosis.findings.iter().all(|finding| finding.id != "bandwidth_deficit"));
    assert!(diagnosis.limitations.iter().any(|limitation| limitation.id == "no_kernels"));
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
