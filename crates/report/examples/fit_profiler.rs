//! What does torch.profiler cost per recorded event? Fits the model of docs/results/verdicts.md to the runs in fixtures/frameworks
//! that are marked `learn`.
//!
//! `cargo run --release -p busbound-report --example fit_profiler`

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a script should stop at the first error and print its results"
)]

mod corpus;

use busbound_cause::{Bounds, FreshPages, Model, RecordingCost};
use busbound_diagnosis::{Options, steady_model};
use serde_json::Value;

use corpus::{list, machine, outside, trace_of, walls};

struct Run {
    id: String,
    model: Model,
    low: f64,
    mid: f64,
    high: f64,
}

fn runs() -> Vec<Run> {
    let (machine, all) = (machine(), list("walls.json"));
    let learned = all.iter().filter(|run| run["split"] == "learn" && run.get("skipped").is_none());
    let run = |run: &Value| {
        let model = steady_model(&trace_of(run), &machine, &Options::default())?;
        // After a recording, CUPTI stays attached and slows the host: only walls before it are without the profiler.
        let walls = walls(run, &["before_ms"]);
        let (low, high) = (walls[0], walls[walls.len() - 1]);
        Some(Run {
            id: run["id"].as_str().unwrap().to_owned(),
            model,
            low,
            mid: walls[walls.len() / 2],
            high,
        })
    };
    learned.filter_map(run).collect()
}

fn step_ms(model: &Model) -> f64 {
    Bounds::of(model).recorded().unwrap_or(0.0) / 1e6
}

fn cost_of(p: &[f64; 5]) -> RecordingCost {
    RecordingCost {
        operator: p[0] * 1e3,
        call: p[1] * 1e3,
        work: p[2] * 1e3,
        frame: 0.0,
        step: p[3] * 1e3,
        node: p[4] * 1e3,
        copy: 1e3 * busbound_machine::ProfilerCost::usual_copy_us(),
        fresh: FreshPages::NONE,
    }
}

fn loss(runs: &[Run], p: &[f64; 5]) -> f64 {
    runs.iter()
        .map(|run| {
            let ms = step_ms(&run.model.without_profiler(&cost_of(p)));
            // Mostly the distance from the range; a little the distance from its middle.
            outside(ms, (run.low, run.high)).abs().min(0.5) + 0.2 * (ms / run.mid).ln().abs().min(0.5)
        })
        .sum()
}

fn main() {
    let runs = runs();
    let given: Vec<f64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let mut p = [2.5, 2.0, 2.0, 120.0, 0.4];
    if given.len() == 5 {
        p.copy_from_slice(&given);
    } else {
        let mut step = [0.5, 1.0, 1.0, 25.0, 0.2];
        let mut best = loss(&runs, &p);
        for _ in 0..12 {
            let mut moved = false;
            for i in 0..5 {
                for sign in [1.0, -1.0] {
                    let mut other = p;
                    other[i] = (other[i] + sign * step[i]).max(0.0);
                    let got = loss(&runs, &other);
                    if got < best {
                        (best, p, moved) = (got, other, true);
                    }
                }
            }
            if !moved {
                step.iter_mut().for_each(|step| *step *= 0.5);
            }
        }
        println!(
            "operator {:.2} us, call {:.2} us, work {:.2} us, step {:.0} us, node {:.2} us; loss {best:.3}",
            p[0], p[1], p[2], p[3], p[4]
        );
    }
    let mut off: Vec<f64> = Vec::new();
    for run in &runs {
        let (recorded, ms) = (step_ms(&run.model), step_ms(&run.model.without_profiler(&cost_of(&p))));
        let out = outside(ms, (run.low, run.high));
        off.push(out.abs());
        println!(
            "{:40} recorded {recorded:8.2} -> {ms:8.2}  walls {:8.2} {:8.2} {:8.2}  {:+5.0}% of the median, outside {:+5.0}%",
            run.id,
            run.low,
            run.mid,
            run.high,
            100.0 * (ms / run.mid - 1.0),
            100.0 * out
        );
    }
    off.sort_by(f64::total_cmp);
    println!(
        "{} runs: median outside {:.1}%, within 10%: {:.0}%",
        off.len(),
        100.0 * off[off.len() / 2],
        100.0 * off.iter().filter(|off| **off <= 0.1).count() as f64 / off.len() as f64
    );
}
