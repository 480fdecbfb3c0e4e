//! A job of 1,000 ranks: reading their summaries, aligning their clocks by 256 collectives each, and saying who is late.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::measure::Runs;
use super::ranks::write_section;
use super::{machine, scratch};
use crate::shell::{output, root, run as run_command, say};

const RANKS: i64 = 1_000;
/// As many as a summary keeps.
const COLLECTIVES: i64 = 256;
/// The rank that all others wait for, and by how much, in ns.
const LATE: i64 = 137;
const DELAY: i64 = 3_000_000;
const STEP: i64 = 100_000_000;
/// Seconds that merging, aligning and judging may take on two cores.
const BAR: f64 = 10.0;

/// Begins the section of docs/results/ranks.md that this writes.
const HEADING: &str = "## 1,000 ranks";

/// `program` is the busbound to measure.
pub(super) fn run(program: &Path, repetitions: usize) -> anyhow::Result<()> {
    let folder = summaries(program)?;
    let merge = || {
        let mut command = Command::new(program);
        command.arg("merge").arg(&folder).arg("--quiet");
        command
    };
    let said = output(&mut merge())?;
    let late = format!("rank {LATE}");
    ensure!(said.contains(&late), "the answer does not name {late}:\n{}", &said[..said.len().min(2_000)]);
    let mut runs = Runs::default();
    for _ in 0..repetitions {
        runs.once(&mut merge())?;
    }
    let kind =
        if program.components().any(|part| part.as_os_str() == "release") { "release" } else { "debug" };
    let mut text = format!("{HEADING}\n\n");
    writeln!(text, "Written by `cargo xtask bench --merge`. {}, {kind} build.", machine()?)?;
    writeln!(
        text,
        "{RANKS} synthetic summaries with {COLLECTIVES} collectives each, every rank with its own clock (offset and drift); rank {LATE} arrives {} ms late. \
         `busbound merge` reads them, aligns the clocks, compares the ranks and names it. Median with the fastest and slowest of {repetitions} runs in parentheses.\n",
        DELAY / 1_000_000
    )?;
    writeln!(text, "| | wall | CPU time | peak memory |\n|---|---:|---:|---:|")?;
    writeln!(
        text,
        "| `busbound merge` of {RANKS} summaries | {} | {:.2} s | {:.0} MB |\n",
        runs.shown(),
        runs.processor_mean(),
        runs.peak_mb
    )?;
    writeln!(text, "- merge, align and judge: **{:.2} s** (limit {BAR:.0})", runs.median())?;
    write_section(HEADING, &text)?;
    say(&text);
    ensure!(runs.median() <= BAR, "{:.2} s are more than {BAR} s", runs.median());
    Ok(())
}

/// A directory of summaries, made from one of a synthetic rank.
fn summaries(program: &Path) -> anyhow::Result<PathBuf> {
    let folder = scratch().join("thousand");
    if folder.is_dir() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let trace = root().join("fixtures/ranks/rank-0.json");
    run_command(Command::new(program).arg("summarize").arg(trace).arg("-o").arg(&folder).arg("--quiet"))?;
    let made = fs::read_dir(&folder)?.next().context("summarize wrote nothing")??.path();
    let mut summary: Value = serde_json::from_str(&fs::read_to_string(&made)?)?;
    fs::remove_file(made)?;
    for rank in 0..RANKS {
        summary["rank"] = json!({
            "rank": rank, "world_size": RANKS, "backend": "nccl", "origin": "distributed_info"
        });
        summary["path"] = json!(format!("rank-{rank}.json"));
        summary["collective_times"] = collective_times(rank);
        fs::write(folder.join(format!("rank-{rank}.rank.json")), serde_json::to_string(&summary)?)?;
    }
    Ok(folder)
}

/// All ranks leave a collective when the last one has arrived; each sees it on its own clock.
fn collective_times(rank: i64) -> Value {
    // Hours apart, up to 20 parts per million faster.
    let clock = |at: i64| 3_600_000_000_000 * rank + at + at / 1_000_000 * (rank % 21);
    let scatter = |number: i64| (rank * 7_919 + number * 104_729) % 5_000;
    let own = |at: i64| if rank == LATE { at } else { at - DELAY - (rank * 31) % 1_000_000 };
    let numbers = || 0..COLLECTIVES;
    let last = |number: i64| (number + 1) * STEP;
    let start = |number: i64| clock(own(last(number)));
    let length = |number: i64| clock(last(number) + 1_000_000 + scatter(number)) - start(number);
    let all = |of: &dyn Fn(i64) -> i64| numbers().map(of).collect::<Vec<i64>>();
    let compute = if rank == LATE { 60_000_000 + DELAY } else { 60_000_000 };
    json!({
        "per_step": 1.0,
        "keys": all(&|number| 1_000_003 * (number + 1)),
        "group_sizes": all(&|_| RANKS),
        "starts_ns": all(&start),
        "durations_ns": all(&length),
        "compute_ns": all(&|_| compute),
        "copy_ns": all(&|_| 20_000_000),
        "input_ns": all(&|_| 0),
        "idle_ns": all(&|_| 0),
    })
}
