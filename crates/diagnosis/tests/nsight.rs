//! Nsight exports through every pass: each GPU's own figures, and a comparison with torch.profiler's file.
//!
//! Expected numbers were computed from the files with Python's sqlite3.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod common;

use busbound_diagnosis::compare;

use common::{diagnosis_of, root};

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
    assert!(
        comparison.statement.starts_with("60 % faster: 274 ms → 111 ms a step"),
        "{}",
        comparison.statement
    );
    assert_eq!(
        (comparison.stayed, comparison.appeared),
        (vec!["pageable_copies".to_owned()], vec!["late_prefetch".to_owned()])
    );
}
