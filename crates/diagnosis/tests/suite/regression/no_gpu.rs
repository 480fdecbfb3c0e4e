//! What is said of a recording without any work on a GPU? Each was wrong on a public trace; these are small ones like it.

use busbound_diagnosis::{Bound, Diagnosis, LimitationId, Options, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{TraceBuilder, format};
use serde_json::{Value, json};

use super::claims::{MS, US};
use super::events::diagnosis;

/// An operator with the shape of what it works on.
fn operator(name: &str, ts: u32, dur: u32) -> Value {
    json!({"ph":"X","cat":"cpu_op","name":name,"pid":1,"tid":1,"ts":ts,"dur":dur,"args":{
        "Input Dims": [[400_400, 64], [400_400, 64], []], "Input type": ["float", "float", "Scalar"]}})
}

/// Five layers, each with a product or convolution and a large copy.
fn layers(product: &str, length: u32) -> Vec<Value> {
    let layer = |i: u32| {
        let at = i * 40_000;
        [operator(product, at, length), operator("aten::copy_", at + 20_000, 12_000)]
    };
    (0..5).flat_map(layer).collect()
}

fn without_gpu(events: &[Value]) -> Diagnosis {
    let trace = super::events::trace(events);
    diagnose(&trace, &Source::named("t"), &Machine::default(), &Options::default())
}

fn says(run: &Diagnosis, id: LimitationId) -> Option<&str> {
    run.limitations.iter().find(|limitation| limitation.id == id).map(|limitation| limitation.text.as_str())
}

/// A program on a computer without a GPU: "Blocking copies keep the host waiting for 30% … of PCIe 4 x16, which looks transfer-bound".
#[test]
fn a_program_on_the_cpu_does_not_wait_for_the_bus() {
    for product in ["aten::addmm", "aten::mkldnn_convolution"] {
        let run = without_gpu(&layers(product, 15_000));
        assert_eq!(run.verdict.bound, Bound::Unknown);
        let said = &run.verdict.statement;
        assert!(said.contains("computes on the CPU") && said.contains(product), "{said}");
        assert!(!said.contains("transfer"), "{said}");
        assert!(run.cpu_copies.is_empty(), "{:?}", run.cpu_copies);
        assert!(says(&run, LimitationId::Steps).is_none(), "there are no figures");
    }
}

/// Operators that only launch return at once, and those of a program with a full queue take as long as its kernels.
#[test]
fn a_gpu_recorded_without_its_events_may_still_wait_for_the_bus() {
    let run = without_gpu(&layers("aten::addmm", 20));
    assert!(run.verdict.statement.contains("looks transfer-bound"), "{}", run.verdict.statement);
    let run = diagnosis(&layers("aten::addmm", 15_000), "NVIDIA H200");
    assert!(run.verdict.statement.contains("looks transfer-bound"), "{}", run.verdict.statement);
}

/// A machine with a GPU that the program does not use.
#[test]
fn a_gpu_that_is_not_used_is_named() {
    let run = diagnosis(&layers("aten::mkldnn_convolution", 15_000), "NVIDIA RTX A5000");
    let said = &run.verdict.statement;
    assert!(said.contains("although this machine has a GPU: NVIDIA RTX A5000"), "{said}");
    let limits = says(&run, LimitationId::CpuOnly).unwrap();
    assert!(limits.contains("move the model and its inputs to it"), "{limits}");
}

fn exported(calls: &[&str], message: Option<&str>) -> Diagnosis {
    let mut trace = TraceBuilder::new(format("nsys-sqlite").unwrap());
    let host = trace.thread(1, 1);
    trace.annotation(host, "main", 0..MS);
    for (i, call) in calls.iter().enumerate() {
        let at = i as i64 * 10 * US;
        trace.runtime_call(host, *call, at..at + US);
    }
    trace.origin().profiler_messages.extend(message.map(str::to_owned));
    diagnose(&trace.finish(), &Source::named("t"), &Machine::default(), &Options::default())
}

/// "Host events alone do not show whether any copy crossed the bus", of an export without any CUDA call.
#[test]
fn an_export_without_work_says_what_it_has() {
    let message = "No CUDA events collected. Does the process use CUDA?";
    let run = exported(&[], Some(message));
    assert!(run.verdict.statement.contains("no CUDA call"), "{}", run.verdict.statement);
    assert!(says(&run, LimitationId::CpuOnly).unwrap().contains(message), "{:?}", run.limitations);
    assert!(says(&run, LimitationId::Steps).is_none(), "there are no figures");
    let run = exported(&["cuInit", "cudaMalloc"], None);
    let said = &run.verdict.statement;
    assert!(said.contains("none of the 2 recorded CUDA calls launches or copies anything"), "{said}");
}
