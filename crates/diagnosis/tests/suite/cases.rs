//! Small traces that isolate one mistake each: fixtures/cases.

use std::path::Path;

use busbound_diagnosis::{
    Bound, Diagnosis, FindingId, GapCause, LimitationId, Options, Resource, Source, diagnose,
};
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
    assert!(statement.starts_with("Inconclusive: 398 of 998 kernel launches have no kernel"), "{statement}");
    assert!(run.limitations.iter().any(|limitation| limitation.id == LimitationId::KernelRecords));
    assert!(run.prize.is_none());
    // Lost kernels look like idle time: "launch overhead: saves up to 47 ms" once came from them.
    assert!(run.findings.iter().all(|finding| finding.id != FindingId::LaunchBound), "{:?}", run.findings);
}

/// Intel GPUs name copies by `M` (host memory) and `D` (device). Their direction was once unknown.
#[test]
fn copies_of_intel_gpus_have_a_direction() {
    let run = diagnosed("xpu_names.json.gz");
    assert!(run.copies.iter().all(|group| group.direction == Direction::DeviceToHost), "{:?}", run.copies);
    assert_eq!(run.verdict.bound, Bound::Transfer);
}

/// Copies are 0.3% of this run; the rest is a sort on the CPU after each copy call. This was once transfer-bound.
#[test]
fn host_work_after_a_copy_call_is_host_work() {
    let run = diagnosed("host_work.json.gz");
    assert_eq!(run.verdict.bound, Bound::Host);
    assert!(run.verdict.statement.contains("aten::sort"), "{}", run.verdict.statement);
    let copies = run.bounds.iter().find(|bound| bound.resource == Resource::D2h).unwrap();
    assert!(copies.step_if_free_ms > 0.98 * run.window.span_ms, "{copies:?}");
    assert_eq!(run.verdict.headroom.as_ref().unwrap().resource, Bound::Host);
    // It once had a verdict that named the sort, and no finding.
    assert_eq!(run.findings[0].id, FindingId::CpuOperators);
    assert!(run.findings[0].fix.contains("aten::sort on the GPU"), "{}", run.findings[0].fix);
}

/// A kernel is launched 100 ms before it begins. This was once launch-bound.
#[test]
fn work_that_was_launched_in_time_does_not_wait_for_a_launch() {
    let run = diagnosed("queued.json.gz");
    assert_eq!(run.verdict.bound, Bound::Unknown);
    let queued = run.idle.iter().find(|idle| idle.cause == GapCause::Queued).unwrap();
    assert!(queued.ms > 99.0, "{queued:?}");
    assert!(run.idle.iter().all(|idle| idle.cause != GapCause::Launch || idle.ms < 0.1));
}

/// Ten of 28 steps wait 550 ms for input: 90% of the time is no outlier. These steps were once left out.
#[test]
fn outliers_that_are_most_of_the_time_are_what_the_run_is_about() {
    let run = diagnosed("many_outliers.json.gz");
    assert_eq!(run.verdict.bound, Bound::Input);
    let steps = run.window.steps.as_ref().unwrap();
    assert_eq!((steps.count, steps.outliers_dropped), (28, 0));
    assert_eq!(run.findings[0].id, FindingId::InputWait);
}

/// Copies keep the link busy nearly all the time, and kernels run under them. This was once mixed or compute-bound.
#[test]
fn a_saturated_link_sets_the_pace_although_kernels_run_under_the_copies() {
    let run = diagnosed("saturated_link.json.gz");
    assert_eq!(run.verdict.bound, Bound::Transfer);
    let headroom = run.verdict.headroom.as_ref().unwrap();
    assert!((70.0..85.0).contains(&headroom.step_if_free_ms), "{headroom:?}");
    assert_eq!(headroom.next_bound, Some(Bound::Compute));
    // The link needs 96.4 of the 100 ms: no prefetch saves more than the rest.
    assert!(
        run.findings
            .iter()
            .all(|finding| finding.saves_ms_per_step.high < 4.0 || finding.id == FindingId::LinkSaturated)
    );
}

/// 50,000 kernels in 0.4 s whose launches repeat only in part. The answer was once about 668 µs.
#[test]
fn an_iteration_that_hardly_repeats_does_not_hide_the_rest_of_the_trace() {
    let run = diagnosed("short_window.json.gz");
    assert!((395.0..405.0).contains(&run.window.span_ms), "{}", run.window.span_ms);
    assert_eq!(run.verdict.bound, Bound::Launch);
}
