//! Damage is normal: every input with events gives them, and the losses are reported.

use std::io::Write;
use std::path::Path;

use busbound_trace::{EventKind, LossKind, OpenError, ReadOptions, Repair, Trace, read};

fn load(bytes: &[u8]) -> Trace {
    read(bytes, Path::new("input"), &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn refuse(bytes: &[u8]) -> OpenError {
    match read(bytes, Path::new("input"), &ReadOptions::default()) {
        Ok(trace) => panic!("read {} events", trace.len()),
        Err(error) => error,
    }
}

fn event(name: &str, ts: u32) -> String {
    format!(r#"{{"ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": 7, "ts": {ts}, "dur": 2}}"#)
}

fn trace_of(events: &[String]) -> String {
    format!("{{\"schemaVersion\": 1, \"traceEvents\": [\n{}\n]}}", events.join(",\n"))
}

fn names(trace: &Trace) -> Vec<&str> {
    trace.events().map(|event| event.name()).collect()
}

fn losses(trace: &Trace) -> Vec<LossKind> {
    trace.stats().losses.iter().map(|loss| loss.what).collect()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_bad_gzip_checksum_loses_nothing() {
    let mut file = gzipped(trace_of(&[event("a", 1), event("b", 2)]).as_bytes());
    let crc = file.len() - 6;
    file[crc] ^= 1;
    let trace = load(&file);
    assert_eq!(names(&trace), ["a", "b"]);
    assert_eq!(losses(&trace), [LossKind::GzipChecksum]);
}

#[test]
fn gzip_members_are_joined_even_within_an_event() {
    let json = trace_of(&[event("a", 1), event("b", 2), event("c", 3)]);
    let (head, tail) = json.as_bytes().split_at(json.len() / 2);
    let file = [gzipped(head), gzipped(tail)].concat();
    let trace = load(&file);
    assert_eq!(names(&trace), ["a", "b", "c"]);
    assert!(trace.stats().is_complete());
}

#[test]
fn nan_and_infinity_do_not_affect_other_events() {
    let json = r#"[{"ph":"X","name":"a","ts":1,"dur":NaN,"args":{"x":NaN,"y":-Infinity}},
                   {"ph":"X","name":"b","ts":2,"dur":Infinity},
                   {"ph":"X","name":"c","ts":NaN,"dur":1},
                   {"ph":"X","name":"d","ts":3,"dur":1}]"#;
    let trace = load(json.as_bytes());
    assert_eq!(names(&trace), ["a", "b", "d"]);
    assert_eq!(trace.stats().repairs[&Repair::UnusableDuration], 2);
    assert_eq!(losses(&trace), [LossKind::NotAnEvent]);
}

#[test]
fn control_characters_and_invalid_utf8_in_names_stay_visible() {
    let mut json =
        b"[{\"ph\":\"X\",\"name\":\"a\x01\n\x7fb\",\"ts\":1,\"dur\":1},{\"ph\":\"X\",\"name\":\"".to_vec();
    json.extend_from_slice(b"caf\xe9\",\"ts\":2,\"dur\":1}]");
    let trace = load(&json);
    assert_eq!(names(&trace), ["a\u{1}\n\u{7f}b", "caf\u{fffd}"]);
    assert_eq!(trace.stats().repairs[&Repair::InvalidUtf8], 1);
}

#[test]
fn unescaped_backslashes_stay_even_before_the_closing_quote() {
    let json = r#"[{"ph":"X","name":"C:\path\qux","ts":1,"dur":1},
                   {"ph":"X","name":"C:\traces\","pid":3,"ts":2,"dur":1},
                   {"ph":"X","name":"after","ts":3,"dur":1}]"#;
    let trace = load(json.as_bytes());
    assert_eq!(trace.len(), 3);
    assert_eq!(names(&trace)[0], r"C:\path\qux");
    assert_eq!(names(&trace)[2], "after");
    assert!(trace.stats().repairs[&Repair::StrayBackslash] >= 2);
    assert!(trace.stats().is_complete(), "{:?}", trace.stats().losses);
}

#[test]
fn brackets_inside_names_are_not_structure() {
    let trace = load(trace_of(&[event("a]}", 1), event("[{,", 2), event("}]}", 3)]).as_bytes());
    assert_eq!(names(&trace), ["a]}", "[{,", "}]}"]);
    assert!(trace.stats().is_complete());
}

#[test]
fn the_last_of_duplicate_keys_wins() {
    let json = r#"[{"ph":"X","cat":"kernel","name":"first","name":"last","ts":1,"ts":5,"dur":1,
                    "args":{"correlation":1,"correlation":9}}]"#;
    let trace = load(json.as_bytes());
    let event = trace.events().next().unwrap();
    assert_eq!((event.name(), event.start().as_nanos(), event.correlation()), ("last", 5000, Some(9)));
}

#[test]
fn trailing_commas_and_a_trailing_empty_object_are_accepted() {
    let json =
        r#"{"traceEvents": [{"ph":"X","name":"a","ts":1,"dur":1,"args":{"x":1,},},{},], "traceName": "t",}"#;
    let trace = load(json.as_bytes());
    assert_eq!(names(&trace), ["a"]);
    assert!(trace.stats().is_complete(), "{:?}", trace.stats().losses);
    assert_eq!(trace.stats().not_kept["empty objects"], 1);
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let json = [b"\xef\xbb\xbf", trace_of(&[event("a", 1)]).as_bytes()].concat();
    assert_eq!(names(&load(&json)), ["a"]);
}

#[test]
fn numbers_may_be_quoted() {
    let json = r#"[{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pinned -> Device)","ts":"12.5","dur":"3",
                    "args":{"device":"1","stream":"7","correlation":"42","bytes":"4096"}}]"#;
    let trace = load(json.as_bytes());
    let event = trace.events().next().unwrap();
    assert_eq!((event.start().as_nanos(), event.duration().get()), (12_500, 3_000));
    assert_eq!(event.correlation(), Some(42));
    assert_eq!(event.transfer().unwrap().bytes.unwrap().get(), 4096);
}

#[test]
fn odd_durations_become_zero_and_are_counted() {
    let json = r#"[{"ph":"X","name":"negative","ts":1,"dur":-5},
                   {"ph":"X","name":"missing","ts":2},
                   {"ph":"X","name":"overflowing","ts":3,"dur":1e30},
                   {"ph":"X","name":"fine","ts":4,"dur":0.001}]"#;
    let trace = load(json.as_bytes());
    let durations: Vec<_> = trace.events().map(|event| event.duration().get()).collect();
    assert_eq!(durations, [0, 0, 0, 1]);
    for repair in [Repair::NegativeDuration, Repair::MissingDuration, Repair::UnusableDuration] {
        assert_eq!(trace.stats().repairs[&repair], 1, "{repair:?}");
    }
}

#[test]
fn events_that_overlap_on_one_stream_are_all_kept_in_order() {
    let json = trace_of(&[event("late", 9), event("early", 1), event("inside", 2)]);
    let trace = load(json.as_bytes());
    let stream = trace.streams().next().unwrap();
    let order: Vec<_> = stream.events().map(|event| event.name()).collect();
    assert_eq!(order, ["early", "inside", "late"]);
}

#[test]
fn an_empty_file_is_an_error() {
    assert!(matches!(refuse(b""), OpenError::Empty { .. }));
    assert!(matches!(refuse(b" \n "), OpenError::NoEvents { .. }));
}

#[test]
fn metadata_alone_is_a_trace_without_events() {
    let whole = load(
        br#"{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": []}"#,
    );
    assert_eq!((whole.len(), whole.origin().gpus[0].name.as_str()), (0, "NVIDIA H200"));
    assert!(whole.stats().is_complete());
    let cut = load(br#"{"schemaVersion": 1, "deviceProperties": [{"id": 0, "na"#);
    assert_eq!(losses(&cut), [LossKind::EndsBeforeEvents]);
}

#[test]
fn other_json_is_an_error_with_its_keys() {
    let error = refuse(br#"{"name": "left-pad", "version": "1.0.0", "dependencies": {}}"#).to_string();
    assert!(error.contains("name, version, dependencies"), "{error}");
    for other in [&b"[1, 2, 3]"[..], b"\"text\"", b"[]", b"[{\"a\": 1}]", b"hello world"] {
        assert!(matches!(refuse(other), OpenError::NoEvents { .. }), "{other:?}");
    }
    assert!(matches!(refuse(b"\x89PNG\r\n"), OpenError::Unsupported { what: "a PNG image", .. }));
}

/// "Pass the file that torch.profiler wrote", because the first member was too large to be kept, and so was its key.
#[test]
fn a_large_file_of_rocprofv3_is_named() {
    let entry = format!("{{\"agent\": \"{}\"}},", "a".repeat(1 << 16));
    let json = format!("{{\"rocprofiler-sdk-tool\": [{}{{}}]}}", entry.repeat(300));
    assert!(matches!(refuse(json.as_bytes()), OpenError::Unsupported { what: "rocprofv3's own JSON", .. }));
}

#[test]
fn foreign_formats_get_a_hint() {
    for (bytes, word) in [
        (&b"\x28\xb5\x2f\xfd...."[..], "zstd"),
        (b"PK\x03\x04....", "unzip"),
        (b"SQLite format 3\0...", "SQLite"),
        (b"\xff\xfe{\0", "iconv"),
        (b"<html>", "HTML"),
    ] {
        let error = refuse(bytes).to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn a_missing_brace_loses_one_event() {
    let json = trace_of(&[event("a", 1), event("b", 2).replace("2}", "2"), event("c", 3), event("d", 4)]);
    let trace = load(json.as_bytes());
    assert_eq!(names(&trace), ["a", "c", "d"]);
    assert_eq!(losses(&trace), [LossKind::DamagedEvent]);
}

#[test]
fn an_event_that_swallows_later_ones_loses_one_event() {
    // The list in its arguments never ends, so all later events are inside it.
    let open = r#"{"ph": "X", "name": "b", "ts": 2, "dur": 1, "args": {"Input Dims": [[4096, "#.to_owned();
    let mut events = vec![event("a", 1), open];
    events.extend((0..5000).map(|i| event("later", 3 + i)));
    let trace = load(trace_of(&events).as_bytes());
    assert_eq!(trace.len(), 5001);
    assert_eq!(losses(&trace)[0], LossKind::DamagedEvent);
}

#[test]
fn a_hole_in_the_middle_keeps_both_sides() {
    let json = trace_of(&(0..1000).map(|i| event("e", i)).collect::<Vec<_>>());
    let (from, to) = (json.len() / 3, json.len() / 3 + 4096);
    let holed = [&json.as_bytes()[..from], &json.as_bytes()[to..]].concat();
    let whole_event = event("e", 500).len() + 2;
    let trace = load(&holed);
    assert!(trace.len() >= 1000 - 4096 / whole_event - 3, "{}", trace.len());
    let zeroed = [&json.as_bytes()[..from], &vec![0; 4096][..], &json.as_bytes()[to..]].concat();
    assert!(load(&zeroed).len() >= 1000 - 4096 / whole_event - 3);
}

#[test]
fn a_file_without_its_beginning_is_read() {
    let json = trace_of(&(0..100).map(|i| event("e", i)).collect::<Vec<_>>());
    let trace = load(&json.as_bytes()[json.len() / 2..]);
    assert!(trace.len() >= 49, "{}", trace.len());
    assert_eq!(losses(&trace), [LossKind::DamagedMetadata]);
}

#[test]
fn concatenated_traces_and_one_event_per_line_are_read() {
    let two = trace_of(&[event("a", 1)]) + "\n" + &trace_of(&[event("b", 2)]);
    assert_eq!(names(&load(two.as_bytes())), ["a", "b"]);
    let lines = [event("a", 1), event("b", 2)].join("\n");
    assert_eq!(names(&load(lines.as_bytes())), ["a", "b"]);
}

#[test]
fn a_list_of_traces_is_read() {
    let list = format!("[{}, {}]", trace_of(&[event("a", 1)]), trace_of(&[event("b", 2)]));
    assert_eq!(names(&load(list.as_bytes())), ["a", "b"]);
}

#[test]
fn a_damaged_key_does_not_hide_the_list_of_events() {
    let json = trace_of(&[event("a", 1), event("b", 2)]).replace("traceEvents", "tra\u{0}ceEvents");
    assert_eq!(names(&load(json.as_bytes())), ["a", "b"]);
}

#[test]
fn a_zip_bomb_stops_at_the_memory_limit_with_what_was_read() {
    let mut json = b"[".to_vec();
    for i in 0..200_000 {
        json.extend_from_slice(event("boom", i).as_bytes());
        json.push(b',');
    }
    let bomb = gzipped(&json);
    assert!(bomb.len() < json.len() / 10);
    for threads in [1, 2] {
        let options = ReadOptions::default().memory_bound(1_000_000).threads(threads);
        let trace = read(&bomb[..], Path::new("bomb"), &options).unwrap();
        assert!(trace.len() > 10_000 && trace.len() < 100_000, "{}", trace.len());
        assert!(losses(&trace).contains(&LossKind::MemoryBound));
    }
}

#[test]
fn a_zip_bomb_of_one_endless_string_is_not_kept_in_memory() {
    let mut json = format!("[{},\n{{\"ph\": \"X\", \"name\": \"", event("a", 1)).into_bytes();
    json.extend(vec![b'x'; 80 << 20]);
    json.extend_from_slice(b"\"},");
    json.extend_from_slice(event("b", 2).as_bytes());
    json.push(b']');
    let trace = load(&json);
    assert_eq!(names(&trace), ["a", "b"]);
}

#[test]
fn older_amd_and_pre_kineto_traces_have_the_same_kinds() {
    let json = r#"[
      {"ph":"X","cat":"Operator","name":"aten::mm","pid":1,"tid":"1","ts":1,"dur":9,"args":{"external id":2,"Call stack":"a.py(1): f"}},
      {"ph":"X","cat":"Runtime","name":"cudaMemcpyAsync","pid":1,"tid":"1","ts":2,"dur":1,"args":{"correlation":5,"external id":2}},
      {"ph":"X","cat":"Memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":0,"tid":"stream 7","ts":3,"dur":1,"args":{"correlation":5,"bytes":8}},
      {"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Host -> Device)","pid":2,"tid":0,"ts":4,"dur":1,"args":{"device":2,"stream":0,"correlation":6,"kind":"HtoD"}},
      {"ph":"X","name":"mul","pid":"CPU functions","tid":0,"ts":5,"dur":1},
      {"ph":"X","name":"mul_kernel","pid":"CUDA functions","tid":0,"ts":6,"dur":1}]"#;
    let trace = load(json.as_bytes());
    let kinds: Vec<_> = trace.events().map(|event| event.kind()).collect();
    use EventKind::*;
    assert_eq!(kinds, [Operator, RuntimeCall, Copy, Copy, Operator, Kernel]);
    let (first, second) = (trace.events().next().unwrap(), trace.events().nth(1).unwrap());
    assert_eq!(first.external_id(), second.external_id());
    assert_eq!(first.track_id(), second.track_id());
    let places: Vec<_> = trace.streams().map(|stream| format!("{:?}", stream.place())).collect();
    assert_eq!(places[1], "Stream { device: 0, stream: 7 }");
    assert_eq!(trace.events().nth(3).unwrap().transfer().unwrap().bytes, None);
    assert!(trace.stats().stacks_seen && trace.stats().unknown_categories.is_empty());
}

#[test]
fn a_missing_correlation_is_found_through_its_flow_arrow() {
    let json = r#"[{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":10,"dur":1,"args":{"device":0,"stream":7}},
                   {"ph":"s","id":77,"pid":1,"tid":1,"ts":5,"cat":"ac2g","name":"ac2g"},
                   {"ph":"f","id":77,"pid":0,"tid":7,"ts":10,"cat":"ac2g","name":"ac2g","bp":"e"}]"#;
    let trace = load(json.as_bytes());
    assert_eq!(trace.events().next().unwrap().correlation(), Some(77));
    assert_eq!(trace.stats().repairs[&Repair::CorrelationFromFlow], 1);
}
