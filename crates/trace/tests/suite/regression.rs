//! Every bug found in the reader, by what went wrong.

use std::path::Path;

use busbound_trace::{LossKind, OpenError, ProfilerFlags, ReadOptions, Trace, read};

const EVENT: &str = r#"{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":1,"dur":1}"#;

fn on(threads: usize, bytes: &[u8]) -> Result<Trace, OpenError> {
    read(bytes, Path::new("input"), &ReadOptions::default().threads(threads))
}

fn load(text: &str) -> Trace {
    on(2, text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn losses(trace: &Trace) -> Vec<LossKind> {
    trace.stats().losses.iter().map(|loss| loss.what).collect()
}

fn repeated(count: usize) -> String {
    vec![EVENT; count].join(",\n")
}

/// The same statistics on one thread and on several.
fn check_threads(bytes: &[u8]) -> Trace {
    let one = on(1, bytes).unwrap();
    for threads in [2, 3, 8] {
        let several = on(threads, bytes).unwrap();
        assert_eq!(several.len(), one.len(), "{threads} threads");
        assert_eq!(several.stats(), one.stats(), "{threads} threads");
    }
    one
}

#[test]
fn an_odd_quote_in_two_events_does_not_swallow_those_between() {
    let odd = r#"{"ph":"X","name":"odd","ts":1,"dur":1,"args":{"Concrete Inputs": ["", "a"b", "False"]}}"#;
    let text = format!("[{odd},\n{},\n{odd},\n{}]", repeated(5000), repeated(10));
    let trace = load(&text);
    assert_eq!(trace.len(), 5010);
    assert_eq!(losses(&trace), [LossKind::DamagedEvent]);
}

#[test]
fn objects_without_a_phase_take_linear_time() {
    // 4 MB took minutes: every object was searched for events up to the end of the segment.
    let objects = vec![r#"{"a":1}"#; 500_000].join(",");
    assert!(matches!(on(1, format!("[{objects}]").as_bytes()), Err(OpenError::NoEvents { .. })));
    let trace = load(&format!("{{\"traceEvents\":[{objects},{EVENT}]}}"));
    assert_eq!((trace.len(), trace.stats().objects), (1, 500_001));
}

#[test]
fn segment_ends_do_not_depend_on_the_buffer() {
    // A long event enlarged one buffer of the pool; the next user of that buffer read a longer segment.
    let long = format!(r#"{{"ph":"X","name":"{}","ts":1,"dur":1}}"#, "x".repeat(6 << 20));
    let mut text = format!("[{long},");
    for i in 0..60_000 {
        text.push_str(if i % 37 == 0 { r#"{"ph":"X","args":{"x":[[8,"# } else { EVENT });
        text.push_str(",\n");
    }
    text.push_str("{}]");
    check_threads(text.as_bytes());
}

#[test]
fn concatenated_lists_are_complete_on_any_threads() {
    let text = format!("[{}]\n[{}]\n", repeated(40_000), repeated(40_000));
    let trace = check_threads(text.as_bytes());
    assert_eq!(trace.len(), 80_000);
    assert!(trace.stats().is_complete(), "{:?}", trace.stats().losses);
    let many = format!("[{EVENT}]").repeat(30_000);
    assert!(check_threads(many.as_bytes()).stats().is_complete());
}

/// The file itself is fine.
#[test]
fn a_memory_limit_below_the_first_event_is_reported_for_any_format() {
    // Many thread names, more than one batch, before the first event.
    let named = |thread| {
        format!(
            r#"{{"ph":"M","name":"thread_name","pid":1,"tid":{thread},"args":{{"name":"thread {thread}"}}}},"#
        )
    };
    let threads: String = (0..30_000).map(named).collect();
    let event = r#"{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":2.5}"#;
    let trace = format!(r#"{{"traceEvents":[{threads}{event}]}}"#);
    let list = format!("[{threads}{event}]");
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recorded/offload.bbt");
    let recording = std::fs::read(recording).unwrap();
    for whole in [trace.as_bytes(), list.as_bytes(), &recording] {
        let error = read(whole, Path::new("run"), &ReadOptions::default().memory_bound(1)).err().unwrap();
        assert_eq!(
            error.to_string(),
            "run does not fit into --memory: reading stops before its first event; raise --memory"
        );
        assert!(!read(whole, Path::new("run"), &ReadOptions::default()).unwrap().is_empty());
    }
}

#[test]
fn the_memory_limit_keeps_the_same_events_on_any_threads() {
    let text = format!("[{}]", repeated(200_000));
    let bounded = |threads| {
        let options = ReadOptions::default().threads(threads).memory_bound(2_500_000);
        read(text.as_bytes(), Path::new("input"), &options).unwrap()
    };
    let one = bounded(1);
    let loss = |trace: &Trace| trace.stats().losses.clone();
    assert_eq!(losses(&one), [LossKind::MemoryBound]);
    for threads in [2, 8] {
        let several = bounded(threads);
        assert_eq!((several.len(), loss(&several)), (one.len(), loss(&one)), "{threads} threads");
    }
}

#[test]
fn dense_damage_takes_linear_time_and_loses_only_what_it_touches() {
    let broken = r#"{"name":"b","ph":"X","cat":"cpu_op","args":{"Input Dims":[[8,"#;
    let one_of = |every: usize, total: usize| {
        let parts: Vec<_> = (0..total).map(|i| if i % every == 0 { broken } else { EVENT }).collect();
        format!("{{\"traceEvents\":[{}]}}", parts.join(",\n"))
    };
    let trace = load(&one_of(20, 60_000));
    assert_eq!(trace.len(), 57_000);
    let two_of_three: Vec<_> = (0..30_000).map(|i| if i % 3 < 2 { broken } else { EVENT }).collect();
    assert_eq!(load(&format!("[{}]", two_of_three.join(","))).len(), 10_000);
}

#[test]
fn events_inside_an_event_that_still_closes_are_recovered() {
    let open = r#"{"ph":"X","name":"hole","ts":1,"dur":1,"args":{"Input Dims":[[8,"#;
    let trace = load(&format!("{{\"traceEvents\":[{open}{},256]]}}}}]}}", repeated(98)));
    assert_eq!(trace.len(), 98);
    assert!(losses(&trace).contains(&LossKind::DamagedEvent));
}

#[test]
fn more_than_64_levels_of_objects_are_valid() {
    let deep = r#"{"a":"#.repeat(200) + "1" + &"}".repeat(200);
    let trace =
        load(&format!(r#"[{{"ph":"X","name":"deep","ts":1,"dur":1,"args":{{"k":{deep}}}}}, {EVENT}]"#));
    assert_eq!(trace.len(), 2);
    assert!(trace.stats().is_complete(), "{:?}", trace.stats().losses);
}

#[test]
fn events_right_after_a_stray_bracket_are_kept() {
    assert_eq!(load(&format!("{{\"traceEvents\":[{EVENT}]{EVENT}]{EVENT}]}}")).len(), 3);
}

#[test]
fn events_that_begin_with_their_duration_are_found_after_damage() {
    let event = r#"{"dur":1,"ph":"X","name":"a","ts":1}"#;
    assert_eq!(load(&format!("{{\"traceEvents\":[{event}, BAD, {event}, {event}]}}")).len(), 3);
}

#[test]
fn a_value_that_is_too_long_is_not_reported_as_the_end_of_the_file() {
    let long = "x".repeat(40 << 20);
    let text = format!(r#"{{"traceEvents":[{EVENT}], "stackFrames":{{"1":"{long}"}}, "traceName":"t"}}"#);
    let trace = load(&text);
    assert_eq!(trace.len(), 1);
    assert!(losses(&trace).contains(&LossKind::TooLong), "{:?}", losses(&trace));
    assert!(!losses(&trace).iter().any(|what| what.is_cut() && *what != LossKind::EndsBetweenEvents));
}

#[test]
fn nan_and_tabs_in_device_properties_do_not_hide_the_gpus() {
    let text = format!(
        "{{\"deviceProperties\":[{{\"id\":0,\"name\":\"NVIDIA\tH200\",\"x\":NaN}}],\"traceEvents\":[{EVENT}]}}"
    );
    assert_eq!(load(&text).origin().gpus[0].name, "NVIDIA H200");
    let broken = format!("{{\"deviceProperties\":[{{\"id\":0 \"name\":1}}],\"traceEvents\":[{EVENT}]}}");
    assert_eq!(losses(&load(&broken)), [LossKind::DamagedMetadata]);
}

#[test]
fn one_event_per_line_is_complete_without_a_bracket() {
    let trace = load(&[EVENT; 5].join("\n"));
    assert_eq!(trace.len(), 5);
    assert!(trace.stats().is_complete(), "{:?}", trace.stats().losses);
}

#[test]
fn objects_of_kinds_that_are_not_kept_are_still_read() {
    let text = r#"[{"ph":"B","name":"a","ts":1},{"ph":"E","name":"a","ts":2}]"#;
    let trace = load(text);
    assert_eq!((trace.len(), trace.stats().objects), (0, 2));
    assert_eq!(trace.stats().not_kept["begin/end pairs"], 2);
}

#[test]
fn inputs_that_are_not_traces_get_a_precise_error() {
    let error = |text: &str| on(1, text.as_bytes()).unwrap_err().to_string();
    assert!(error(r#"{"traceEvents": null}"#).contains("not a list"));
    assert!(error(r#"{"traceEven"#).contains("ends at byte 11"));
    let long = format!(r#"{{"{}": 1}}"#, "k".repeat(100_000));
    assert!(error(&long).len() < 300);
}

#[test]
fn arguments_before_the_name_keep_their_shapes() {
    let text = r#"[{"args":{"Concrete Inputs":["","","True"],"Input Dims":[[2],[2],[]],"Input type":["float","float","Scalar"]},
                    "cat":"cpu_op","dur":1,"name":"aten::copy_","ph":"X","pid":1,"tid":1,"ts":1}]"#;
    let trace = load(text);
    let operator = *trace.events().next().unwrap().copy_operator().unwrap();
    assert_eq!((operator.elements, operator.non_blocking), (Some(2), Some(true)));
    assert_eq!(trace.names().get(operator.src_dtype), "float");
}

#[test]
fn a_nested_object_with_a_phase_does_not_affect_later_events() {
    let nested = r#"{"ph":"X","name":"a","ts":1,"dur":1,"args":{"x":[{"ph":"not an event"}]}}"#;
    let large = format!(
        r#"{{"ph":"X","name":"b","ts":2,"dur":1,"args":{{"y":[{}]}}}}"#,
        vec![r#"{"z":1}"#; 20_000].join(",")
    );
    let trace = load(&format!("[{nested},{large}]"));
    assert_eq!(trace.len(), 2);
    assert!(trace.stats().is_complete() && trace.stats().repairs.is_empty(), "{:?}", trace.stats());
}

#[test]
fn names_beyond_the_limit_are_counted_in_one_sum() {
    let events: Vec<_> =
        (0..2000).map(|i| format!(r#"{{"ph":"X","cat":"kind{i}","name":"a","ts":1,"dur":1}}"#)).collect();
    let trace = load(&format!("[{}]", events.join(",")));
    assert_eq!(trace.len(), 2000);
    assert!(trace.stats().unknown_categories.len() < 100);
    assert_eq!(trace.stats().unknown_categories.values().sum::<u64>(), 2000);
}

#[test]
fn steps_that_were_timed_without_the_profiler_are_kept_from_either_end_of_the_file() {
    let text = format!(
        r#"{{"busbound_unprofiled_step_ms": [12.5, 13, 0, -1, "x", null, NaN],
        "record_shapes": 1, "with_stack": 0, "traceEvents": [{}],
        "profile_memory": true, "busbound_unprofiled_step_ms": [12.25]}}"#,
        repeated(5000)
    );
    let trace = check_threads(text.as_bytes());
    assert_eq!(trace.origin().unprofiled_step_ms, [12.5, 13.0, 12.25]);
    let flags = trace.origin().profiled_with();
    assert!(flags.shapes && !flags.stack && flags.memory);
    // A value of another type is no step, and damage in it loses nothing else.
    let odd = load(&format!(r#"{{"busbound_unprofiled_step_ms": 12.5, "traceEvents": [{EVENT}]}}"#));
    assert!(odd.origin().unprofiled_step_ms.is_empty());
    assert_eq!(odd.origin().profiled_with(), ProfilerFlags::default());
    assert!(losses(&odd).is_empty());
}
