//! The number of threads only changes how long reading takes.

use std::io::Write as _;
use std::path::Path;

use busbound_trace::{ReadOptions, Trace, read};

/// The complete contents of a trace, as text.
fn dump(trace: &Trace) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for event in trace.events() {
        let _ = writeln!(
            out,
            "{event:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            event.correlation(),
            event.external_id(),
            event.transfer(),
            event.launch(),
            event.synchronization(),
            event.copy_operator(),
            event.collective(),
        );
    }
    let _ =
        writeln!(out, "{:?}\n{:?}\n{:?}\n{:?}", trace.links(), trace.memory(), trace.origin(), trace.stats());
    let _ = writeln!(out, "{:?}", trace.names());
    out
}

fn check(json: &[u8], what: &str) {
    let on = |threads| {
        let options = ReadOptions::default().threads(threads);
        dump(&read(json, Path::new("t"), &options).unwrap())
    };
    let one = on(1);
    for threads in [2, 3, 5] {
        let several = on(threads);
        if let Some((a, b)) = one.lines().zip(several.lines()).find(|(a, b)| a != b) {
            panic!("{what} on {threads} threads:\n{a}\n{b}");
        }
        assert_eq!(one.len(), several.len(), "{what} on {threads} threads");
    }
}

/// Several megabytes, so that there are several segments; names contain what looks like events.
fn large(tricky: bool, bare: bool) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(if bare { b"[" } else { b"{\"schemaVersion\": 1,\n\"traceEvents\": [\n" });
    for i in 0..40_000 {
        let name = if tricky { r#", {\"ph\": \"X\", [, {"# } else { "aten::mm" };
        // An unescaped look-alike within a string is only valid JSON if its quotes are escaped, so a segment can only
        // end there because of its comma and brace; long runs make that likely.
        let padding = if tricky && i % 7000 == 0 { ", {  ".repeat(300_000) } else { String::new() };
        let _ = write!(
            out,
            "{{\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{name}{padding}\", \"pid\": 0, \"tid\": {},\n    \
             \"ts\": {i}.5, \"dur\": 3,\n    \"args\": {{\"correlation\": {i}, \"device\": 0, \"stream\": {}}}\n  }},\n",
            i % 5,
            i % 5,
        );
    }
    out.extend_from_slice(if bare { b"{}]" } else { b"{}], \"traceName\": \"t\"}" });
    out
}

#[test]
fn complete_files() {
    for (tricky, bare) in [(false, false), (false, true), (true, false)] {
        check(&large(tricky, bare), &format!("tricky {tricky}, bare {bare}"));
    }
}

#[test]
fn damaged_files() {
    let mut json = large(false, false);
    for k in 1..60 {
        let at = json.len() * k / 60;
        json[at..at + 3].copy_from_slice(match k % 3 {
            0 => b"\"{[",
            1 => b"}}}",
            _ => b"\0\xff\\",
        });
    }
    check(&json, "damaged");
}

#[test]
fn an_event_longer_than_a_segment() {
    let mut json = br#"{"traceEvents": [{"ph":"X","ts":1,"dur":1,"name":"a","args":{"stack":""#.to_vec();
    json.extend(vec![b'x'; 5 << 20]);
    json.extend_from_slice(br#""}}, {"ph":"X","ts":2,"dur":1,"name":"b"}]}"#);
    let trace = read(&json[..], Path::new("t"), &ReadOptions::default()).unwrap();
    assert_eq!(trace.len(), 2);
    assert!(trace.stats().is_complete(), "{:?}", trace.stats().losses);
    check(&json, "long event");
}
