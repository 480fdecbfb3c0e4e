//! Comparisons: the terminal, Markdown and the page show the same figures.

use crate::common::paths::fixture_path;
use busbound_diagnosis::{Detail, Drawn, Labels, Options, Source, compare, diagnose_and_draw};
use busbound_machine::Machine;
use busbound_report::{DrawnComparison, Format, Report, Style};
use busbound_trace::{ReadOptions, open};

fn drawn(name: &str) -> Drawn {
    let trace = open(&fixture_path(name), &ReadOptions::default()).unwrap();
    let (machine, options) = (Machine::default(), Options::default());
    diagnose_and_draw(&trace, &Source::named(name), &machine, &options, &[], Detail::Page { runs: 2 })
}

fn shown(names: &[&str], labels: Option<&Labels>, format: Format) -> String {
    let runs: Vec<Drawn> = names.iter().map(|name| drawn(name)).collect();
    let diagnoses: Vec<_> = runs.iter().map(|run| run.diagnosis.clone()).collect();
    let comparison = compare(&diagnoses, labels);
    let page = DrawnComparison { comparison: &comparison, runs: &runs };
    page.render(format, &Style { width: 400, verbose: true, ..Style::default() }).unwrap()
}

const PINNED: [&str; 2] = ["off_block_pageable_c4.json.gz", "off_block_pinned_c4.json.gz"];

#[test]
fn every_format_shows_the_headline_and_every_kind_of_figure() {
    for format in [Format::Terminal, Format::Markdown, Format::Html] {
        let text = shown(&PINNED, None, format);
        for part in [
            "2.6x faster (274 ms → 104 ms)",
            "where the time of a step goes, as recorded",
            "step, mean",
            "H2D pageable → pinned: rate",
            "+466%",
            "kernels, time per step",
            "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT",
            "other figures, per step",
            "No longer found: H2D copies from pageable memory (pageable_copies)",
        ] {
            assert!(text.contains(part), "{format:?}: no {part:?} in {text}");
        }
        assert!(!text.contains("H2D pinned:") && !text.contains("H2D pageable:"), "{format:?}");
    }
}

/// It once printed up to 60 rows, most of them without a difference.
#[test]
fn a_terminal_shows_the_figures_that_changed() {
    let runs: Vec<Drawn> = PINNED.iter().map(|name| drawn(name)).collect();
    let diagnoses: Vec<_> = runs.iter().map(|run| run.diagnosis.clone()).collect();
    let comparison = compare(&diagnoses, None);
    let answer = DrawnComparison { comparison: &comparison, runs: &runs };
    let text = answer.render(Format::Terminal, &Style::default()).unwrap();
    assert!(
        text.contains("copying only") && text.contains("figures that hardly changed are not shown: -v"),
        "{text}"
    );
    // Only copies that moved to another memory are shown without a difference.
    let is_same = |line: &&str| line.ends_with(" same") && !line.contains("pageable → pinned");
    assert!(!text.lines().any(|line| is_same(&line)), "{text}");
    let rows = |text: &str| text.lines().filter(|line| line.starts_with("  ")).count();
    assert!(rows(&text) < rows(&shown(&PINNED, None, Format::Terminal)), "{text}");
}

/// The page has one row per figure of the JSON.
#[test]
fn every_figure_is_one_row_of_the_page() {
    let runs: Vec<Drawn> = PINNED.iter().map(|name| drawn(name)).collect();
    let diagnoses: Vec<_> = runs.iter().map(|run| run.diagnosis.clone()).collect();
    let figures = compare(&diagnoses, None).figures.len();
    let page = shown(&PINNED, None, Format::Html);
    let tables = page.split("<section class=\"tables\">").nth(1).unwrap();
    let tables = tables.split("</section>").next().unwrap();
    assert_eq!(tables.matches("<tr><td>").count(), figures);
}

#[test]
fn a_sweep_shows_its_throughput_in_plain_factors() {
    let labels = Labels::new("batch", vec![1.0, 2.0]);
    let names = ["off_block_pinned_c4.json.gz", "off_block_pageable_c4.json.gz"];
    let text = shown(&names, Some(&labels), Format::Terminal);
    assert!(
        text.starts_with(
            "2x batch: 104 ms → 274 ms per step (2.6x), 0.76x throughput. Grew more than batch: copying only (5.7x, +169 ms per step)."
        ),
        "{text}"
    );
    assert!(text.contains("copying only grew 5.7x: 133 ms more than in proportion to batch"), "{text}");
    assert!(text.contains("batch=2  274 ms      7.29/s       99%             75%"), "{text}");
}

/// `diagnose` had them, `compare` only the sum.
#[test]
fn copies_of_runs_without_gpu_events_are_compared_by_size_and_rate() {
    const RUNS: [&str; 2] = ["cpuonly_block_pageable.json.gz", "cpuonly_block_pageable.json.gz"];
    for format in [Format::Terminal, Format::Markdown, Format::Html] {
        let text = shown(&RUNS, None, format);
        for part in ["blocking copies: P10 of the rates", "P90 of the rates", "blocking copies, ", ": rate"] {
            assert!(text.contains(part), "{format:?}: no {part:?} in {text}");
        }
    }
}
