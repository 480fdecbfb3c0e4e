//! Many ranks: 64 traces in a directory compared with one, within a memory limit, and merging a thousand summaries.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use super::measure::{extremes, interleaved};
use super::reading::on_one_core;
use super::replicate::replicate;
use super::{busbound, machine, scratch};
use crate::shell::{root, run as run_command, say};

const HEADING: &str = "# Many ranks";
const RANKS: usize = 64;
const SUMMARIES: usize = 1_000;
/// Memory limit for all 64 traces, in MB: all of them at the same time would need more.
const BOUND_MB: f64 = 250.0;

pub(crate) fn run(trace: &Path, repetitions: usize) -> anyhow::Result<()> {
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
    let runs = interleaved(&mut commands, repetitions)?;
    let [singly, one_run, all, one_job, merged] = &runs[..] else {
        unreachable!("five commands give five results")
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let of_cores = |ratio: f64| ratio * cores as f64;
    let mut text = format!("{HEADING}\n\n");
    writeln!(text, "Written by `cargo xtask bench --ranks`. {}.", machine()?)?;
    writeln!(
        text,
        "Trace: {}, {:.0} MB of JSON; {RANKS} links to it in a directory, named rank-0.json to rank-{}.json. Medians with the \
         fastest and slowest of {repetitions} runs in parentheses, all commands interleaved.\n",
        trace.file_name().unwrap_or_default().to_string_lossy(),
        one.json_mb,
        RANKS - 1
    )?;
    writeln!(text, "| | wall | CPU time | peak memory |\n|---|---:|---:|---:|")?;
    for (what, run) in [
        (format!("{RANKS} × `busbound diagnose` of one trace, one after another on one core"), singly),
        (format!("`busbound diagnose` of one trace, {cores} cores"), one_run),
        (format!("`busbound diagnose` of {RANKS} traces, `--memory {bound}`"), all),
        (format!("`busbound diagnose` of {RANKS} traces, `--memory {bound} --jobs 1`"), one_job),
        (format!("`busbound merge` of {SUMMARIES} summaries"), merged),
    ] {
        writeln!(
            text,
            "| {what} | {} | {:.2} s | {} |",
            run.shown(),
            run.processor_mean(),
            // For the sequential runs, only the shell that starts them was monitored.
            if std::ptr::eq(run, singly) { String::new() } else { format!("{:.0} MB", run.peak_mb) },
        )?;
    }
    writeln!(text)?;
    let (least, most) = extremes(&all.ratios(singly));
    writeln!(
        text,
        "- {RANKS} ranks: **{:.2}x** ({RANKS} × one ÷ {cores} cores), median of the ratios per iteration; {:.2}–{:.2} \
         (limit 1.15). One is one trace on one core. Compared with one trace on all cores it is {:.2}x: \
         that run also uses all cores, so {RANKS} traces cannot be {cores}x as fast.",
        of_cores(all.over(singly)),
        of_cores(least),
        of_cores(most),
        of_cores(all.over(one_run) / RANKS as f64)
    )?;
    writeln!(
        text,
        "- CPU time: **{:.2}x** that of {RANKS} runs of one trace; the {RANKS} ranks used {:.1} of the {cores} cores",
        all.processor_mean() / singly.processor_mean(),
        all.processor_mean() / all.median()
    )?;
    let peak = all.peak_mb.max(one_job.peak_mb);
    writeln!(text, "- memory: **{peak:.0} MB** of {BOUND_MB:.0} MB allowed")?;
    writeln!(text, "- {SUMMARIES} summaries: **{:.3} s** (limit 2)", merged.median())?;
    write_section(HEADING, &text)?;
    say(&text);
    Ok(())
}

/// Replaces the part of the page below this heading, up to the next section; adds it if there is none.
pub(super) fn write_section(heading: &str, text: &str) -> anyhow::Result<()> {
    let path = root().join("docs/results/ranks.md");
    fs::write(&path, with_section(&fs::read_to_string(&path)?, heading, text))?;
    Ok(())
}

fn with_section(page: &str, heading: &str, text: &str) -> String {
    let part = |(at, text): (usize, &str)| {
        let heading = if at == 0 { "" } else { "## " };
        format!("{heading}{}", text.trim_end())
    };
    let mut parts: Vec<String> = page.split("\n## ").enumerate().map(part).collect();
    let new = text.trim_end().to_owned();
    match parts.iter().position(|part| part.lines().next() == Some(heading)) {
        Some(at) => parts[at] = new,
        None => parts.push(new),
    }
    parts.join("\n\n") + "\n"
}

fn diagnose(path: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(busbound());
    command.arg("diagnose").arg(path).arg("--quiet").args(more);
    command
}

/// 64 × one: one process per trace, on one core, and nothing else running.
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

/// A directory of ranks. Hard links: the page cache holds the same bytes, and no disk space is needed.
fn copies(trace: &Path) -> anyhow::Result<PathBuf> {
    let folder = emptied("ranks")?;
    for rank in 0..RANKS {
        fs::hard_link(trace, folder.join(format!("rank-{rank}.json")))?;
    }
    Ok(folder)
}

/// A directory of summaries: copies of the trace's summary, with different ranks.
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
        // Make the ranks slightly different.
        let compute = summary["time"]["compute_ms"].as_f64().unwrap_or(0.0);
        summary["time"]["compute_ms"] = Value::from(compute + 1e-4 * (rank % 7) as f64);
        fs::write(folder.join(format!("rank-{rank}.rank.json")), serde_json::to_string(&summary)?)?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_replaced_and_the_others_stay() {
        let page = "# Ranks\n\na\n\n## 1,000 ranks\n\nb\n\n## 1,000 ranks on Ray\n\nc\n";
        assert_eq!(
            with_section(page, "## 1,000 ranks", "## 1,000 ranks\n\nnew\n"),
            "# Ranks\n\na\n\n## 1,000 ranks\n\nnew\n\n## 1,000 ranks on Ray\n\nc\n"
        );
        assert_eq!(
            with_section(page, "# Ranks", "# Ranks\n\nnew"),
            "# Ranks\n\nnew\n\n## 1,000 ranks\n\nb\n\n## 1,000 ranks on Ray\n\nc\n"
        );
        assert!(with_section(page, "## Other", "## Other\n\nd\n").ends_with("c\n\n## Other\n\nd\n"));
    }
}
