//! Are the direction, rate and link of copies correct?

use std::path::Path;

use busbound_diagnosis::{
    Bound, CopyRoute, Diagnosis, FigureId, FindingId, LimitationId, Options, Part, Source, diagnose,
};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, read};
use serde_json::{Value, json};

use super::events::{H2D, call, copy, diagnosis, kernel, step};

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
fn a_superchip_uses_its_own_link_and_a_wrong_link_is_reported() {
    let events: Vec<_> = (0..6).map(|i| copy(H2D, 9, i, i * 1100, 1000, 380_000_000)).collect();
    let right = diagnosis(&events, "NVIDIA GH200 480GB");
    assert!(right.copies[0].utilization.unwrap() < 1.0);
    let wrong = diagnosis(&events, "NVIDIA H100 PCIe");
    assert!(wrong.limitations.iter().any(|limitation| limitation.id == LimitationId::LinkWrong));
    assert!(wrong.findings.iter().all(|finding| finding.id != FindingId::BandwidthDeficit));
}

#[test]
fn a_tiny_slow_copy_is_not_classified_as_a_bus_copy() {
    let event = json!({"ph":"X","cat":"cpu_op","name":"aten::copy_","pid":1,"tid":1,"ts":1,"dur":4940,
        "args":{"Input Dims":[[246],[246],[]],"Input type":["float","float","Scalar"],"Concrete Inputs":["","","False"]}});
    let diagnosis = diagnosis(&[event], "NVIDIA H200");
    assert_eq!(diagnosis.cpu_copies.len(), 1);
    assert_eq!(diagnosis.cpu_copies[0].class, busbound_diagnosis::CpuCopyClass::Undecided);
}

/// Copies without a recorded direction were counted as D2D copies within the GPU.
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
        "Inconclusive: 60% of each 10.0 ms step is spent in copies that may or may not have crossed the bus; \
         the next largest part, 40%, is spent in compute kernels."
    );
    let limit =
        unknown.limitations.iter().find(|limitation| limitation.id == LimitationId::CopyDirection).unwrap();
    assert_eq!(
        limit.text,
        "4 copies (24.0 ms) have no known direction; this prevents knowing whether they crossed the bus."
    );
    assert!(known.limitations.iter().all(|limitation| limitation.id != LimitationId::CopyDirection));
    // The direction of an HtoH copy is known, and it is not a D2D copy either.
    assert_eq!(within(&run("Memcpy HtoH (Pinned -> Pinned)")), 0.0);
}

/// Copies between GPUs counted as bus copies in the times and the verdict, but not in any rate or finding.
#[test]
fn a_peer_copy_is_exposed_and_crosses_no_host_link() {
    let events = [
        kernel("k", 7, 1, 0, 1_000),
        copy(H2D, 8, 2, 1_000, 2_000, 1_000_000),
        // 1 ms of it overlaps with a bus copy.
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
        "Transfer-bound: 62% of the 8.00 ms trace waits for copies over the bus and between GPUs, mostly copies between GPUs."
    );
}

/// The report divided bytes by the sum of copy durations, the gate by the time in which any copy ran. Two concurrent copies
/// share the link: its rate is the combined rate of both.
#[test]
fn concurrent_copies_have_the_rate_of_the_link_in_report_and_gate() {
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
    // A copy without a recorded size does not count in the rate.
    let mut unsized_copy = copy(H2D, 8, 4, 2_000, 1_000, 0);
    unsized_copy["args"].as_object_mut().unwrap().remove("bytes");
    let run = diagnosis(&[events[0].clone(), unsized_copy, events[2].clone()], "NVIDIA H200");
    assert_eq!((run.copies[0].gbps.unwrap().weighted, FigureId::H2dGbps.of(&run)), (25.0, Some(25.0)));
}

/// Copies of every device were compared with the link of the first device.
#[test]
fn copies_are_compared_with_the_link_of_their_own_device() {
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
