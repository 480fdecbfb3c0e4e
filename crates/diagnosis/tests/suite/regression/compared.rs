//! Are runs compared correctly with each other and with a baseline?

use busbound_diagnosis::{FigureGroup, FigureId, Labels, compare};
use serde_json::{Value, json};

use super::events::{call, diagnosis, kernel, step};

#[test]
fn runs_with_different_units_are_not_compared() {
    let steps: Vec<_> = (0..3)
        .flat_map(|i| {
            [
                step(i, i * 1000, 900),
                call("cudaLaunchKernel", i, i * 1000 + 5, 5),
                kernel("k", 7, i, i * 1000 + 20, 800),
            ]
        })
        .collect();
    let marked = diagnosis(&steps, "NVIDIA H200");
    let bare = diagnosis(&[kernel("k", 7, 1, 0, 100_000)], "NVIDIA H200");
    let empty = diagnosis(&[kernel("k", 7, 1, 0, 0)], "NVIDIA H200");
    let host = diagnosis(&[step(0, 0, 900), step(1, 1000, 900)], "NVIDIA H200");
    for (a, b) in [(&marked, &bare), (&bare, &empty), (&marked, &host)] {
        let labels = Labels::new("batch", vec![1.0, 2.0]);
        let comparison = compare(&[a.clone(), b.clone()], Some(&labels));
        assert!(comparison.statement.starts_with("Cannot compare these runs"), "{}", comparison.statement);
        assert!(comparison.figures.is_empty() && comparison.sweep.is_none());
    }
}

/// A gate passed because the steps it should catch were excluded as outliers.
#[test]
fn a_gate_includes_outlier_steps() {
    let mut events = Vec::new();
    let mut at = 0;
    for i in 0..40 {
        let length = if i == 9 { 5000 } else { 1000 };
        events.push(step(i, at, length));
        events.push(call("cudaLaunchKernel", i + 1, at + 1, 5));
        events.push(kernel("k", 7, i + 1, at + 10, length - 20));
        at += length;
    }
    let run = diagnosis(&events, "NVIDIA H200");
    assert!(run.window.steps.as_ref().unwrap().outliers_dropped > 0);
    let figures = busbound_diagnosis::Baseline::of(&run).figures;
    assert_eq!(figures["outlier_steps"], 1.0);
    assert!(figures["step_max"] > 4.9 && figures["step_p99"] > 3.0, "{figures:?}");
    assert!(figures["step_p50"] < 1.1);
}

/// Per-step figures were compared with figures of a whole trace.
#[test]
fn a_gate_does_not_compare_a_step_with_a_trace() {
    use busbound_diagnosis::{Baseline, Requirement, gate};
    let work = |i: u32| {
        [call("cudaLaunchKernel", i, 1000 * i, 5), kernel("k", 7, i, 1000 * i + 10, 400 + 7 * i * i)]
    };
    let bare: Vec<Value> = (1..4).flat_map(work).collect();
    let mut marked = bare.clone();
    marked.extend((1..4).map(|i| step(i, 1000 * i, 900)));
    let (bare, marked) = (diagnosis(&bare, "NVIDIA H200"), diagnosis(&marked, "NVIDIA H200"));
    let wanted = [Requirement::parse("compute_ms <= 1.05 * baseline").unwrap()];
    let gate = gate(&[marked], &wanted, Some(&Baseline::of(&bare)), false);
    assert!(!gate.passed);
    let why = gate.runs[0].checks[0].why.as_ref().unwrap();
    assert!(why.contains("per step") && why.contains("per trace"), "{why}");
}

/// A comparison claimed that its parts sum to the step, but had no part for memsets.
#[test]
fn the_parts_of_a_comparison_sum_to_the_span() {
    let memset = json!({"ph":"X","cat":"gpu_memset","name":"Memset (Device)","pid":0,"tid":7,"ts":1_000,"dur":3_000,
                        "args":{"device":0,"stream":7,"correlation":2,"bytes":1_000_000}});
    let events = [kernel("k", 7, 1, 0, 1_000), memset, kernel("k", 7, 3, 4_000, 2_000)];
    let run = diagnosis(&events, "NVIDIA H200");
    let compared = compare(&[run.clone(), run.clone()], None);
    let parts = || compared.figures.iter().filter(|figure| figure.group == FigureGroup::Part);
    let value = |label: &str| parts().find(|figure| figure.name == label).map(|figure| figure.values[0]);
    assert_eq!((value("compute"), value("memset")), (Some(3.0), Some(3.0)));
    let parts: f64 = FigureId::PARTS.iter().filter_map(|part| value(part.label())).sum();
    assert_eq!(Some(parts), FigureId::SpanMs.of(&run));
}
