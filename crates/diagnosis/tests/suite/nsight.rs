//! Nsight exports through every pass: each GPU's own figures, and a comparison with torch.profiler's file.
//!
//! Expected numbers were computed from the files with Python's sqlite3.

use busbound_diagnosis::{FindingId, GapCause, LimitationId, Severity, compare};

use crate::common::{diagnosis_of, root};

#[test]
fn each_gpu_of_somebody_elses_run_has_its_own_figures() {
    let path = root().join("../shared/peers/nsys_ai/mfu_2gpu_before.sqlite");
    if !path.is_file() {
        eprintln!("skipped: {} is not there", path.display());
        return;
    }
    let run = diagnosis_of(&path);
    let nanos = |ms: f64| (ms * 1e6).round() as i64;
    let figures: Vec<_> = run
        .devices
        .iter()
        .map(|device| {
            let time = &device.time;
            (
                device.device,
                [time.span_ms, time.busy_ms, time.copy_ms, time.comm_ms, time.memset_ms].map(nanos),
            )
        })
        .collect();
    assert_eq!(
        figures,
        [
            (0, [299_848_812, 273_817_787, 2_844_479, 17_172_652, 109_824]),
            (1, [298_661_551, 267_275_916, 2_847_608, 8_229_100, 103_584]),
        ]
    );
}

#[test]
fn a_kineto_and_an_nsight_file_are_compared() {
    let before = diagnosis_of(&root().join("fixtures/off_block_pageable_c4.json.gz"));
    let after = diagnosis_of(&root().join("fixtures/nsight/off.sqlite"));
    assert_eq!([before.source.format, after.source.format], ["kineto-json", "nsys-sqlite"]);
    let comparison = compare(&[before, after], None);
    assert!(comparison.statement.starts_with("2.5x faster (274 ms → 111 ms)"), "{}", comparison.statement);
    assert_eq!(
        (comparison.stayed, comparison.appeared),
        // Copies of 12.1 ms cannot hide behind kernels of 6.7 ms: no deeper prefetch is recommended.
        (vec![FindingId::PageableCopies], vec![])
    );
}

/// Graphs recorded as a whole by a profiler that the driver did not notify: the GPU looked idle, and the run looked bound by its copies.
#[test]
fn graphs_that_ran_unseen_leave_no_verdict() {
    let whole = diagnosis_of(&root().join("fixtures/nsight/graphs_whole.sqlite"));
    assert_eq!(
        whole.verdict.statement,
        "Inconclusive: 10 of 10 CUDA graph launches left no GPU work in the trace; figures cover only the rest. For a verdict: nsys profile \
         --cuda-graph-trace=node …; it slows down graph launches."
    );
    assert!(whole.limitations.iter().any(|limitation| limitation.id == LimitationId::GraphWork));
    assert!(whole.findings.iter().all(|finding| finding.severity == Severity::Low));
    // Where a graph may have run, the host is not blamed for launching late.
    let idle = |cause| whole.idle.iter().find(|idle| idle.cause == cause).map_or(0.0, |idle| idle.ms);
    assert!(idle(GapCause::Launch) < 0.1 * idle(GapCause::Unexplained), "{:?}", whole.idle);
    // The same program recorded node by node: 1.37 ms of graphs per step, and 1.49 ms of copies.
    let nodes = diagnosis_of(&root().join("fixtures/nsight/graphs_nodes.sqlite"));
    assert!(
        nodes.verdict.statement.starts_with("Transfer-bound: 50% of each 2.98 ms step"),
        "{:?}",
        nodes.verdict
    );
    assert!((nodes.time.compute_ms / 4.0 - 1.38).abs() < 0.01, "{}", nodes.time.compute_ms);
    assert_eq!(nodes.launches.graph_launches, 8);
}
