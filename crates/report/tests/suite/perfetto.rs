//! The Perfetto export: the whole run, so that busbound reads the same results from it, and the derived tracks.

use std::collections::BTreeSet;
use std::path::Path;

use busbound_diagnosis::{Detail, Drawn, Options, Source, diagnose_and_draw};
use busbound_machine::Machine;
use busbound_report::{Format, Report, Style, Timeline};
use busbound_trace::{EventKind, ReadOptions, Trace, open, read};
use serde_json::Value;

use crate::common::paths::fixture_path;

fn drawn(trace: &Trace) -> Drawn {
    diagnose_and_draw(
        trace,
        &Source::named("run.json"),
        &Machine::default(),
        &Options::default(),
        &[],
        Detail::All,
    )
}

fn exported(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::new();
    let timeline = Timeline { trace, drawn: Some(&drawn(trace)) };
    timeline.write(Format::Perfetto, &Style::default(), &mut out).unwrap();
    out
}

fn fixture(name: &str) -> Trace {
    open(&fixture_path(name), &ReadOptions::default()).unwrap()
}

const TRACES: [&str; 9] = [
    "off_block_pageable_c4.json.gz",
    "off_layerwise_d2_c4.json.gz",
    "off_layerwise_d2_c4_syncevents.json.gz",
    "train_pageable.json.gz",
    "launch_bound.json.gz",
    "graph_replay.json.gz",
    "swap_duplex.json.gz",
    "pipe_serial.json.gz",
    "hostile/cut_in_gpu.json.gz",
];

#[test]
fn an_exported_run_gives_the_same_results_when_read_back() {
    for name in TRACES {
        let trace = fixture(name);
        let bytes = exported(&trace);
        let again = read(&bytes[..], Path::new("again.json"), &ReadOptions::default()).unwrap();
        let (before, after) = (drawn(&trace).diagnosis, drawn(&again).diagnosis);
        assert_eq!(before.time.busy_ms, after.time.busy_ms, "{name}");
        assert_eq!(before.overlap, after.overlap, "{name}");
        assert_eq!(before.copies, after.copies, "{name}");
        // The export of a truncated file is complete, so these differ.
        if before.source.complete {
            assert_eq!(before.time, after.time, "{name}");
            assert_eq!(before.idle, after.idle, "{name}");
            assert_eq!(before.verdict.statement, after.verdict.statement, "{name}");
            assert_eq!(before.window.steps, after.window.steps, "{name}");
        }
    }
}

/// A recording counts from 1970: as a floating-point number of microseconds, that is exact to a quarter of one. Perfetto
/// then dropped calls that seemed to overlap.
#[test]
fn times_since_1970_are_written_so_that_viewers_keep_every_nanosecond() {
    let trace = fixture("recorded/offload.bbt");
    let first = trace.events().map(|event| event.start().as_nanos()).min().unwrap();
    let json: Value = serde_json::from_slice(&exported(&trace)).unwrap();
    let written = json["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let least = written.filter_map(|event| event["ts"].as_f64()).fold(f64::INFINITY, f64::min);
    assert_eq!(least, (first % 1_000_000_000) as f64 / 1e3);
    let zero = first - first % 1_000_000_000;
    let base = trace.origin().base_time_ns.map(|base| base + zero);
    assert_eq!(json["baseTimeNanoseconds"].as_i64(), base);
}

#[test]
fn findings_are_on_separate_tracks() {
    let trace = fixture("off_block_pageable_c4.json.gz");
    let drawn = drawn(&trace);
    let json: Value = serde_json::from_slice(&exported(&trace)).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    // 48 consecutive copies, some without a gap: the rate rises and falls for each.
    let counters = of("C");
    assert!(counters.len() > 48 && counters.len() <= 96, "{}", counters.len());
    let highest = counters.iter().filter_map(|event| event["args"]["GB/s"].as_f64()).fold(0.0, f64::max);
    assert!(highest > 9.0 && highest < 11.0, "{highest}");
    assert_eq!(counters.last().unwrap()["args"]["GB/s"], 0.0);
    let named = |title: &str| of("X").into_iter().filter(|event| event["name"] == title).count();
    assert_eq!(named(&drawn.diagnosis.findings[0].title), drawn.picture.findings[0].len());
    assert!(named("host inside a copy call") > 10);
    let processes: BTreeSet<&str> = events
        .iter()
        .filter(|event| event["name"] == "process_name")
        .filter_map(|event| event["args"]["name"].as_str())
        .filter(|name| name.starts_with("busbound: "))
        .collect();
    assert_eq!(processes.len(), 3, "{processes:?}");
}

/// Perfetto reads ids over 32 bits as 0, and expects a different id for each arrow.
#[test]
fn ids_fit_and_every_arrow_has_its_own() {
    for name in TRACES {
        let trace = fixture(name);
        let json: Value = serde_json::from_slice(&exported(&trace)).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        for event in events {
            for id in ["pid", "tid"] {
                let fits = event[id].is_null() || event[id].as_u64().is_some_and(|id| id < 1 << 31);
                assert!(fits, "{name}: {event}");
            }
        }
        let ends = |phase: &str| -> Vec<u64> {
            let of = events.iter().filter(|event| event["ph"] == phase);
            of.map(|event| event["id"].as_u64().unwrap()).collect()
        };
        let (from, to) = (ends("s"), ends("f"));
        assert_eq!(from, to, "{name}");
        assert_eq!(from.iter().collect::<BTreeSet<_>>().len(), from.len(), "{name}");
        let calls: BTreeSet<u64> = trace
            .events()
            .filter(|event| matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall))
            .filter_map(|event| event.correlation())
            .collect();
        let work = trace.events().filter(|event| event.kind().is_gpu_work());
        let joined = work.filter(|work| work.correlation().is_some_and(|id| calls.contains(&id))).count();
        assert_eq!(from.len(), joined, "{name}");
    }
}

/// Viewers drop slices that partially overlap on one track.
#[test]
fn derived_slices_do_not_overlap() {
    for name in TRACES {
        let json: Value = serde_json::from_slice(&exported(&fixture(name))).unwrap();
        let events = json["traceEvents"].as_array().unwrap().iter();
        let mut slices: Vec<(i64, i64, f64, f64)> = events
            .filter(|event| event["cat"] == "busbound")
            .map(|event| {
                let number = |member: &str| event[member].as_f64().unwrap();
                (
                    event["pid"].as_i64().unwrap(),
                    event["tid"].as_i64().unwrap(),
                    number("ts"),
                    number("ts") + number("dur"),
                )
            })
            .collect();
        slices.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        for pair in slices.windows(2) {
            let same_track = (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1);
            assert!(!same_track || pair[0].3 <= pair[1].2 + 1e-3, "{name}: {pair:?}");
        }
    }
}
