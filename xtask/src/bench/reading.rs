//! Compares `survey` with `gzip -dc` of the same file, on one core and two, and over sizes.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use super::measure::interleaved;
use super::replicate::replicate;
use super::{busbound, scratch};

fn survey(path: &Path, threads: usize) -> Command {
    let mut command = Command::new(busbound());
    command.arg("survey").arg(path).args(["--quiet", "--threads", &threads.to_string()]);
    command
}

fn diagnose(path: &Path) -> Command {
    let mut command = Command::new(busbound());
    command.arg("diagnose").arg(path).args(["--quiet", "--threads", "2"]);
    command
}

/// All threads of the program on one core.
pub(super) fn on_one_core(mut command: Command) -> Command {
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", "0"]).arg(command.get_program()).args(command.get_args());
    std::mem::swap(&mut command, &mut pinned);
    command
}

pub(crate) fn run(trace: &Path, repetitions: usize) -> anyhow::Result<String> {
    let mut text = String::new();
    let ten = replicate(trace, &scratch(), 10)?;
    let mut gunzip = Command::new("gzip");
    gunzip.arg("-dc").arg(&ten.gzip);
    let mut commands = [
        gunzip,
        survey(&ten.gzip, 2),
        diagnose(&ten.gzip),
        survey(&ten.plain, 2),
        on_one_core(survey(&ten.plain, 1)),
    ];
    let runs = interleaved(&mut commands, repetitions)?;
    let [gunzip, gzip, diagnose, two, one] = &runs[..] else {
        unreachable!("five commands give five results")
    };
    let (ratio, cores) = (gzip.over(gunzip), one.over(two));
    writeln!(text, "## 10x the trace, {:.0} MB of JSON\n", ten.json_mb)?;
    writeln!(text, "| | wall | MB/s of JSON | peak memory |\n|---|---:|---:|---:|")?;
    for (what, run) in [
        ("`gzip -dc` to /dev/null", gunzip),
        ("`busbound survey x10.json.gz`", gzip),
        ("`busbound diagnose x10.json.gz`", diagnose),
        ("`busbound survey x10.json`, two cores", two),
        ("`busbound survey x10.json`, one core", one),
    ] {
        writeln!(
            text,
            "| {what} | {} | {:.0} | {:.0} MB |",
            run.shown(),
            ten.json_mb / run.median(),
            run.peak_mb
        )?;
    }
    writeln!(text)?;
    writeln!(text, "- survey of the gzip file: **{ratio:.2}x** `gzip -dc` (limit 1.0, goal 0.6)")?;
    writeln!(
        text,
        "- diagnosis of it: **{:.2}x** its survey (limit 2.0, including steps, blocks and the critical path)",
        diagnose.over(gzip)
    )?;
    writeln!(text, "- plain JSON, two cores compared with one: **{cores:.2}x** (limit 1.6)")?;
    writeln!(text, "- peak memory: **{:.0} MB** (limit 300)\n", gzip.peak_mb.max(two.peak_mb))?;

    text += &by_size(trace, repetitions)?;
    Ok(text)
}

fn by_size(trace: &Path, repetitions: usize) -> anyhow::Result<String> {
    let mut text = String::new();
    writeln!(text, "## Time by size\n")?;
    writeln!(
        text,
        "| times | JSON | survey, gzip file | ns per byte | peak memory | survey, plain | diagnosis, gzip file | of its survey |\n|---|---:|---:|---:|---:|---:|---:|---:|"
    )?;
    for times in [1, 10, 30] {
        let replica = replicate(trace, &scratch(), times)?;
        let mut commands = [survey(&replica.gzip, 2), survey(&replica.plain, 2), diagnose(&replica.gzip)];
        let runs = interleaved(&mut commands, repetitions)?;
        let [gzip, plain, diagnosed] = &runs[..] else { unreachable!("three commands give three results") };
        writeln!(
            text,
            "| {times}x | {:.0} MB | {} | {:.2} | {:.0} MB | {} | {} | {:.2}x |",
            replica.json_mb,
            gzip.shown(),
            gzip.median() * 1e3 / replica.json_mb,
            gzip.peak_mb,
            plain.shown(),
            diagnosed.shown(),
            diagnosed.over(gzip),
        )?;
        if times == 30 {
            std::fs::remove_file(&replica.plain)?;
            std::fs::remove_file(&replica.gzip)?;
        }
    }
    Ok(text)
}
