//! How do these tests build traces? In the format of torch.profiler.

use std::path::Path;

use busbound_diagnosis::{Diagnosis, Options, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, Trace, read};
use serde_json::{Value, json};

pub(crate) fn diagnosis(events: &[Value], gpu: &str) -> Diagnosis {
    let trace = json!({"deviceProperties": [{"id": 0, "name": gpu}], "traceEvents": events}).to_string();
    let trace = read(trace.as_bytes(), Path::new("t"), &ReadOptions::default()).unwrap();
    diagnose(&trace, &Source::named("t"), &Machine::default(), &Options::default())
}

pub(crate) fn with(events: &[Value], change: impl FnOnce(&mut Options)) -> Diagnosis {
    let mut options = Options::default();
    change(&mut options);
    diagnose(&trace(events), &Source::named("t"), &Machine::default(), &options)
}

pub(crate) fn trace(events: &[Value]) -> Trace {
    let trace = json!({"traceEvents": events}).to_string();
    read(trace.as_bytes(), Path::new("t"), &ReadOptions::default()).unwrap()
}

/// No sentence may contain the result of a division by zero.
pub(crate) fn check_words(diagnosis: &Diagnosis) {
    let text = serde_json::to_string(diagnosis).unwrap();
    assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
    assert!(!diagnosis.verdict.statement.is_empty());
}

pub(crate) fn step(i: u32, ts: u32, dur: u32) -> Value {
    json!({"ph":"X","cat":"user_annotation","name":format!("ProfilerStep#{i}"),"pid":1,"tid":1,"ts":ts,"dur":dur})
}

pub(crate) fn annotation(name: &str, thread: u32, ts: u32, dur: u32) -> Value {
    json!({"ph":"X","cat":"user_annotation","name":name,"pid":1,"tid":thread,"ts":ts,"dur":dur})
}

pub(crate) fn call(name: &str, correlation: u32, ts: u32, dur: u32) -> Value {
    json!({"ph":"X","cat":"cuda_runtime","name":name,"pid":1,"tid":1,"ts":ts,"dur":dur,"args":{"correlation":correlation}})
}

pub(crate) fn call_on(thread: u32, correlation: u32, ts: u32, dur: u32) -> Value {
    json!({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":thread,"ts":ts,"dur":dur,"args":{"correlation":correlation}})
}

pub(crate) fn kernel(name: &str, stream: u32, correlation: u32, ts: u32, dur: u32) -> Value {
    json!({"ph":"X","cat":"kernel","name":name,"pid":0,"tid":stream,"ts":ts,"dur":dur,
           "args":{"device":0,"stream":stream,"correlation":correlation}})
}

pub(crate) fn copy(name: &str, stream: u32, correlation: u32, ts: u32, dur: u32, bytes: u64) -> Value {
    json!({"ph":"X","cat":"gpu_memcpy","name":name,"pid":0,"tid":stream,"ts":ts,"dur":dur,
           "args":{"device":0,"stream":stream,"correlation":correlation,"bytes":bytes}})
}

pub(crate) const H2D: &str = "Memcpy HtoD (Pinned -> Device)";
