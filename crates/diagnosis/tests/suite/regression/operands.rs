//! Kernels that read host memory look like compute in a trace without the link's counters: is it said where their rate gives them away?

use busbound_diagnosis::{Diagnosis, LimitationId, Options, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, TraceBuilder, read};
use serde_json::{Value, json};
use std::path::Path;

use super::events::step;

/// Ten steps of four products of one row with 33.5 MB of weights, each of this length in microseconds.
fn decode(kernel_us: u32, rows: u32) -> Vec<Value> {
    let mut events = Vec::new();
    let mut id = 0;
    for i in 0..10 {
        let length = 4 * (kernel_us + 5) + 50;
        let begin = 1_000 + i * (length + 20);
        events.push(step(i, begin, length));
        for layer in 0..4 {
            id += 1;
            let (call, at) = (begin + 10 * layer, begin + 45 + layer * (kernel_us + 2));
            events.push(json!({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": call, "dur": 8,
                "args": {"Input Dims": [[rows, 4096], [4096, 4096]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}}));
            events.push(
                json!({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                "ts": call + 2, "dur": 4, "args": {"correlation": id}}),
            );
            events.push(json!({"ph": "X", "cat": "kernel", "name": "gemv", "pid": 0, "tid": 7, "ts": at, "dur": kernel_us,
                "args": {"device": 0, "stream": 7, "correlation": id}}));
        }
    }
    events
}

fn diagnosed(events: &[Value]) -> Diagnosis {
    let text =
        json!({"deviceProperties": [{"id": 0, "name": "NVIDIA H200"}], "traceEvents": events}).to_string();
    let trace = read(text.as_bytes(), Path::new("t"), &ReadOptions::default()).unwrap();
    diagnose(&trace, &Source::named("t"), &Machine::default(), &Options::default())
}

fn said(run: &Diagnosis) -> Option<&str> {
    let is_it = |limitation: &&busbound_diagnosis::Limitation| limitation.id == LimitationId::HostMemory;
    run.limitations.iter().find(is_it).map(|limitation| limitation.text.as_str())
}

/// 33.5 MB in 660 µs are 51 GB/s: what PCIe 5 x16 carries, and a hundredth of an H200's memory. It was "compute-bound", without a word.
#[test]
fn kernels_that_read_as_slowly_as_the_link_may_read_host_memory() {
    let run = diagnosed(&decode(660, 1));
    let text = said(&run).unwrap_or_else(|| panic!("{:?}", run.limitations));
    assert!(text.contains("at 51 GB/s, about as fast as PCIe 5 x16"), "{text}");
    assert!(text.contains("mostly aten::mm, 33.6 MB each") && text.contains("busbound record"), "{text}");
}

#[test]
fn kernels_at_the_rate_of_device_memory_or_with_much_to_compute_are_not_suspected() {
    // From the GPU's own memory; far slower than the link too; and with more rows than the memory bounds.
    for (kernel_us, rows) in [(12, 1), (25, 1), (5_000, 1), (660, 512)] {
        let run = diagnosed(&decode(kernel_us, rows));
        assert_eq!(said(&run), None, "{kernel_us} µs, {rows} rows");
    }
}

/// Where the link's counters were read, they say which kernels read host memory, and how much.
#[test]
fn counters_take_the_place_of_the_guess() {
    let mut builder = TraceBuilder::default();
    let (host, stream) = (builder.thread(1, 1), builder.stream(0, 7));
    for i in 0..40i64 {
        let at = i * 700_000;
        builder
            .operator(host, "aten::mm", at..at + 8_000)
            .operand_bytes(busbound_trace::Bytes::new(33_562_624));
        builder.runtime_call(host, "cudaLaunchKernel", at + 2_000..at + 6_000).correlation(i as u64 + 1);
        builder.kernel(stream, "gemv", at + 10_000..at + 670_000).correlation(i as u64 + 1);
    }
    let machine = Machine::named("h200").unwrap();
    let trace = builder.finish();
    let run = diagnose(&trace, &Source::named("t"), &machine, &Options::default());
    assert!(said(&run).is_some(), "{:?}", run.limitations);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("fixtures/zero_copy/recorded/decode.bbt");
    let trace = busbound_trace::open(&path, &ReadOptions::default()).unwrap();
    let run = diagnose(&trace, &Source::named("t"), &machine, &Options::default());
    assert_eq!(said(&run), None);
}
