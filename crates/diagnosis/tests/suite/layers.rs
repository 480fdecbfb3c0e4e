//! Which layer waited how long for its copies: runs whose answer is known.

use crate::common;
use busbound_diagnosis::{Diagnosis, LayerWaits, NamedBy, Options, Source, diagnose};
use busbound_machine::Machine;
use busbound_trace::{MemoryKind, TraceBuilder, TrackId, Transfer};

fn run(name: &str) -> Diagnosis {
    common::diagnosis_of(&common::root().join("fixtures").join(name))
}

#[test]
fn every_layer_of_a_late_prefetch_waits_for_its_copy() {
    let run = run("runs/prefetch_too_late.json.gz");
    let waits = run.layer_waits.unwrap();
    assert_eq!((waits.named_by, waits.steps, waits.count), (NamedBy::Position, 3, 12));
    let names: Vec<&str> = waits.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!((names[0], names[11]), ("layer 0", "layer 11"));
    for layer in &waits.layers {
        assert_eq!((layer.waited_in, layer.copies, layer.copy_bytes), (3, 1.0, 64e6), "{layer:?}");
        assert!((1.1..1.25).contains(&layer.median_ms) && layer.longest_ms >= layer.median_ms, "{layer:?}");
    }
}

/// The waits are the exposed copies: no other model of waiting.
#[test]
fn waits_of_all_layers_are_the_exposed_copies() {
    for name in
        ["off_block_pageable_c4", "off_block_pinned_c4", "runs/bus_too_short", "pairs/bus_layerwise_d1"]
    {
        let run = run(&format!("{name}.json.gz"));
        let exposed = run.time.exposed_bus_copy_ms / run.window.step_count;
        let waits = run.layer_waits.unwrap();
        assert!(
            (waits.ms_per_step / exposed - 1.0).abs() < 0.035,
            "{name}: {} of {exposed}",
            waits.ms_per_step
        );
    }
}

#[test]
fn layers_whose_copies_arrive_in_time_are_not_listed() {
    assert_eq!(run("off_layerwise_d2_c4.json.gz").layer_waits, None);
    assert_eq!(run("compute_only_c4.json.gz").layer_waits, None);
    // One batch per step is not a layer.
    assert_eq!(run("train_pageable.json.gz").layer_waits, None);
}

/// Four decoder layers that copy seven weights each were once 28 layers.
#[test]
fn weights_that_are_copied_one_by_one_are_one_layer() {
    let waits = run("frameworks/traces/accelerate-dispatch-all_cpu.json.gz").layer_waits.unwrap();
    assert_eq!(waits.count, 4, "{:?}", waits.layers);
}

const MS: i64 = 1_000_000;

/// Three steps of two layers: a copy of 4 MB takes 2 ms or 3 ms, then a kernel 5 ms. Each layer has an annotation.
fn annotated(names: [&str; 2]) -> Option<LayerWaits> {
    let mut trace = TraceBuilder::default();
    let (thread, stream) = (trace.thread(1, 1), trace.stream(0, 7));
    let mut correlation = 0;
    let mut at = MS;
    for _ in 0..3 {
        let start = at;
        for (layer, name) in names.iter().enumerate() {
            let (host, took) = (at, (2 + layer as i64) * MS);
            launch(&mut trace, thread, host + 1_000, &mut correlation);
            let transfer = Transfer::host_to_device(MemoryKind::Pinned, 4_000_000);
            trace.copy(stream, transfer, at + 10_000..at + 10_000 + took).correlation(correlation);
            launch(&mut trace, thread, host + 8_000, &mut correlation);
            let kernel = at + 10_000 + took;
            trace.kernel(stream, "gemm", kernel..kernel + 5 * MS).correlation(correlation);
            trace.annotation(thread, *name, host..host + 15_000);
            at = kernel + 5 * MS;
        }
        trace.annotation(thread, "step", start..at);
    }
    diagnose(&trace.finish(), &Source::named("made"), &Machine::default(), &Options::default()).layer_waits
}

fn launch(trace: &mut TraceBuilder, thread: TrackId, at: i64, correlation: &mut u64) {
    *correlation += 1;
    trace.runtime_call(thread, "cudaLaunchKernel", at..at + 4_000).correlation(*correlation);
}

#[test]
fn layers_have_the_names_of_their_annotations() {
    let waits = annotated(["block.0", "block.1"]).unwrap();
    assert_eq!(waits.named_by, NamedBy::Annotation);
    let layers: Vec<(&str, f64, f64)> =
        waits.layers.iter().map(|layer| (layer.name.as_str(), layer.median_ms, layer.copy_bytes)).collect();
    assert_eq!(layers, [("block.0", 2.0, 4e6), ("block.1", 3.0, 4e6)]);
}

#[test]
fn annotations_that_are_all_alike_name_no_layer() {
    let waits = annotated(["forward", "forward"]).unwrap();
    assert_eq!((waits.named_by, waits.layers[1].name.as_str()), (NamedBy::Position, "layer 1"));
}
