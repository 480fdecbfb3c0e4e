//! How right are verdicts and predictions on what people run? Compares them with the walls in fixtures/frameworks.
//!
//! ```text
//! cargo run --release -p busbound-report --example frameworks -- learn       prints one part of the corpus: learn, unseen, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth, eleventh, twelfth, thirteenth, fourteenth or fifteenth
//! cargo run --release -p busbound-report --example frameworks -- write      writes docs/results/verdicts.md, all parts
//! ```

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a script should stop at the first error and print its results"
)]

mod corpus;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use busbound_diagnosis::{Options, Source, diagnose, what_if};
use busbound_machine::Machine;
use busbound_trace::Trace;
use busbound_whatif::replay::Change;
use regex_lite::Regex;
use serde_json::Value;

use corpus::{fixtures, list, machine, outside, trace_of, walls};

/// Unseen runs whose walls were seen by mistake before the predictions were final: they count as learned.
const SEEN_BY_MISTAKE: &str = "accelerate-decode-";

const PREFACE: &str = "# Verdicts, steps without the profiler, and predictions on what people run

Programs that move data between host and GPU the way frameworks and people do, recorded on one NVIDIA H200 (PyTorch 2.11, CUDA 13,
2026-11-16); fixtures/frameworks has the programs, traces and every repetition of the walls. `cargo run --release -p busbound-report
--example frameworks -- write` writes this page, with `--machine fixtures/machines/h200.json`.

The first set was split by a hash of its names before anything was recorded. Costs of the profiler and assumptions of the changes were
set with the runs marked *learned*. Those marked *seen since* were unseen at first; what was learned from their misses has gone into the
changes, so they decide nothing any more; so were those of later sets, the same programs with other sizes (names with `_2`,
`_3` and `_4`). The fifth set (`_5`) has programs that no earlier one has, among them diffusers and torchao; looked at once, with
everything else final, verdicts were right on 49 of 49, steps without the profiler within 10% on 78%, and predictions had a median error
of 3.1% but were inside their range on only 64%: ranges were too narrow where the host matters. The sixth set (`_6`) has the programs of
the fifth with other sizes; looked at once after what the fifth taught was in (2026-11-17), verdicts were right on 48 of 49, steps within
10% on 84%, predictions had a median error of 1.4%, a median half-width of 8%, and were inside their range on 79%. The
seventh set (`_7`) has programs of all sets with other sizes, and so have the eighth (`_8`), the ninth (`_9`) and the tenth (`_10`: one
program of each group, accelerate was not reached), all of 2026-11-17, each recorded before and looked at once after everything else was final. Seventh: verdicts right on 57 of 57, steps within 10% on 91%, median
error 1.6%, inside the range on 92%, median half-width 15%. Eighth: 72 of 73, 84%, 1.6%, 87%, 10%. Ninth: 71 of 71, 90%, 0.6%, 88%,
11%. Tenth: 40 of 41, 88%, 2.5%, 83%, 8%. After that, no range is narrower than 9% on each side, and a tie between launches and other host work goes
to what the device waits for; and a step no longer contains what only the ends of a recording have (the wait for the first launches, copies
that run alone after the last step). The eleventh set (`_11`, 2026-11-18) was looked at once after that: 72 of 72, 93%, 0.5%, 97%, 14%. After it,
ranges are 0.85 of what they were. The twelfth (`_12`, the same day) was looked at once after that: 73 of 74, 89%, 0.7%, 92%, 13%. After it, hooks
that fetch weights wait for the group before, gathers into reused memory have a rate, and ranges were 0.75 of those of the eleventh. The thirteenth
(`_13`, the same day), looked at once after that: 74 of 75, 85%, 1.4%, 84%, 11%: too narrow, so ranges are 0.85 again. After it, what recording costs
copies in a row on the device is taken out, and copies in a row have no gap once they are pinned. The fourteenth (`_14`, the same day) was looked at
once after that: 74 of 75, 91%, 0.6%, 97%, 11%; the one wrong verdict was `mixed` where the host's work gains twice as
much as compute. After it, compute shares a verdict only from 0.6 of the larger gain on (0.5 before, and still where the larger one is below
12% of the step), and no prediction is below the time of the kernels. The fifteenth (`_15`, the same day) was looked at once after that: 74 of
74, 92%, 1.6%, 93%, 10%. From the eighth on, what diffusers fetches on a stream is predicted by `prefetch=1`, because its hooks
stay; `stream` is what `busbound.offload` does. What may
bound each run (fixtures/frameworks/verdicts.json) was written by the names of the programs, before the third and the fifth set were
recorded; later sets take the rules of the same programs (`odd`: of `even`). Three sizes of KV blocks that only the fourth set has were
added to the rules' lists of sizes afterwards, without another change. Before the eighth set, `transfer` was added for a thread that
stages copies while another one launches: pinned memory makes those steps 30 to 40% shorter.

A wall is the range of eight repetitions without the profiler, five before and three after the recording; CUPTI stays attached after it,
so the last three are slower where the host sets the pace. Host-bound walls scatter by 30% and more on this machine. \"Off\" is how far a
figure is outside that range; a prediction is inside if its range and the walls' overlap.
";

/// One run of the corpus.
struct Run {
    id: String,
    trace: Trace,
    /// The repetitions without the profiler, sorted, in milliseconds.
    walls: Vec<f64>,
}

impl Run {
    fn of(run: &Value) -> Self {
        let id = run["id"].as_str().unwrap().to_owned();
        Self { id, trace: trace_of(run), walls: walls(run, &["before_ms", "after_ms"]) }
    }

    fn range(&self) -> (f64, f64) {
        (self.walls[0], self.walls[self.walls.len() - 1])
    }

    fn median(&self) -> f64 {
        self.walls[self.walls.len() / 2]
    }

    /// How far a time is outside the range of the walls.
    fn off(&self, ms: f64) -> f64 {
        outside(ms, self.range())
    }
}

/// The runs of one part of the corpus.
fn runs(split: &str) -> BTreeMap<String, Run> {
    let is_wanted = |run: &&Value| {
        let is_seen = run["id"].as_str().unwrap().starts_with(SEEN_BY_MISTAKE);
        let of = if is_seen { "learn" } else { run["split"].as_str().unwrap() };
        of == split && run.get("skipped").is_none()
    };
    list("walls.json")
        .iter()
        .filter(is_wanted)
        .map(|run| (run["id"].as_str().unwrap().to_owned(), Run::of(run)))
        .collect()
}

/// Verdicts that are right for each run, by the name of the program.
fn expected() -> Vec<(Regex, Vec<String>)> {
    let of = |entry: Value| {
        let names = entry[1].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned());
        (Regex::new(&format!("^{}", entry[0].as_str().unwrap())).unwrap(), names.collect())
    };
    list("verdicts.json").into_iter().map(of).collect()
}

/// The name of the same program in the first set.
fn in_first_set(id: &str) -> String {
    (2..=15).fold(id.to_owned(), |id, set| id.replace(&format!("_{set}-"), "-"))
}

/// The shares of a set of figures, for the summary.
#[derive(Default)]
struct Outcome {
    rows: String,
    offs: Vec<f64>,
    widths: Vec<f64>,
    good: usize,
    count: usize,
}

impl Outcome {
    fn median(values: &[f64]) -> f64 {
        let mut sorted: Vec<f64> = values.iter().map(|value| value.abs()).collect();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).map_or(0.0, |median| 100.0 * median)
    }

    fn within(&self, share: f64) -> f64 {
        100.0 * self.offs.iter().filter(|off| off.abs() <= share).count() as f64
            / self.offs.len().max(1) as f64
    }
}

fn verdicts(runs: &BTreeMap<String, Run>, machine: &Machine) -> Outcome {
    let expected = expected();
    let mut all = Outcome::default();
    let _ = writeln!(
        all.rows,
        "| run | verdict | share | recorded | without the profiler | walls | off |\n|---|---|---|---|---|---|---|"
    );
    for run in runs.values() {
        let d = diagnose(&run.trace, &Source::named(&run.id), machine, &Options::default());
        let (recorded, own) = (d.time.analyzed_ms / d.window.step_count, d.window.baseline_ms);
        let may = expected.iter().find(|(name, _)| name.is_match(&in_first_set(&run.id))).map(|(_, may)| may);
        let is_right = may.is_some_and(|may| may.iter().any(|bound| bound == d.verdict.bound.id()));
        let (low, high) = run.range();
        all.offs.push(run.off(own));
        all.good += usize::from(is_right);
        all.count += 1;
        let _ = writeln!(
            all.rows,
            "| {} | {}{} | {:.0}% | {recorded:.2} ms | {own:.2} ms | {low:.2}–{high:.2} ms | {:+.0}% |",
            run.id,
            d.verdict.bound.id(),
            if is_right { "" } else { " (wrong)" },
            100.0 * d.verdict.share,
            100.0 * run.off(own)
        );
    }
    all
}

fn predictions(runs: &BTreeMap<String, Run>, machine: &Machine) -> Outcome {
    let mut all = Outcome::default();
    let _ = writeln!(
        all.rows,
        "| before | change | predicted | range | walls after | off |\n|---|---|---|---|---|---|"
    );
    for pair in list("pairs.json") {
        let (before, after) = (pair["before"].as_str().unwrap(), pair["after"].as_str().unwrap());
        let (Some(before), Some(after)) = (runs.get(before), runs.get(after)) else { continue };
        let names: Vec<&str> = pair["change"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let changes: Vec<Change> = names.iter().map(|name| name.parse().unwrap()).collect();
        let Ok(answer) = what_if(&before.trace, &before.id, machine, &Options::default(), &[changes]) else {
            let _ = writeln!(all.rows, "| {} | {} | no replay | | | |", before.id, names.join(" + "));
            continue;
        };
        let one = &answer.scenarios[0];
        let (low, high) = after.range();
        let is_inside = one.low_ms <= high && low <= one.high_ms;
        all.offs.push(after.off(one.step_ms));
        all.widths.push(0.5 * (one.high_ms - one.low_ms) / one.step_ms);
        all.good += usize::from(is_inside);
        all.count += 1;
        let _ = writeln!(
            all.rows,
            "| {} | {} | {:.2} ms | {:.2}–{:.2} ms{} | {:.2} ({low:.2}–{high:.2}) ms | {:+.0}% |",
            before.id,
            names.join(" + "),
            one.step_ms,
            one.low_ms,
            one.high_ms,
            if is_inside { "" } else { " (missed)" },
            after.median(),
            100.0 * after.off(one.step_ms)
        );
    }
    all
}

fn part(split: &str, title: &str, machine: &Machine) -> String {
    let runs = runs(split);
    let (verdicts, predictions) = (verdicts(&runs, machine), predictions(&runs, machine));
    format!(
        "\n## {title}: runs\n\n{} runs: verdict right on {} ({:.0}%). Step without the profiler: median {:.1}% outside the walls, within 10% \
         of them on {:.0}%.\n\n{}\n## {title}: predictions\n\n{} pairs: median {:.1}% outside the walls, inside the range for {} ({:.0}%), \
         median half-width of the range {:.0}%.\n\n{}",
        verdicts.count,
        verdicts.good,
        100.0 * verdicts.good as f64 / verdicts.count.max(1) as f64,
        Outcome::median(&verdicts.offs),
        verdicts.within(0.1),
        verdicts.rows,
        predictions.count,
        Outcome::median(&predictions.offs),
        predictions.good,
        100.0 * predictions.good as f64 / predictions.count.max(1) as f64,
        Outcome::median(&predictions.widths),
        predictions.rows
    )
}

fn main() {
    let machine = machine();
    match std::env::args().nth(1).as_deref() {
        Some("write") => {
            let parts = [
                ("fifteenth", "Looked at once, fifteenth set"),
                ("fourteenth", "Seen since, fourteenth set"),
                ("thirteenth", "Seen since, thirteenth set"),
                ("twelfth", "Seen since, twelfth set"),
                ("eleventh", "Seen since, eleventh set"),
                ("tenth", "Seen since, tenth set"),
                ("ninth", "Seen since, ninth set"),
                ("eighth", "Seen since, eighth set"),
                ("seventh", "Seen since, seventh set"),
                ("sixth", "Seen since, sixth set"),
                ("fifth", "Seen since, fifth set"),
                ("fourth", "Seen since, fourth set"),
                ("third", "Seen since, third set"),
                ("second", "Seen since, second set"),
                ("unseen", "Seen since, first set"),
                ("learn", "Learned"),
            ];
            let parts = parts.map(|(split, title)| part(split, title, &machine));
            let path = fixtures().join("../docs/results/verdicts.md");
            std::fs::write(path, format!("{PREFACE}{}", parts.concat())).unwrap();
        }
        Some(split) => println!("{}", part(split, split, &machine)),
        None => println!("{}", part("learn", "learn", &machine)),
    }
}
