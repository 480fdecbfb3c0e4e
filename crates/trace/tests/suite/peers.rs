//! Counts, sums, bytes and spans of third-party traces, compared with independently computed numbers.
//!
//! The traces are not part of the repository. They are expected in `../shared/peers` next to the checkout, or in
//! `BUSBOUND_PEERS`; without them this test is skipped with a message.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use busbound_trace::{EventKind, Nanos, ReadOptions, Trace, open};
use serde_json::Value;

fn peers() -> Option<PathBuf> {
    let next_to_checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/peers");
    let path =
        std::env::var_os("BUSBOUND_PEERS").map_or_else(|| PathBuf::from(next_to_checkout), PathBuf::from);
    path.join("expected").is_dir().then_some(path)
}

/// The classes in the expected files; `comm` is everything named nccl or rccl.
fn class(event: &busbound_trace::Event<'_>) -> Option<&'static str> {
    match event.kind() {
        EventKind::Copy => Some("memcpy"),
        EventKind::Memset => Some("memset"),
        EventKind::Kernel => {
            let name = event.name().to_ascii_lowercase();
            Some(if name.contains("nccl") || name.contains("rccl") { "comm" } else { "compute" })
        }
        _ => None,
    }
}

#[derive(Default)]
struct Sum {
    count: u64,
    time: Nanos,
    bytes: u64,
}

fn check(trace: &Trace, expected: &Value, file: &str) {
    let mut classes: BTreeMap<&str, Sum> = BTreeMap::new();
    let mut copies: BTreeMap<&str, Sum> = BTreeMap::new();
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    for event in trace.events() {
        let Some(class) = class(&event) else { continue };
        first = first.min(event.start().as_nanos());
        last = last.max(event.end().as_nanos());
        let sum = classes.entry(class).or_default();
        sum.count += 1;
        sum.time += event.duration();
        if class == "memcpy" {
            let sum = copies.entry(event.name()).or_default();
            sum.count += 1;
            sum.time += event.duration();
            sum.bytes += event.transfer().and_then(|t| t.bytes).map_or(0, |bytes| bytes.get());
        }
    }
    let micros = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as i64;
    for (class, count) in expected["counts"].as_object().unwrap() {
        if class == "memcpy_host" {
            continue;
        }
        let sum = &classes[class.as_str()];
        assert_eq!(sum.count, count.as_u64().unwrap(), "{file}: count of {class}");
        assert_eq!(sum.time.get(), micros(&expected["sum_us"][class]), "{file}: time of {class}");
    }
    // The expected span was computed with floats, whose resolution at 1.7e15 µs is 250 ns; ours is exact.
    let off = (last - first) - micros(&expected["span_us"]);
    assert!(off.abs() <= 250, "{file}: span differs by {off} ns");
    let listed = expected["memcpy"].as_object().unwrap();
    assert_eq!(copies.len(), listed.len(), "{file}: kinds of copies");
    for (name, facts) in listed {
        let sum = &copies[name.as_str()];
        assert_eq!(sum.count, facts["count"].as_u64().unwrap(), "{file}: {name}");
        assert_eq!(sum.bytes, facts["bytes"].as_u64().unwrap(), "{file}: bytes of {name}");
        assert_eq!(sum.time.get(), facts["dur_ns"].as_i64().unwrap(), "{file}: time of {name}");
    }
}

#[test]
fn third_party_traces_give_the_expected_numbers() {
    let Some(peers) = peers() else {
        eprintln!("skipped: no peer traces next to the checkout (set BUSBOUND_PEERS to their folder)");
        return;
    };
    let mut checked = 0;
    for entry in fs::read_dir(peers.join("expected")).unwrap() {
        let expected: Value = serde_json::from_slice(&fs::read(entry.unwrap().path()).unwrap()).unwrap();
        let file = expected["file"].as_str().unwrap();
        for threads in [1, 2] {
            let trace = open(&peers.join(file), &ReadOptions::default().threads(threads)).unwrap();
            assert!(trace.stats().is_complete(), "{file}: {:?}", trace.stats().losses);
            check(&trace, &expected, file);
        }
        checked += 1;
    }
    assert_eq!(checked, 14);
}
