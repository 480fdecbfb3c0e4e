//! `busbound bench` from recorded samples of a real GPU: the formats for people and programs, and the results page, which
//! is computed here from the committed samples.

use std::fmt::Write as _;
use std::path::Path;

use busbound_diagnosis::{Benchmark, judge_bench};
use busbound_machine::MachineProfile;
use busbound_machine::bench::{
    Case, Direction, Engine, Judgment, LinkSeen, MeasuredFigure, Memory, Pace, Samples,
};
use busbound_report::Format;

use crate::common;

fn samples(name: &str) -> Samples {
    let path = common::fixture_path("machines/raw").join(name);
    Samples::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn figure<'a>(bench: &'a Benchmark, id: &str) -> &'a MeasuredFigure {
    bench.figures.iter().find(|figure| figure.id == id).unwrap()
}

fn rate(samples: &Samples, direction: Direction, bytes: u64) -> f64 {
    let profile = samples.profile();
    let curve = profile.copies(direction, Memory::Pinned).unwrap();
    curve.points.iter().find(|point| point.bytes == bytes).unwrap().gbps
}

#[test]
fn a_full_and_a_quick_benchmark_of_an_h200() {
    let full = judge_bench(&samples("h200-full-1.json"));
    insta::assert_snapshot!("bench_full_terminal", common::shown(&full, Format::Terminal));
    let quick = judge_bench(&samples("h200-quick.json"));
    insta::assert_snapshot!("bench_quick_markdown", common::shown(&quick, Format::Markdown));
    insta::assert_snapshot!("bench_nvbandwidth", common::shown(&full, Format::Nvbandwidth));
    let json: serde_json::Value = serde_json::from_str(&common::shown(&quick, Format::Json)).unwrap();
    assert_eq!(json["schema"], "busbound.bench/2");
    assert_eq!(json["figures"].as_array().unwrap().len(), quick.figures.len());
    assert!(quick.wall_s < 20.0, "a quick benchmark took {} s", quick.wall_s);
    assert!(full.figures.iter().all(|figure| figure.judgment != Judgment::Low));
}

/// Samples of the scatter suite showed four figures, and not the grid that they were measured for.
#[test]
fn the_scatter_suite_shows_its_grid() {
    let path = common::fixture_path("scatter").join("scatter-1.json");
    let bench = judge_bench(&Samples::parse(&std::fs::read_to_string(path).unwrap()).unwrap());
    let shown = common::shown(&bench, Format::Terminal);
    let row = |table: &str, start: &str| {
        let mut lines = shown.lines().map(str::trim_start).skip_while(|line| !line.starts_with(table));
        lines.find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{shown}")).to_owned()
    };
    assert!(row("pinned H2D ", "pinned").ends_with("4,096"), "{shown}");
    // Small blocks to the device by a kernel, large ones by copies; what is too large for the suite has no figure.
    assert!(row("pinned H2D ", "4 KiB").ends_with("kernel 41.3"), "{shown}");
    let large = row("pinned H2D ", "4096 KiB");
    assert!(large.contains("batch 55.0") && large.ends_with('–'), "{shown}");
    assert!(!row("pageable H2D ", "4 KiB").contains("kernel"), "{shown}");
    let markdown = common::shown(&bench, Format::Markdown);
    assert!(markdown.contains("| pinned D2H |") && markdown.contains("| 64 KiB |"), "{markdown}");
}

/// The committed profiles must match the committed samples.
#[test]
fn the_committed_profiles_match_the_committed_samples() {
    for (raw, profile) in [("h200-full-1.json", "h200.json"), ("h200-quick.json", "h200-quick.json")] {
        let path = common::fixture_path("machines").join(profile);
        let text = serde_json::to_string_pretty(&samples(raw).profile()).unwrap() + "\n";
        if std::env::var_os("INSTA_UPDATE").is_some_and(|mode| mode == "always") {
            std::fs::write(&path, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap() == text,
            "{profile} (INSTA_UPDATE=always rewrites it)"
        );
        MachineProfile::parse(&text).unwrap();
    }
}

/// A link that trained down to half its lanes has half the rate.
#[test]
fn a_link_with_half_its_lanes_is_too_slow_and_the_detected_cause_comes_first() {
    let mut samples = samples("h200-quick.json");
    samples.identity.link = Some(LinkSeen { generation: 5, lanes: 8, max_generation: 5, max_lanes: 16 });
    for case in &mut samples.cases {
        if let Case::Copy(case) = case
            && case.task.memory == Memory::Pinned
        {
            case.ns.iter_mut().for_each(|ns| *ns *= 2);
        }
    }
    let bench = judge_bench(&samples);
    assert_eq!(
        (bench.profile.link.as_str(), figure(&bench, "pinned_h2d").judgment),
        ("PCIe 5 x8", Judgment::Low)
    );
    let causes = &figure(&bench, "pinned_h2d").causes;
    assert!(causes[0].seen && causes[0].why.contains("8 of 16 lanes"), "{:?}", causes[0]);
    assert!(
        bench.statement.starts_with("Below the expected rate of this GPU's link."),
        "{}",
        bench.statement
    );
    let text = common::shown(&bench, Format::Terminal);
    assert!(text.contains("1. Detected: the link runs with 8 of 16 lanes"), "{text}");
}

/// If only one direction is slow, the link's width is not the cause.
#[test]
fn one_slow_direction_is_attributed_to_the_host() {
    let mut samples = samples("h200-quick.json");
    for case in &mut samples.cases {
        if let Case::Copy(case) = case
            && (case.task.memory, case.task.direction) == (Memory::Pinned, Direction::D2h)
        {
            case.ns.iter_mut().for_each(|ns| *ns *= 2);
        }
    }
    let bench = judge_bench(&samples);
    assert_eq!(figure(&bench, "pinned_h2d").judgment, Judgment::Fine);
    assert!(figure(&bench, "pinned_d2h").causes[0].why.contains("the other direction is OK"));
}

/// The rate of a copy with wrong data must not be used.
#[test]
fn wrong_data_is_reported_first_and_its_rate_is_not_used() {
    let mut samples = samples("h200-quick.json");
    let Some(Case::Copy(first)) = samples.cases.first_mut() else { panic!("the first case is a copy") };
    first.verified = false;
    let points =
        |samples: &Samples| samples.profile().copies(Direction::H2d, Memory::Pinned).unwrap().points.len();
    let whole = points(&self::samples("h200-quick.json"));
    assert_eq!(points(&samples), whole - 1);
    let bench = judge_bench(&samples);
    assert!(bench.statement.starts_with("Data was corrupted"), "{}", bench.statement);
    assert_eq!(figure(&bench, "wrong_data").judgment, Judgment::Low);
}

#[test]
fn files_that_are_not_samples_are_rejected() {
    for wrong in ["", "{}", "[1]", r#"{"schema":"busbound.machine/1"}"#] {
        assert!(Samples::parse(wrong).is_err(), "{wrong}");
    }
    let text = std::fs::read_to_string(common::fixture_path("machines/raw/h200-quick.json")).unwrap();
    assert!(Samples::parse(&text.replace("busbound.samples/1", "busbound.samples/2")).is_err());
    assert!(Samples::parse(&text.replacen("\"ns\":[", "\"ns\":[0,", 1)).is_err());
    assert!(Samples::parse(&text[..text.len() / 2]).is_err());
}

#[test]
fn the_documented_schemas_are_up_to_date() {
    common::check_schema("bench", &schemars::schema_for!(Benchmark));
    common::check_schema("machine", &schemars::schema_for!(MachineProfile));
}

/// The limits: PyTorch's copy loop, a second run, and measured offloaded steps compared with the plan.
#[test]
fn the_h200_is_within_its_limits_and_the_results_page_is_up_to_date() {
    let (first, second) = (samples("h200-full-1.json"), samples("h200-full-2-copy.json"));
    let quick = samples("h200-quick.json");
    let mut page = String::from(PREFACE);
    compared_with_torch(&mut page, &first);
    repeated(&mut page, &first, &second);
    let bench = judge_bench(&first);
    offloaded_steps(&mut page, &bench);
    let _ = writeln!(
        page,
        "\n## Time\n\nThe quick benchmark took {:.1} s of wall time and used {:.2} GB of GPU memory, the full benchmark {:.0} s and {:.2} GB.\n\n## The full benchmark\n",
        quick.wall_s,
        quick.device_bytes as f64 / 1e9,
        first.wall_s,
        first.device_bytes as f64 / 1e9
    );
    page.push_str(&common::shown(&bench, Format::Markdown));
    check_page(&page);
}

fn compared_with_torch(page: &mut String, first: &Samples) {
    page.push_str(
        "\n## Compared with PyTorch's copy loop\n\n| copy | PyTorch | busbound | difference |\n|---|---|---|---|\n",
    );
    let text = std::fs::read_to_string(common::fixture_path("machines/raw/torch.json")).unwrap();
    let torch: serde_json::Value = serde_json::from_str(&text).unwrap();
    for row in torch["rows"].as_array().unwrap() {
        let direction = if row["direction"] == "h2d" { Direction::H2d } else { Direction::D2h };
        let (bytes, theirs) = (row["bytes"].as_u64().unwrap(), row["gbps"].as_f64().unwrap());
        let ours = rate(first, direction, bytes);
        let to = if direction == Direction::H2d { "to device" } else { "to host" };
        let off = ours / theirs - 1.0;
        let _ = writeln!(
            page,
            "| {} MiB {to} | {theirs:.2} GB/s | {ours:.2} GB/s | {:+.2}% |",
            bytes >> 20,
            100.0 * off
        );
        assert!(off.abs() < 0.02, "{bytes} {direction:?}: {ours}, PyTorch {theirs}");
    }
}

fn repeated(page: &mut String, first: &Samples, second: &Samples) {
    page.push_str(REPEATED);
    let (one, two) = (first.profile(), second.profile());
    for curve in &one.curves {
        let same = two.curve(curve.direction, curve.memory, curve.engine, curve.pace).unwrap();
        let mut differences: Vec<(f64, u64)> = curve
            .points
            .iter()
            .zip(&same.points)
            .map(|(a, b)| ((b.gbps / a.gbps - 1.0).abs(), a.bytes))
            .collect();
        let within = differences.iter().filter(|(off, _)| *off <= 0.03).count();
        let large = differences
            .iter()
            .filter(|(_, bytes)| *bytes >= 8 << 10)
            .map(|(off, _)| *off)
            .fold(0.0, f64::max);
        differences.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (median, (worst, at)) =
            (differences[differences.len() / 2].0, differences[differences.len() - 1]);
        let to = if curve.direction == Direction::H2d { "to device" } else { "to host" };
        let engine = if curve.engine == Engine::Kernel { ", by kernel" } else { "" };
        let pace = if curve.pace == Pace::Single { ", one at a time" } else { "" };
        let _ = writeln!(
            page,
            "| {} {to}{engine}{pace} | {:.1}% | {:.1}% at {at} B | {:.1}% | {within} of {} |",
            curve.memory.words(),
            100.0 * median,
            100.0 * worst,
            100.0 * large,
            differences.len()
        );
        if (curve.memory, curve.engine, curve.pace) == (Memory::Pinned, Engine::CopyEngine, Pace::BackToBack)
        {
            assert!(large <= 0.03, "{to}: {large}");
        }
    }
}

fn offloaded_steps(page: &mut String, bench: &Benchmark) {
    page.push_str("\n## Offloaded steps, predicted and measured\n\n");
    page.push_str(OUTLIERS);
    for errors in &bench.offload_errors {
        let _ = writeln!(
            page,
            "- {}: {} combinations, median error {:.1}%, max {:.1}% (with the host rate measured just before each step: {:.1}% and {:.1}%)",
            errors.memory.words(),
            errors.count,
            100.0 * errors.median,
            100.0 * errors.worst,
            100.0 * errors.median_at_rate,
            100.0 * errors.worst_at_rate
        );
    }
    let pinned = bench.offload_errors.iter().find(|errors| errors.memory == Memory::Pinned).unwrap();
    assert!(pinned.count >= 24 && pinned.median <= 0.05 && pinned.worst <= 0.15, "{pinned:?}");
    let mut all: Vec<f64> = bench.offload.iter().map(|one| one.error.abs()).collect();
    all.sort_by(f64::total_cmp);
    let over = all.iter().filter(|error| **error > 0.15).count();
    let _ = writeln!(
        page,
        "- all {}: median error {:.1}%, {over} above 15%",
        all.len(),
        100.0 * all[all.len() / 2]
    );
    assert!(all[all.len() / 2] <= 0.05 && over <= 1, "{all:?}");
}

/// Checks that docs/results/bench.md is this text; `INSTA_UPDATE=always` rewrites it.
fn check_page(page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/bench.md");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|mode| mode == "always") {
        std::fs::write(&path, page).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap_or_default() == page,
        "docs/results/bench.md is out of date (INSTA_UPDATE=always rewrites it)"
    );
}

const PREFACE: &str = "\
# What `busbound bench` measures on an H200

One NVIDIA H200 (PCIe 5 x16) in a virtual machine of 16 CPUs, driver 580.159, 2026-11-15, in one call:
`busbound bench --raw h200-quick.json`, `busbound bench --full --raw h200-full-1.json`, `python torch_copies.py`,
`busbound bench --full --suite copy --raw h200-full-2-copy.json`. The raw times are in fixtures/machines/raw. This page is computed from
them by a test (`cargo test -p busbound-report --test suite bench`), which also checks the limits.
";

const REPEATED: &str = "
## Repeatability

Difference between the medians of two runs, over 23 sizes from 256 B to 1 GiB. All predictions use the curve of back-to-back
pinned copies. From 8 KiB up it repeats within 3%. Smaller copies take about two microseconds, and a few points differ by up to
5%. Staged and migrated copies (pageable, managed) run on this machine's CPU, which is shared: they differ by tens of percent
from one minute to the next, and repetitions within one run do not show that. Copies of 64 to 256 KiB to the device wait more for
host memory than for the link, and differ more between runs than within one.

| curve | median | max | max from 8 KiB up | sizes within 3% |
|---|---|---|---|---|
";

const OUTLIERS: &str = "\
Each combination of layers, bytes, compute, depth and memory was run as a program would run it, the data was verified, and the
time was compared with the prediction of `plan offload --machine` with the profile of the same run. For pageable memory, the
prediction is only as good as the profile's staging rate, which depends on the CPU: if the host stages at a different rate in that
second, the prediction is off by the same amount. The one combination above 15% has 4 MiB layers and blocking copies: half of such
a copy is staged while the previous layer still runs, and the host's rate in those 0.2 ms differs from its rate over many copies.

";

/// A benchmark interrupted while copies were small has not measured the link, so nothing is too low.
#[test]
fn an_interrupted_benchmark_is_not_judged_by_its_small_copies() {
    let mut samples = samples("h200-quick.json");
    samples.cases.retain(|case| matches!(case, Case::Copy(case) if case.task.bytes <= 64 << 10));
    samples.interrupted = true;
    let bench = judge_bench(&samples);
    assert!(!bench.is_whole() && bench.figures.iter().all(|figure| figure.judgment != Judgment::Low));
    assert!(bench.statement.ends_with("The benchmark was stopped early."), "{}", bench.statement);
}

/// A link trains to what both ends support, which may be less than what the card supports.
#[test]
fn a_card_in_an_older_slot_is_detected() {
    let mut samples = samples("h200-quick.json");
    samples.identity.link = Some(LinkSeen { generation: 4, lanes: 16, max_generation: 4, max_lanes: 16 });
    for case in &mut samples.cases {
        if let Case::Copy(case) = case {
            case.ns.iter_mut().for_each(|ns| *ns *= 2);
        }
    }
    let bench = judge_bench(&samples);
    let cause = &figure(&bench, "pinned_h2d").causes[0];
    assert!(cause.seen && cause.why.contains("PCIe 4 x16, the maximum of the slot and host"), "{cause:?}");
}

#[test]
fn latencies_alone_are_not_called_ok() {
    let mut samples = samples("h200-quick.json");
    samples.cases.retain(|case| matches!(case, Case::Latency(_)));
    let statement = judge_bench(&samples).statement;
    assert!(statement.ends_with("No result has an expected value."), "{statement}");
}

/// The link is unknown if the GPU is in no list and its driver does not report the link.
#[test]
fn an_unknown_link_is_not_judged() {
    let mut samples = samples("h200-quick.json");
    samples.identity.gpu = "Something New".to_owned();
    samples.identity.link = Some(LinkSeen { generation: 0, lanes: 0, max_generation: 0, max_lanes: 0 });
    let bench = judge_bench(&samples);
    assert_eq!(figure(&bench, "pinned_h2d").judgment, Judgment::NoExpectation);
    assert_eq!(bench.profile.link, "PCIe 4 x16 (assumed)");
    assert!(bench.profile.peak_gbps > 0.0);
}

/// Every curve is drawn with every point, names are text, and nothing is fetched.
#[test]
fn the_page_draws_every_curve() {
    let mut samples = samples("h200-full-1.json");
    samples.identity.gpu = "H200 <script>alert('x')</script>".to_owned();
    let bench = judge_bench(&samples);
    let page = common::shown(&bench, Format::Html);
    let curves: Vec<&str> =
        page.lines().filter(|line| line.starts_with("<polyline class=\"curve\"")).collect();
    assert_eq!(curves.len(), bench.profile.curves.len());
    let points =
        |line: &&str| line.split("points=\"").nth(1).unwrap().split('"').next().unwrap().split(' ').count();
    let mut drawn: Vec<usize> = curves.iter().map(points).collect();
    let mut measured: Vec<usize> = bench.profile.curves.iter().map(|curve| curve.points.len()).collect();
    drawn.sort_unstable();
    measured.sort_unstable();
    assert_eq!(drawn, measured);
    // At most four per chart.
    assert!(
        page.split("<svg").skip(1).all(|chart| (1..=4).contains(&chart.matches("class=\"curve\"").count()))
    );
    assert!(!page.contains("<script") && page.contains("&#60;script&#62;"));
    assert!(!page.contains("://") && !page.contains("NaN") && !page.contains("inf,"));
}
