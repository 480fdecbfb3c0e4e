//! Does an XLA profile get the same answer as the same run in another format?

use std::path::Path;

use busbound_diagnosis::{Bound, Options, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, open};

#[test]
fn steps_that_wait_for_pageable_copies_are_transfer_bound() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/xplane/pageable.xplane.pb");
    let trace = open(&path, &ReadOptions::default()).unwrap();
    let source = Source::named("pageable.xplane.pb");
    let diagnosis = diagnose(&trace, &source, &Machine::named("h200").unwrap(), &Options::default());
    assert_eq!(diagnosis.verdict.bound, Bound::Transfer);
    let found: Vec<_> = diagnosis.findings.iter().map(|finding| format!("{:?}", finding.id)).collect();
    assert!(found[0].to_lowercase().contains("pageable"), "{found:?}");
    let steps = diagnosis.window.steps.unwrap();
    assert!((steps.p50_ms - 2.0).abs() < 0.02, "{}", steps.p50_ms);
}
