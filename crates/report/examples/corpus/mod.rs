//! The runs of fixtures/frameworks, for the examples that compare with them.

use std::path::{Path, PathBuf};

use busbound_machine::{Machine, MachineProfile};
use busbound_trace::{ReadOptions, Trace, open};
use serde_json::Value;

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// The machine that the runs were recorded on.
pub(crate) fn machine() -> Machine {
    let text = std::fs::read_to_string(fixtures().join("machines/h200.json")).unwrap();
    Machine::measured(MachineProfile::parse(&text).unwrap())
}

/// One of the corpus's lists.
pub(crate) fn list(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(fixtures().join("frameworks").join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

pub(crate) fn trace_of(run: &Value) -> Trace {
    let path = fixtures().join("frameworks/traces").join(run["trace"].as_str().unwrap());
    open(&path, &ReadOptions::default()).unwrap()
}

/// These repetitions without the profiler, sorted, in milliseconds.
pub(crate) fn walls(run: &Value, keys: &[&str]) -> Vec<f64> {
    let of = |key: &&str| run[*key].as_array().into_iter().flatten().filter_map(Value::as_f64);
    let mut walls: Vec<f64> = keys.iter().flat_map(of).collect();
    walls.sort_by(f64::total_cmp);
    walls
}

/// How far a time is outside a range, as a share of its nearer end; negative below it.
pub(crate) fn outside(ms: f64, (low, high): (f64, f64)) -> f64 {
    if ms > high {
        ms / high - 1.0
    } else if ms < low {
        ms / low - 1.0
    } else {
        0.0
    }
}
