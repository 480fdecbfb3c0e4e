//! Predictions from slow runs compared with measurements of the fixed ones: pairs of real runs.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use busbound_diagnosis::{Options, Scenario, WhatIf, WhatIfs, what_if};
use busbound_machine::{Machine, MachineProfile};
use busbound_report::Format;
use busbound_trace::{ReadOptions, Trace, open};
use busbound_whatif::replay::Change;

use crate::common;

fn machine() -> Machine {
    let text = std::fs::read_to_string(common::fixture_path("machines/h200.json")).unwrap();
    Machine::measured(MachineProfile::parse(&text).unwrap())
}

fn read(path: &Path) -> Trace {
    open(path, &ReadOptions::default()).unwrap()
}

fn answer(path: &Path, changes: &[&str]) -> WhatIf {
    let changes: Vec<Change> = changes.iter().map(|change| change.parse().unwrap()).collect();
    let wanted = if changes.is_empty() { Vec::new() } else { vec![changes] };
    what_if(&read(path), &path.display().to_string(), &machine(), &Options::default(), &wanted).unwrap()
}

fn predict(path: &Path, changes: &[&str]) -> Scenario {
    answer(path, changes).scenarios.remove(0)
}

/// The folder of the shared traces; a plain clone does not have it.
fn shared() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    path.is_dir().then_some(path)
}

/// Before, the changes, after.
type Pair = (String, Vec<&'static str>, String);

fn shared_pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for size in ["c1", "c4", "c12"] {
        let mut add = |before: &str, changes: &[&'static str], after: &str| {
            pairs.push((format!("{before}_{size}"), changes.to_vec(), format!("{after}_{size}")));
        };
        add("off_block_pageable", &["pin"], "off_block_pinned");
        for (prefetch, after) in [
            ("prefetch=1", "off_layerwise_d1"),
            ("prefetch=2", "off_layerwise_d2"),
            ("prefetch=4", "off_layerwise_d4"),
        ] {
            add("off_block_pageable", &["pin", prefetch], after);
            add("off_block_pinned", &[prefetch], after);
        }
        add("off_layerwise_pageable_d2", &["pin"], "off_layerwise_d2");
    }
    pairs.push(("pipe_serial".to_owned(), vec!["nosync"], "pipe_overlap".to_owned()));
    pairs.push(("swap_serial".to_owned(), vec!["async"], "swap_duplex".to_owned()));
    pairs
}

fn own_pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for shape in ["even", "bus", "small", "calm"] {
        let mut add = |before: &str, changes: &[&'static str], after: &str| {
            pairs.push((format!("{shape}_{before}"), changes.to_vec(), format!("{shape}_{after}")));
        };
        add("block_pageable", &["pin"], "block_pinned");
        for (prefetch, after) in [("prefetch=1", "layerwise_d1"), ("prefetch=3", "layerwise_d3")] {
            add("block_pageable", &["pin", prefetch], after);
            add("block_pinned", &[prefetch], after);
        }
        add("layerwise_pageable_d1", &["pin"], "layerwise_d1");
        add("block_pinned", &["resident=50%"], "half_resident");
    }
    for (before, changes, after) in [
        ("sync_each", vec!["nosync"], "sync_none"),
        ("swap_turns", vec!["async"], "swap_both"),
        ("train_block_pageable", vec!["pin"], "train_block_pinned"),
        ("train_block_pageable", vec!["pin", "prefetch=1"], "train_ahead"),
        ("train_block_pinned", vec!["prefetch=1"], "train_ahead"),
    ] {
        pairs.push((before.to_owned(), changes, after.to_owned()));
    }
    pairs
}

/// How accurate the predictions of a set of pairs are.
struct Outcome {
    rows: String,
    median: f64,
    worst: f64,
    inside: usize,
    count: usize,
}

fn compared(directory: &Path, pairs: &[Pair]) -> Outcome {
    let text = std::fs::read_to_string(directory.join("walls.json")).unwrap();
    let walls: BTreeMap<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let mut rows = String::from(
        "| before | change | predicted | range | measured | error |\n|---|---|---|---|---|---|\n",
    );
    let (mut errors, mut inside) = (Vec::new(), 0);
    for (before, changes, after) in pairs {
        let one = predict(&directory.join(format!("{before}.json.gz")), changes);
        let wall = walls[after]["median_s"].as_f64().unwrap() * 1e3;
        let error = one.step_ms / wall - 1.0;
        let is_inside = one.low_ms <= wall && wall <= one.high_ms;
        inside += usize::from(is_inside);
        errors.push(error.abs());
        let _ = writeln!(
            rows,
            "| {before} | {} | {:.1} ms | {:.1}–{:.1} ms{} | {wall:.1} ms | {:+.1}% |",
            changes.join(" + "),
            one.step_ms,
            one.low_ms,
            one.high_ms,
            if is_inside { "" } else { " (missed)" },
            100.0 * error
        );
    }
    errors.sort_by(f64::total_cmp);
    Outcome {
        rows,
        median: errors[errors.len() / 2],
        worst: errors[errors.len() - 1],
        inside,
        count: errors.len(),
    }
}

impl Outcome {
    fn is_accurate(&self) -> bool {
        self.median <= 0.05 && self.worst <= 0.125 && self.inside * 10 >= self.count * 9
    }

    fn summary(&self) -> String {
        format!(
            "{} pairs: median error {:.1}%, max {:.1}%, measured time inside the range for {} ({:.0}%).",
            self.count,
            100.0 * self.median,
            100.0 * self.worst,
            self.inside,
            100.0 * self.inside as f64 / self.count as f64
        )
    }
}

#[test]
fn fixes_are_predicted_before_they_are_written() {
    let own = compared(&common::fixture_path("pairs"), &own_pairs());
    assert!(own.is_accurate(), "{}\n{}", own.summary(), own.rows);
    let Some(shared) = shared() else {
        eprintln!("the shared traces are missing: their pairs and the results page are not checked");
        return;
    };
    let given = compared(&shared, &shared_pairs());
    assert!(given.is_accurate(), "{}\n{}", given.summary(), given.rows);
    let page = format!(
        "{PREFACE}\n## Pairs used to develop the replay\n\n{}\n\n{}\n## Validation pairs\n\n{VALIDATION}\n\n{}\n\n{}",
        given.summary(),
        given.rows,
        own.summary(),
        own.rows
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/whatif.md");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|mode| mode == "always") {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap_or_default() == page,
        "docs/results/whatif.md is out of date (INSTA_UPDATE=always rewrites it)"
    );
}

const PREFACE: &str = "\
# Predicted and measured step times

The step time after a fix, predicted from one trace of the slow run, compared with the wall time of the fixed program without the
profiler (median of nine). One NVIDIA H200, torch 2.11, driver 580, 2026-11-15; `--machine fixtures/machines/h200.json`. `cargo xtask bench`
writes this page; `cargo test -p busbound-report --test suite whatif` checks the limits: median error at most 5%, max 12.5%, nine of ten inside the
range.
";

const VALIDATION: &str = "\
Programs with other shapes (`fixtures/pairs.py`), recorded before the replay existed and not used while it was written. They showed
that waits between streams were inferred too strictly, that predictions must not scale with the variation of the slow run, and that
the minimum width of a range (3.5%) has to cover the overhead of a profiler; nothing was fitted to their times. Predictions in which
matrix kernels hide the copies are about 5% too fast: the profile's matrix kernel slows down less under full load than cuBLAS does.
The two `async` pairs cover what no trace records: whether a kernel that overlaps a copy uses its data.";

/// Replayed without changes, every trace must take its recorded time.
#[test]
fn the_replay_error_of_every_trace_is_small() {
    let mut tried = 0;
    let directories = [common::fixture_path(""), common::fixture_path("runs"), common::fixture_path("pairs")];
    for directory in directories.into_iter().chain(shared()) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if !path.to_string_lossy().ends_with(".json.gz") {
                continue;
            }
            let answer = what_if(&read(&path), "x", &machine(), &Options::default(), &[]);
            let Ok(answer) = answer else {
                assert!(path.to_string_lossy().contains("cpu"), "{}", path.display());
                continue;
            };
            assert!(answer.replay_error.abs() < 0.02, "{}: {}", path.display(), answer.replay_error);
            tried += 1;
        }
    }
    assert!(tried >= 60, "{tried}");
}

#[test]
fn changes_that_do_not_help_are_predicted_not_to_help() {
    let trace = common::fixture_path("compute_only_c4.json.gz");
    for changes in [["pin"], ["prefetch=2"], ["async"], ["coalesce"], ["link=pcie3x16"]] {
        let one = predict(&trace, &changes);
        assert!(!one.applies && one.gain_ms.abs() < 0.01, "{changes:?}: {one:?}");
    }
    assert!(predict(&trace, &["nosync"]).gain_ms.abs() < 1.0);
    let searched = answer(&trace, &[]);
    assert!(
        searched.scenarios.is_empty()
            && searched.statement.starts_with("No tested change makes this run faster")
    );
    // Copies that are already prefetched gain nothing from prefetching.
    let ahead = predict(&common::fixture_path("off_layerwise_d2_c4.json.gz"), &["prefetch=2"]);
    assert!(ahead.gain_ms.abs() < 1.0, "{ahead:?}");
}

/// A link with half the rate doubles a step that is limited by the bus and does not affect other steps.
#[test]
fn a_slower_link_affects_only_steps_limited_by_the_bus() {
    let bound = predict(&common::fixture_path("pairs/bus_layerwise_d1.json.gz"), &["link=pcie4x16"]);
    let ratio = bound.step_ms / 23.6;
    assert!(ratio > 1.85 && ratio < 2.1, "{bound:?}");
    let calm = predict(&common::fixture_path("pairs/calm_layerwise_d1.json.gz"), &["link=pcie4x16"]);
    assert!(calm.gain_ms.abs() < 3.0, "{calm:?}");
    // With all weights resident, only compute is left.
    let kept = predict(&common::fixture_path("off_block_pinned_c4.json.gz"), &["resident=100%"]);
    assert!((kept.step_ms / 77.6 - 1.0).abs() < 0.05, "{kept:?}");
}

#[test]
fn changes_combine_in_order_and_the_result_is_the_same_in_every_format() {
    let trace = common::fixture_path("off_block_pageable_c4.json.gz");
    let both = answer(&trace, &["pin", "prefetch=2"]);
    assert_eq!(both.scenarios[0].apply, ["pin", "prefetch=2"]);
    let json: serde_json::Value = serde_json::from_str(&common::shown(&both, Format::Json)).unwrap();
    assert_eq!(json["schema"], "busbound.whatif/2");
    assert_eq!(json["scenarios"][0]["step_ms"].as_f64().unwrap(), both.scenarios[0].step_ms);
    let searched = WhatIf { path: "off_block_pageable_c4.json.gz".to_owned(), ..answer(&trace, &[]) };
    insta::assert_snapshot!("whatif_terminal", common::shown(&searched, Format::Terminal));
    insta::assert_snapshot!("whatif_markdown", common::shown(&searched, Format::Markdown));
}

#[test]
fn a_trace_without_gpu_events_is_an_error() {
    let trace = read(&common::fixture_path("cpuonly_block_pageable.json.gz"));
    let refused = what_if(&trace, "x", &machine(), &Options::default(), &[]).unwrap_err();
    assert!(refused.to_string().starts_with("the trace has no GPU events"));
}

/// They used to have the schema of a single prediction, which has no `runs`.
#[test]
fn predictions_of_several_runs_have_their_own_schema() {
    let one = answer(&common::fixture_path("off_block_pageable_c4.json.gz"), &["pin"]);
    let json = |all: &[WhatIf]| -> serde_json::Value {
        serde_json::from_str(&common::shown(all, Format::Json)).unwrap()
    };
    assert_eq!(json(std::slice::from_ref(&one))["schema"], "busbound.whatif/2");
    let several = json(&[one.clone(), one]);
    assert_eq!(several["schema"], "busbound.whatifs/2");
    let runs = several["runs"].as_array().unwrap();
    assert!(runs.len() == 2 && runs.iter().all(|run| run["schema"] == "busbound.whatif/2"));
}

#[test]
fn the_documented_schema_is_up_to_date() {
    common::check_schema("whatif", &schemars::schema_for!(WhatIf));
    common::check_schema("whatifs", &schemars::schema_for!(WhatIfs<'_>));
}
