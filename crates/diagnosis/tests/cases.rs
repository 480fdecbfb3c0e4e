//! Small traces that isolate one mistake each: fixtures/cases.

#![expect(clippy::unwrap_used, reason = "a test should panic at the first error")]

use std::path::Path;

use busbound_diagnosis::{Bound, Diagnosis, LimitationId, Options, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{Direction, ReadOptions, open};

fn diagnosed(name: &str) -> Diagnosis {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cases").join(name);
    let trace = open(&path, &ReadOptions::default()).unwrap();
    diagnose(&trace, &Source::named(name), &Machine::default(), &Options::default())
}

/// Launches without kernels: the profiler dropped records, and the GPU only looks idle. This once had a confident verdict.
#[test]
fn dropped_kernel_records_leave_no_verdict() {
    let run = diagnosed("dropped_records.json.gz");
    assert_eq!(run.verdict.bound, Bound::Unknown);
    let statement = &run.verdict.statement;
    assert!(statement.starts_with("Inconclusive: 398 of 997 kernel launches have no kernel"), "{statement}");
    assert!(run.limitations.iter().any(|limitation| limitation.id == LimitationId::KernelRecords));
    assert!(run.prize.is_none());
}

/// Intel GPUs name copies by `M` (host memory) and `D` (device). Their direction was once unknown.
#[test]
fn copies_of_intel_gpus_have_a_direction() {
    let run = diagnosed("xpu_names.json.gz");
    assert!(run.copies.iter().all(|group| group.direction == Direction::DeviceToHost), "{:?}", run.copies);
    assert_eq!(run.verdict.bound, Bound::Transfer);
}
