//! Does `stage` predict what programs took under `busbound run`? fixtures/try/recorded has them as they are, fixtures/try/raw what they
//! took both ways, on another day's mood of the same machine: gains are compared, not times.

use std::path::{Path, PathBuf};

use busbound_diagnosis::{Options, Source, diagnose, what_if};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, Trace, open};
use busbound_whatif::replay::{Change, Stage};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/try")
}

fn recorded(program: &str) -> Trace {
    open(&fixtures().join(format!("recorded/{program}.bbt")), &ReadOptions::default()).unwrap()
}

/// Median step of each run in this mode; of a single run, the quartiles of its steps.
fn measured(program: &str, mode: &str) -> Vec<f64> {
    let text = std::fs::read_to_string(fixtures().join("raw/programs.json")).unwrap();
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let is_wanted = |run: &&serde_json::Value| run["words"][0] == program && run["mode"] == mode;
    let steps = |run: &serde_json::Value| {
        let mut times: Vec<f64> =
            run["ms"].as_array().unwrap().iter().map(|ms| ms.as_f64().unwrap()).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let runs: Vec<Vec<f64>> = all["runs"].as_array().unwrap().iter().filter(is_wanted).map(steps).collect();
    match runs.as_slice() {
        [run] => vec![run[run.len() / 4], run[run.len() * 3 / 4]],
        runs => runs.iter().map(|run| run[run.len() / 2]).collect(),
    }
}

/// The smallest and the largest gain of any pair of runs: the program itself varies by a third.
fn gains(program: &str) -> (f64, f64) {
    let (plain, staged) = (measured(program, "plain"), measured(program, "staged"));
    let least = |times: &[f64]| times.iter().copied().fold(f64::MAX, f64::min);
    let most = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
    (least(&plain) / most(&staged), most(&plain) / least(&staged))
}

#[test]
fn the_predicted_gain_of_staging_meets_the_measured_one() {
    let machine = Machine::named("h200").unwrap();
    let mut wrong = Vec::new();
    for program in ["accelerate-prefill", "accelerate-decode", "loader", "save_on_cpu"] {
        let trace = recorded(program);
        let answer =
            what_if(&trace, program, &machine, &Options::default(), &[vec![Change::from(Stage)]]).unwrap();
        let stage = &answer.scenarios[0];
        let (low, high) = (answer.baseline_ms / stage.high_ms, answer.baseline_ms / stage.low_ms);
        let (least, most) = gains(program);
        // Freeing new memory is faster too if its pages are huge, which no trace shows.
        let frees_new_memory = program == "save_on_cpu";
        if low > most || (high < least && !frees_new_memory) {
            wrong.push(format!("{program}: predicted {low:.2} to {high:.2}x, took {least:.2} to {most:.2}x"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The trace has a warm-up and four steps. The part without the warm-up suggested three iterations and the beginning of a fourth,
/// which then counted as one that takes no time.
#[test]
fn the_steps_of_a_part_are_those_of_the_whole() {
    let machine = Machine::named("h200").unwrap();
    let run = diagnose(
        &recorded("accelerate-decode"),
        &Source::named("accelerate-decode"),
        &machine,
        &Options::default(),
    );
    assert_eq!(run.window.steps.as_ref().unwrap().count, 4);
    assert!((run.window.step_count - 4.0).abs() < 0.01, "{}", run.window.step_count);
    let (fix, finding) = (&run.prize.as_ref().unwrap().fixes[0], &run.findings[0]);
    let gain = fix.before_ms - fix.after_ms;
    let saves = finding.saves_ms_per_step;
    assert!(saves.low <= gain && gain <= saves.high && gain > 0.7 * fix.before_ms, "{fix:?} {saves:?}");
}
