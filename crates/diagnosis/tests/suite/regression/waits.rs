//! Is idle time attributed to the right cause?

use busbound_diagnosis::{Bound, FindingId};
use serde_json::json;

use super::events::{H2D, call, check_words, copy, diagnosis, kernel, step};

#[test]
fn unexplained_idle_time_is_reported() {
    let events = [kernel("k", 7, 1, 0, 1000), kernel("k", 7, 2, 2000, 1000)];
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    check_words(&diagnosis);
    assert!(
        diagnosis.verdict.statement.contains("cause is not visible in this trace"),
        "{:?}",
        diagnosis.verdict
    );
}

#[test]
fn a_gap_before_an_early_queued_copy_is_not_attributed_to_the_host() {
    let mut events = Vec::new();
    for i in 0..4 {
        let at = i * 5000;
        events.push(step(i, at, 4900));
        events.push(call("cudaLaunchKernel", 10 + i, at + 10, 5));
        events.push(call("cudaMemcpyAsync", 20 + i, at + 20, 5));
        events.push(kernel("k", 7, 10 + i, at + 100, 1000));
        // The copy waits for something on the GPU that is not visible in the trace.
        events.push(copy(H2D, 9, 20 + i, at + 3100, 1450, 80_000_000));
    }
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    assert_ne!(diagnosis.verdict.bound, Bound::Launch, "{}", diagnosis.verdict.statement);
    assert!(diagnosis.findings.iter().all(|finding| finding.id != FindingId::LaunchBound));
}

#[test]
fn idle_time_after_the_last_sync_is_not_attributed_to_an_item_call() {
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

/// A wait of milliseconds that ended some microseconds after a copy was classified as a gap between kernels, and so was
/// an unexplained wait.
#[test]
fn a_long_wait_is_not_a_gap_between_kernels() {
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
    assert!(share(&path, PathClass::KernelGap) < 0.1, "{:?}", path.classes);
}
