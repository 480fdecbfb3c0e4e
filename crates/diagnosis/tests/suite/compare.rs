//! What a comparison says about runs whose difference is known.

use crate::common::{diagnosis_of, root};
use crate::regression::events::{annotation, call, copy, kernel, step, with};
use busbound_diagnosis::{Comparison, Diagnosis, Figure, FigureGroup, Outcome, compare};
use serde_json::Value;

const PAGEABLE: &str = "Memcpy HtoD (Pageable -> Device)";
const PINNED: &str = "Memcpy HtoD (Pinned -> Device)";

fn fixture(name: &str) -> Diagnosis {
    diagnosis_of(&root().join("fixtures").join(format!("{name}.json.gz")))
}

/// What one step does: copies, then a kernel to the end of the step, under a block.
#[derive(Clone, Copy)]
struct Program {
    copies: &'static [(&'static str, u64)],
    kernels: &'static [&'static str],
    block: &'static str,
}

const PLAIN: Program = Program { copies: &[], kernels: &["gemm"], block: "forward" };

/// A run of steps with these lengths in microseconds.
fn run(lengths: &[u32], program: Program) -> Diagnosis {
    with(&trace(lengths, program), |options| options.warmup = Some(0))
}

fn trace(lengths: &[u32], program: Program) -> Vec<Value> {
    let (mut events, mut at, mut correlation) = (Vec::new(), 0, 0);
    for (i, &length) in (0u32..).zip(lengths) {
        events.push(step(i, at, length));
        events.push(annotation(program.block, 1, at + 1, length - 2));
        let mut from = at + 10;
        for (name, bytes) in program.copies {
            correlation += 1;
            events.push(call("cudaMemcpyAsync", correlation, from - 5, 2));
            events.push(copy(name, 7, correlation, from, 100, *bytes));
            from += 100;
        }
        let each = (at + length - from) / program.kernels.len() as u32;
        for name in program.kernels {
            correlation += 1;
            events.push(call("cudaLaunchKernel", correlation, from - 2, 1));
            events.push(kernel(name, 7, correlation, from, each));
            from += each;
        }
        at += length;
    }
    events
}

fn of(comparison: &Comparison, group: FigureGroup) -> Vec<&Figure> {
    comparison.figures.iter().filter(|figure| figure.group == group).collect()
}

fn names(figures: &[&Figure]) -> Vec<String> {
    figures.iter().map(|figure| figure.name.clone()).collect()
}

#[test]
fn the_headline_is_a_factor() {
    let (slow, fast) = (run(&[9600; 5], PLAIN), run(&[2000; 5], PLAIN));
    let faster = compare(&[slow.clone(), fast.clone()], None);
    assert!(faster.statement.starts_with("4.8x faster (9.60 ms → 2.00 ms). "), "{}", faster.statement);
    assert!(faster.statement.contains("Largest change per step: compute"), "{}", faster.statement);
    assert_eq!(faster.change.unwrap().outcome, Outcome::Faster);
    let slower = compare(&[fast, slow], None);
    assert!(slower.statement.starts_with("4.8x slower (2.00 ms → 9.60 ms)"), "{}", slower.statement);
    let change = slower.change.unwrap();
    assert_eq!((change.outcome, (change.factor * 10.0).round()), (Outcome::Slower, 48.0));
}

#[test]
fn within_the_spread_of_the_steps_there_is_no_clear_difference() {
    let before = run(&[1000, 1100, 1200, 1300, 1400], PLAIN);
    let after = run(&[900, 1000, 1100, 1200, 1300], PLAIN);
    let comparison = compare(&[before.clone(), after], None);
    assert_eq!(
        comparison.statement,
        "No clear difference (1.20 ms → 1.10 ms): steps vary by ±100 µs within a run."
    );
    assert_eq!(comparison.change.unwrap().largest_part, None);
    let same = compare(&[before.clone(), before], None);
    assert_eq!(
        same.statement,
        "No clear difference (1.20 ms → 1.20 ms): they are within 0.5% of each other."
    );
}

/// One slow step made a run that is clearly faster look like chance.
#[test]
fn one_slow_step_does_not_hide_a_difference() {
    let before = run(&[5000, 5010, 5020, 5030, 5040], PLAIN);
    let after = run(&[1000, 1010, 1020, 1030, 5500], PLAIN);
    let statement = compare(&[before, after], None).statement;
    assert!(statement.starts_with("2.6x faster (5.02 ms → 1.91 ms)"), "{statement}");
}

#[test]
fn a_single_step_has_no_spread_and_says_so() {
    let statement = compare(&[run(&[2000], PLAIN), run(&[1000], PLAIN)], None).statement;
    assert!(statement.starts_with("2.0x faster (2.00 ms → 1.00 ms)."), "{statement}");
    assert!(statement.ends_with("One run has only one step, so its spread is unknown."), "{statement}");
}

/// In each run the parts sum to the step, so their differences sum to its difference.
#[test]
fn the_parts_explain_the_whole_difference() {
    for (before, after) in [
        ("off_block_pageable_c4", "off_block_pinned_c4"),
        ("pipe_serial", "pipe_overlap"),
        ("train_pageable", "train_pinned"),
        ("runs/nested_blocks", "runs/broken_compile"),
    ] {
        let comparison = compare(&[fixture(before), fixture(after)], None);
        let [step] = of(&comparison, FigureGroup::Step)[..] else { panic!("{before}: one step") };
        let parts = of(&comparison, FigureGroup::Part);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(near(parts.iter().map(|part| part.delta).sum(), step.delta), "{before}");
        for i in 0..2 {
            assert!(near(parts.iter().map(|part| part.values[i]).sum(), step.values[i]), "{before} {i}");
        }
        assert!(parts.is_sorted_by(|a, b| a.delta.abs() >= b.delta.abs()), "{before}");
    }
}

/// The workers of a loader start while the GPU has no work. That time was once in no part of the step.
#[test]
fn time_without_gpu_work_is_explained_too() {
    let comparison = compare(&[fixture("train_pageable"), fixture("train_pinned")], None);
    assert!(comparison.statement.contains("idle: waiting for input"), "{}", comparison.statement);
}

#[test]
fn copies_that_moved_to_pinned_memory_are_one_row() {
    let of_copies = |copies| run(&[2000; 4], Program { copies, ..PLAIN });
    let rows = |before, after| -> Vec<(String, Vec<f64>)> {
        let comparison = compare(&[of_copies(before), of_copies(after)], None);
        let bytes =
            of(&comparison, FigureGroup::Copies).into_iter().filter(|row| row.name.ends_with(": bytes"));
        bytes.map(|row| (row.name.clone(), row.values.clone())).collect()
    };
    let one = |name: &str, values: [f64; 2]| (name.to_owned(), values.to_vec());
    assert_eq!(
        rows(&[(PAGEABLE, 4_000_000)], &[(PINNED, 4_000_000)]),
        [one("H2D pageable → pinned: bytes", [4.0, 4.0])]
    );
    // A small pinned copy in the first run belongs to the same row.
    assert_eq!(
        rows(&[(PAGEABLE, 4_000_000), (PINNED, 1_000)], &[(PINNED, 4_000_000)]),
        [one("H2D pageable → pinned: bytes", [4.001, 4.0])]
    );
    // Other bytes are other copies.
    assert_eq!(
        rows(&[(PAGEABLE, 4_000_000)], &[(PINNED, 9_000_000)]),
        [one("H2D pageable: bytes", [4.0, 0.0]), one("H2D pinned: bytes", [0.0, 9.0])]
    );
    // Half of the copies moved: both kinds stay rows of their own.
    assert_eq!(
        rows(&[(PAGEABLE, 2_000_000), (PAGEABLE, 2_000_000)], &[(PAGEABLE, 2_000_000), (PINNED, 2_000_000)]),
        [one("H2D pageable: bytes", [4.0, 2.0]), one("H2D pinned: bytes", [0.0, 2.0])]
    );
}

#[test]
fn kernels_are_compared_by_name_and_sum_to_all_kernels() {
    let kernels = |kernels| run(&[12_000; 4], Program { kernels, ..PLAIN });
    let before = kernels(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    let after = kernels(&["a", "a", "a", "new"]);
    let comparison = compare(&[before, after], None);
    let rows = of(&comparison, FigureGroup::Kernel);
    assert_eq!(rows.len(), 9);
    assert_eq!(names(&rows)[..2], ["a", "new"]);
    assert_eq!(rows[8].name, "3 other kernels");
    let total: f64 = rows.iter().map(|row| row.delta).sum();
    let compute = comparison.figures.iter().find(|figure| figure.name == "compute").unwrap();
    assert!((total - compute.delta).abs() < 1e-9, "{total} {}", compute.delta);
    // The same kernels, with differences that are not worth a row.
    let same = compare(&[fixture("train_pageable"), fixture("train_pinned")], None);
    assert_eq!(names(&of(&same, FigureGroup::Kernel)), ["all 28 kernels"]);
}

#[test]
fn blocks_are_compared_if_the_runs_share_any() {
    let blocks = |length, block| run(&[length; 4], Program { block, ..PLAIN });
    let comparison = compare(&[blocks(4000, "forward"), blocks(2000, "forward")], None);
    assert_eq!(names(&of(&comparison, FigureGroup::Block)), ["forward: GPU", "forward: host"]);
    let renamed = compare(&[blocks(4000, "forward"), blocks(2000, "eval")], None);
    assert!(of(&renamed, FigureGroup::Block).is_empty());
    assert_eq!(renamed.limitations, ["The runs have no annotated block in common."]);
}

#[test]
fn compiled_regions_are_compared() {
    let comparison = compare(&[fixture("runs/nested_blocks"), fixture("runs/broken_compile")], None);
    let rows = of(&comparison, FigureGroup::Compiled);
    // Without Python stacks two frames may be two functions: graph breaks are unknown and not 0.
    assert_eq!(names(&rows), ["compiled regions", "recompilations", "time spent compiling"]);
    assert_eq!((&rows[0].values[..], &rows[1].values[..]), (&[0.0, 2.0][..], &[0.0, 2.0][..]));
}

#[test]
fn batches_of_another_size_are_not_the_same_work() {
    const SMALL: Program = Program { copies: &[(PINNED, 4_000_000)], ..PLAIN };
    const LARGE: Program = Program { copies: &[(PINNED, 8_000_000)], ..PLAIN };
    let small = run(&[1000; 4], SMALL);
    let comparison = compare(&[small.clone(), run(&[1800; 4], LARGE)], None);
    let expected = "Probably not the same work: the last run copies 2.0x the bytes to the GPU per step, and its kernels take 1.9x as long";
    assert!(comparison.statement.contains(expected), "{}", comparison.statement);
    // A slower run of the same batches is the same work.
    let slower = compare(&[small, run(&[1800; 4], SMALL)], None);
    assert!(!slower.statement.contains("same work"), "{}", slower.statement);
}
