//! How right are verdicts and predictions on what people run? Compares them with the walls in fixtures/frameworks.
//!
//! `cargo run --release -p busbound-report --example frameworks -- learn [REGEX]`

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a script should stop at the first error and print its results"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use busbound_diagnosis::{Options, Source, diagnose, what_if};
use busbound_machine::{Machine, MachineProfile};
use busbound_trace::{ReadOptions, Trace, open};
use busbound_whatif::replay::Change;
use serde_json::Value;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn machine() -> Machine {
    let text = std::fs::read_to_string(fixtures().join("machines/h200.json")).unwrap();
    Machine::measured(MachineProfile::parse(&text).unwrap())
}

fn list(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(fixtures().join("frameworks").join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The repetitions of a run without the profiler, sorted, in milliseconds.
fn walls(run: &Value) -> Vec<f64> {
    let of =
        |key: &str| run[key].as_array().into_iter().flatten().filter_map(Value::as_f64).collect::<Vec<_>>();
    let mut all = of("before_ms");
    all.extend(of("after_ms"));
    all.sort_by(f64::total_cmp);
    all
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}

fn read(run: &Value) -> Trace {
    let path = fixtures().join("frameworks/traces").join(run["trace"].as_str().unwrap());
    open(&path, &ReadOptions::default()).unwrap()
}

fn main() {
    let split = std::env::args().nth(1).unwrap_or_else(|| "learn".to_owned());
    let only = std::env::args().nth(2).unwrap_or_default();
    let runs: BTreeMap<String, Value> = list("walls.json")
        .into_iter()
        .filter(|run| run["split"] == split.as_str() && run.get("skipped").is_none())
        .map(|run| (run["id"].as_str().unwrap().to_owned(), run))
        .collect();
    let (machine, options) = (machine(), Options::default());
    println!(
        "{:40} {:14} {:>6} {:>9} {:>9} {:>18}  gains",
        "run", "verdict", "share", "recorded", "wall", "range"
    );
    for (id, run) in runs.iter().filter(|(id, _)| id.contains(&only)) {
        let trace = read(run);
        let d = diagnose(&trace, &Source::named(id), &machine, &options);
        let walls = walls(run);
        let step = d.time.span_ms / d.window.step_count;
        let own = d.window.steps.as_ref().and_then(|s| s.unprofiled_ms).map_or(step, |u| u.mid);
        let gains: Vec<String> = d
            .bounds
            .iter()
            .map(|b| format!("{:?} {:.0}%", b.resource, 100.0 * (1.0 - b.step_if_free_ms / own)))
            .collect();
        let findings: Vec<String> = d.findings.iter().map(|f| f.id.to_string()).collect();
        println!(
            "{id:40} {:14} {:5.0}% {step:9.2} {own:9.2} {:9.2} {:8.2}-{:8.2}  {} | {}",
            d.verdict.bound.title(),
            100.0 * d.verdict.share,
            median(&walls),
            walls[0],
            walls[walls.len() - 1],
            gains.join(", "),
            findings.join(" ")
        );
    }
    println!();
    let (mut errors, mut inside, mut count) = (Vec::new(), 0, 0);
    for pair in list("pairs.json") {
        let (before, after) = (pair["before"].as_str().unwrap(), pair["after"].as_str().unwrap());
        let (Some(before_run), Some(after_run)) = (runs.get(before), runs.get(after)) else { continue };
        if !before.contains(&only) {
            continue;
        }
        let names: Vec<&str> = pair["change"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let changes: Result<Vec<Change>, _> = names.iter().map(|name| name.parse()).collect();
        let Ok(changes) = changes else {
            println!("{before:40} {:20} unknown change", names.join("+"));
            continue;
        };
        let walls = walls(after_run);
        let Ok(answer) = what_if(&read(before_run), before, &machine, &options, &[changes]) else {
            println!("{before:40} {:20} no replay", names.join("+"));
            continue;
        };
        let one = &answer.scenarios[0];
        let wall = median(&walls);
        let error = one.step_ms / wall - 1.0;
        let is_inside = one.low_ms <= walls[walls.len() - 1] && walls[0] <= one.high_ms;
        count += 1;
        inside += usize::from(is_inside);
        errors.push(error.abs());
        println!(
            "{before:40} {:20} base {:8.2} wall-before {:8.2} -> {:8.2} [{:8.2}-{:8.2}] wall {wall:8.2} [{:.2}-{:.2}] {:+5.0}% {}",
            names.join("+"),
            answer.baseline_ms,
            median(&self::walls(before_run)),
            one.step_ms,
            one.low_ms,
            one.high_ms,
            walls[0],
            walls[walls.len() - 1],
            100.0 * error,
            if is_inside { "" } else { "MISSED" }
        );
    }
    errors.sort_by(f64::total_cmp);
    if count > 0 {
        println!(
            "{count} pairs, median error {:.1}%, inside {inside} ({:.0}%)",
            100.0 * median(&errors),
            100.0 * inside as f64 / count as f64
        );
    }
}
