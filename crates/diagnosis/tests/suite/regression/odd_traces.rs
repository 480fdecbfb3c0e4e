//! Are incomplete traces and extreme values handled?

use busbound_diagnosis::{Bound, FindingId, LimitationId};
use serde_json::json;

use super::events::{H2D, check_words, copy, diagnosis, kernel};

#[test]
fn events_with_zero_duration_get_a_verdict_and_no_finding() {
    for events in [vec![kernel("k", 7, 1, 5, 0)], vec![copy(H2D, 7, 1, 5, 0, 100)]] {
        let diagnosis = diagnosis(&events, "NVIDIA H200");
        check_words(&diagnosis);
        assert_eq!(diagnosis.verdict.bound, Bound::Unknown);
        assert!(diagnosis.findings.is_empty(), "{:?}", diagnosis.findings);
    }
}

#[test]
fn a_trace_without_kernels_needs_no_infinite_bandwidth() {
    let events: Vec<_> = (0..6).map(|i| copy(H2D, 9, i, i * 2100, 2000, 100_000_000)).collect();
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    check_words(&diagnosis);
    assert!(diagnosis.findings.iter().all(|finding| finding.id != FindingId::BandwidthDeficit));
    assert!(diagnosis.limitations.iter().any(|limitation| limitation.id == LimitationId::NoKernels));
}

/// One event at time zero and others from today: ten times the span overflowed 64 bits.
#[test]
fn events_decades_apart_do_not_panic() {
    let events = [
        kernel("k", 1, 1, 0, 1),
        json!({"ph":"X","cat":"kernel","name":"k","pid":0,"tid":1,
        "ts":1_700_000_000_000_000i64,"dur":1,"args":{"device":0,"stream":1,"correlation":2}}),
    ];
    let diagnosis = diagnosis(&events, "NVIDIA H200");
    check_words(&diagnosis);
    assert!(diagnosis.time.span_ms > 1.6e12);
}
