//! Many ranks: 64 traces in a directory against one, within a memory bound, and a thousand summaries merged.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use super::measure::{extremes, in_turn};
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
        one_after_another(&ranks),
        diagnose(&one.plain, &[]),
        diagnose(&ranks, &["--memory", &bound]),
        diagnose(&ranks, &["--memory", &bound, "--jobs", "1"]),
        merge(&summaries),
    ];
    let runs = in_turn(&mut commands, rounds)?;
    let [singly, one_run, all, in_turn, merged] = &runs[..] else {
        unreachable!("five commands give five results")
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let of_cores = |ratio: f64| ratio * cores as f64;
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
        (format!("{RANKS} × `busbound diagnose` of one, one after another on one core"), singly),
        (format!("`busbound diagnose` of one, {cores} cores"), one_run),
        (format!("`busbound diagnose` of {RANKS}, `--memory {bound}`"), all),
        (format!("`busbound diagnose` of {RANKS}, `--memory {bound} --jobs 1`"), in_turn),
        (format!("`busbound merge` of {SUMMARIES} summaries"), merged),
    ] {
        writeln!(
            text,
            "| {what} | {} | {:.2} s | {} |",
            run.shown(),
            run.processor_mean(),
            // Of the programs one after another only the shell that starts them was watched.
            if std::ptr::eq(run, singly) { String::new() } else { format!("{:.0} MB", run.peak_mb) },
        )?;
    }
    writeln!(text)?;
    let (least, most) = extremes(&all.ratios(singly));
    writeln!(
        text,
        "- {RANKS} ranks: **{:.2} ×** ({RANKS} × one ÷ {cores} cores), each round's against the same round's, median; {:.2} to {:.2} \
         (bar 1.15). One is a trace on one core. Against one that has all cores to itself it is {:.2} ×: \
         that one uses them too, so that {RANKS} of them cannot be {cores} times as fast.",
        of_cores(all.over(singly)),
        of_cores(least),
        of_cores(most),
        of_cores(all.over(one_run) / RANKS as f64)
    )?;
    writeln!(
        text,
        "- processor time: **{:.2} ×** that of {RANKS} runs of one; the {RANKS} ranks had {:.1} of the {cores} cores",
        all.processor_mean() / singly.processor_mean(),
        all.processor_mean() / all.median()
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

/// 64 × one as it says: a program for each, on one core, and nothing beside it.
fn one_after_another(ranks: &Path) -> Command {
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            r#"for rank in "$2"/*; do "$1" diagnose "$rank" --quiet --threads 1 || exit; done"#,
            "sh",
        ])
        .arg(busbound())
        .arg(ranks);
    on_one_core(command)
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
