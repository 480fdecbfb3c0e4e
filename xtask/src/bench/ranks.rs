//! Many ranks: 64 traces in a directory against one, within a memory bound, and a thousand summaries merged.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use super::measure::in_turn;
use super::reading::on_one_core;
use super::replicate::replicate;
use super::{busbound, machine, scratch};
use crate::shell::{root, run as run_command, say};

const RANKS: usize = 64;
const SUMMARIES: usize = 1_000;
/// What the 64 traces may take together, in MB: with all held at once they would take more.
const BOUND_MB: f64 = 250.0;

pub(crate) fn run(trace: &Path, rounds: usize) -> anyhow::Result<()> {
    let one = replicate(trace, &scratch(), 1)?;
    let ranks = copies(&one.plain)?;
    let summaries = summaries(&one.plain)?;
    let bound = format!("{BOUND_MB}MB");
    let mut commands = [
        on_one_core(diagnose(&one.plain, &["--threads", "1"])),
        diagnose(&one.plain, &[]),
        diagnose(&ranks, &["--memory", &bound]),
        diagnose(&ranks, &["--memory", &bound, "--jobs", "1"]),
        merge(&summaries),
    ];
    let runs = in_turn(&mut commands, rounds)?;
    let [alone, one_run, all, in_turn, merged] = &runs[..] else {
        unreachable!("five commands give five results")
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // What one core would take for all of them, shared among the cores.
    let times = |all: f64, one: f64| all * cores as f64 / (RANKS as f64 * one);
    let mut text = String::from("# Many ranks\n\n");
    writeln!(text, "Written by `cargo xtask bench --ranks`. {}.", machine()?)?;
    writeln!(
        text,
        "Trace: {}, {:.0} MB of JSON; {RANKS} links to it in a directory, named rank-0.json to rank-{}.json. Medians with the \
         fastest and slowest of {rounds} runs in brackets, all commands taking turns.\n",
        trace.file_name().unwrap_or_default().to_string_lossy(),
        one.json_mb,
        RANKS - 1
    )?;
    writeln!(text, "| | wall | processor time | peak memory |\n|---|---:|---:|---:|")?;
    for (what, run) in [
        ("`busbound diagnose` of one, on one core".to_owned(), alone),
        (format!("`busbound diagnose` of one, {cores} cores"), one_run),
        (format!("`busbound diagnose` of {RANKS}, `--memory {bound}`"), all),
        (format!("`busbound diagnose` of {RANKS}, `--memory {bound} --jobs 1`"), in_turn),
        (format!("`busbound merge` of {SUMMARIES} summaries"), merged),
    ] {
        writeln!(
            text,
            "| {what} | {} | {:.2} s | {:.0} MB |",
            run.shown(),
            run.processor_mean(),
            run.peak_mb
        )?;
    }
    writeln!(text)?;
    writeln!(
        text,
        "- {RANKS} ranks, fastest run against fastest: **{:.2} ×** ({RANKS} × one ÷ {cores} cores), one being a trace on one core (bar 1.15). \
         Against one that has all cores to itself it is {:.2} ×: that one uses them too, so that {RANKS} of them cannot be {cores} times as fast.",
        times(all.fastest(), alone.fastest()),
        times(all.fastest(), one_run.fastest())
    )?;
    writeln!(
        text,
        "- median against median: {:.2} ×; the {RANKS} ranks then got {:.1} of the {cores} cores, the rest went to other work on this machine",
        times(all.median(), alone.median()),
        all.processor_mean() / all.median()
    )?;
    writeln!(
        text,
        "- processor time: **{:.2} ×** that of {RANKS} runs of one on one core",
        all.processor_mean() / (RANKS as f64 * alone.processor_mean())
    )?;
    let peak = all.peak_mb.max(in_turn.peak_mb);
    writeln!(text, "- memory: **{peak:.0} MB** of the {BOUND_MB:.0} MB given")?;
    writeln!(text, "- {SUMMARIES} summaries: **{:.3} s** (bar 2)", merged.median())?;
    let path = root().join("docs/results/ranks.md");
    fs::write(&path, &text)?;
    say(&text);
    Ok(())
}

fn diagnose(path: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(busbound());
    command.arg("diagnose").arg(path).arg("--quiet").args(more);
    command
}

fn merge(folder: &Path) -> Command {
    let mut command = Command::new(busbound());
    command.arg("merge").arg(folder).arg("--quiet");
    command
}

fn emptied(name: &str) -> anyhow::Result<PathBuf> {
    let folder = scratch().join(name);
    if folder.is_dir() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A directory of ranks. Links: the same bytes lie in the page cache either way, and the disk is spared.
fn copies(trace: &Path) -> anyhow::Result<PathBuf> {
    let folder = emptied("ranks")?;
    for rank in 0..RANKS {
        fs::hard_link(trace, folder.join(format!("rank-{rank}.json")))?;
    }
    Ok(folder)
}

/// A directory of summaries: that of the trace, as different ranks.
fn summaries(trace: &Path) -> anyhow::Result<PathBuf> {
    let folder = emptied("summaries")?;
    let mut summarize = Command::new(busbound());
    run_command(summarize.arg("summarize").arg(trace).arg("-o").arg(&folder).arg("--quiet"))?;
    let made = fs::read_dir(&folder)?.next().context("summarize wrote nothing")??.path();
    let mut summary: Value = serde_json::from_str(&fs::read_to_string(&made)?)?;
    fs::remove_file(made)?;
    for rank in 0..SUMMARIES {
        summary["rank"] = serde_json::json!({
            "rank": rank, "world_size": SUMMARIES, "backend": "nccl", "origin": "distributed_info"
        });
        summary["path"] = Value::from(format!("rank-{rank}.json"));
        // No two ranks are quite alike.
        let compute = summary["time"]["compute_ms"].as_f64().unwrap_or(0.0);
        summary["time"]["compute_ms"] = Value::from(compute + 1e-4 * (rank % 7) as f64);
        fs::write(folder.join(format!("rank-{rank}.rank.json")), serde_json::to_string(&summary)?)?;
    }
    Ok(folder)
}
