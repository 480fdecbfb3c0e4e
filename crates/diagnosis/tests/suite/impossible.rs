//! What does the answer say about files that cannot be right? Each is noticed, and handled or refused.

use std::path::Path;

use busbound_diagnosis::{Bound, Diagnosis, LimitationId, Options, Source, diagnose, survey, what_if};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, Trace, read};
use serde_json::{Value, json};

/// When the run begins: a day in 2026, in microseconds.
const BEGIN: f64 = 1_790_000_000_000_000.0;

/// Six steps of a pinned copy and twenty kernels on one stream, with a sync at the end of each.
fn events() -> Vec<Value> {
    let mut events = Vec::new();
    let mut id = 0;
    for step in 0..6 {
        let begin = BEGIN + 10_000.0 * f64::from(step);
        let host = |name: &str, cat: &str, at: f64, dur: f64, id: i32| {
            json!({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": begin + at, "dur": dur,
                   "args": {"correlation": id}})
        };
        let gpu = |name: &str, cat: &str, at: f64, dur: f64, id: i32| {
            json!({"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": begin + at, "dur": dur,
                   "args": {"correlation": id, "device": 0, "stream": 7, "bytes": 110_000_000}})
        };
        events.push(host(&format!("ProfilerStep#{step}"), "user_annotation", 0.0, 9_900.0, 0));
        id += 1;
        events.push(host("cudaMemcpyAsync", "cuda_runtime", 10.0, 5.0, id));
        events.push(gpu("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", 20.0, 2_000.0, id));
        for kernel in 0..20 {
            id += 1;
            let at = 2_025.0 + 390.0 * f64::from(kernel);
            events.push(host("cudaLaunchKernel", "cuda_runtime", 30.0 + 10.0 * f64::from(kernel), 5.0, id));
            events.push(gpu("gemm", "kernel", at, 385.0, id));
        }
        id += 1;
        events.push(host("cudaDeviceSynchronize", "cuda_runtime", 300.0, 9_560.0, id));
    }
    events
}

fn is_gpu(event: &Value) -> bool {
    ["kernel", "gpu_memcpy"].contains(&event["cat"].as_str().unwrap())
}

fn add(event: &mut Value, member: &str, amount: f64) {
    event[member] = json!(event[member].as_f64().unwrap() + amount);
}

fn read_events(events: &[Value]) -> Trace {
    let text = json!({ "traceEvents": events }).to_string();
    read(text.as_bytes(), Path::new("made.json"), &ReadOptions::default()).unwrap()
}

fn diagnosed(trace: &Trace) -> Diagnosis {
    diagnose(trace, &Source::named("made.json"), &Machine::default(), &Options::default())
}

fn changed(change: impl Fn(usize, &mut Value)) -> Trace {
    let mut events = events();
    events.iter_mut().enumerate().for_each(|(i, event)| change(i, event));
    read_events(&events)
}

/// No verdict, and this reason in the first line of everything.
fn is_refused(trace: &Trace, id: LimitationId, why: &str) {
    let run = diagnosed(trace);
    assert_eq!(run.verdict.bound, Bound::Unknown, "{}", run.verdict.statement);
    assert_eq!(run.verdict.withheld, Some(id), "{}", run.verdict.statement);
    assert!(run.verdict.statement.contains(why), "{}", run.verdict.statement);
    assert!(run.verdict.statement.contains(". For a verdict: "), "{}", run.verdict.statement);
    assert!(run.prize.is_none() && run.bounds.is_empty());
    assert!(!run.source.complete);
    let survey = survey(trace, &Source::named("made.json"));
    assert!(!survey.headline.starts_with("Complete"), "{}", survey.headline);
    let predicted = what_if(trace, "made.json", &Machine::default(), &Options::default(), &[]);
    assert!(predicted.is_err_and(|error| error.to_string().contains(why)));
}

/// The same answer as without the fault, and a limitation that names it.
fn is_handled(trace: &Trace, id: LimitationId, says: &str) {
    let (run, sound) = (diagnosed(trace), diagnosed(&read_events(&events())));
    assert_eq!(run.verdict.bound, sound.verdict.bound, "{}", run.verdict.statement);
    assert!((run.time.analyzed_ms / sound.time.analyzed_ms - 1.0).abs() < 0.01, "{:?}", run.time);
    let said = run.limitations.iter().find(|limitation| limitation.id == id).unwrap();
    assert!(said.text.contains(says), "{}", said.text);
}

#[test]
fn the_sound_run_has_a_verdict() {
    let run = diagnosed(&read_events(&events()));
    assert_eq!(run.verdict.bound, Bound::Compute, "{}", run.verdict.statement);
    assert!(run.source.complete);
}

#[test]
fn one_timestamp_of_zero_or_in_a_hundred_days_is_left_out() {
    const DAYS: f64 = 100.0 * 86_400e6;
    let says = "an event whose time is far from all others";
    for at in [-BEGIN, DAYS] {
        // A kernel, and a call.
        for victim in [60, 61] {
            let trace = changed(|i, event| {
                if i == victim {
                    add(event, "ts", at)
                }
            });
            is_handled(&trace, LimitationId::Lost, says);
        }
    }
    let trace = changed(|i, event| {
        if i == 61 {
            add(event, "dur", DAYS)
        }
    });
    is_handled(&trace, LimitationId::Lost, says);
}

#[test]
fn gpu_times_before_their_calls_are_refused() {
    let early = changed(|_, event| {
        if is_gpu(event) {
            add(event, "ts", -5_000.0)
        }
    });
    is_refused(&early, LimitationId::Clocks, "GPU work begins up to");
}

#[test]
fn gpu_times_that_are_too_late_are_refused() {
    // Within the run: syncs return before the work they waited for. An hour: nothing is queued for so long.
    for late in [5_000.0, 3_600e6] {
        let trace = changed(|_, event| {
            if is_gpu(event) {
                add(event, "ts", late)
            }
        });
        is_refused(&trace, LimitationId::Clocks, "later than the calls allow");
    }
}

#[test]
fn gpu_times_in_other_units_are_refused() {
    // The clock of a machine that has been up for an hour: a date times a thousand is no time at all.
    let scaled = |factor: f64| {
        changed(|_, event| {
            add(event, "ts", 3_600e6 - BEGIN);
            if is_gpu(event) {
                event["ts"] = json!(event["ts"].as_f64().unwrap() * factor);
                event["dur"] = json!(event["dur"].as_f64().unwrap() * factor);
            }
        })
    };
    is_refused(&scaled(1_000.0), LimitationId::Clocks, "GPU times are about 1000 times those of the host");
    is_refused(&scaled(0.001), LimitationId::Clocks, "host times are about 1000 times those of the GPU");
}

#[test]
fn gpu_times_beyond_all_dates_are_refused() {
    let trace = changed(|_, event| {
        if is_gpu(event) {
            event["ts"] = json!(1.79e18)
        }
    });
    is_refused(&trace, LimitationId::Lost, "6 of 6 copies have impossible times");
}

#[test]
fn durations_in_other_units_are_refused() {
    let trace = changed(|_, event| {
        if is_gpu(event) {
            event["dur"] = json!(event["dur"].as_f64().unwrap() / 1_000.0);
        }
    });
    is_refused(&trace, LimitationId::CopyRates, "faster than any link");
}

#[test]
fn a_file_merged_with_itself_counts_once() {
    let mut twice = events();
    twice.extend(events());
    is_handled(&read_events(&twice), LimitationId::Duplicates, "events are in the file twice");
}

#[test]
fn one_correlation_id_for_everything_joins_nothing() {
    let trace = changed(|_, event| event["args"]["correlation"] = json!(7));
    let run = diagnosed(&trace);
    let said = run.limitations.iter().find(|limitation| limitation.id == LimitationId::Correlation).unwrap();
    assert!(
        said.text.starts_with("126 GPU events have a correlation ID that several calls have"),
        "{said:?}"
    );
    assert!(run.verdict.withheld.is_none(), "{}", run.verdict.statement);
}

#[test]
fn gpu_work_with_repaired_durations_is_refused() {
    let trace = changed(|i, event| {
        if is_gpu(event) && i % 3 == 0 {
            event["dur"] = json!(-1);
        }
    });
    is_refused(&trace, LimitationId::NoEnd, "have no usable end");
}

#[test]
fn calls_with_repaired_durations_are_refused() {
    let trace = changed(|i, event| {
        if event["cat"] == "cuda_runtime" && i % 3 == 0 {
            event.as_object_mut().unwrap().remove("dur");
        }
    });
    is_refused(&trace, LimitationId::NoEnd, "runtime calls have no usable end");
}

#[test]
fn work_that_overlaps_on_one_stream_is_refused() {
    let trace = changed(|_, event| {
        if event["cat"] == "kernel" {
            event["dur"] = json!(700.0);
        }
    });
    is_refused(&trace, LimitationId::StreamOrder, "overlaps other work of the same stream");
}

#[test]
fn missing_copies_and_missing_calls_are_refused() {
    let without = |cat: &str, nth: usize| {
        let mut seen = 0;
        let mut events = events();
        events.retain(|event| {
            seen += usize::from(event["cat"] == cat);
            event["cat"] != cat || !seen.is_multiple_of(nth)
        });
        read_events(&events)
    };
    is_refused(&without("gpu_memcpy", 3), LimitationId::KernelRecords, "2 of 6 copy calls have no copy");
    is_refused(
        &without("kernel", 3),
        LimitationId::KernelRecords,
        "40 of 120 kernel launches have no kernel",
    );
    is_refused(&without("cuda_runtime", 3), LimitationId::CallRecords, "no launch call in the trace");
}
