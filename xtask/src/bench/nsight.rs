//! What does a large Nsight export cost? Processor time and memory of the commands that read one, at 312 MB and at ten times that:
//! docs/results/nsight.md.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

use super::measure::{Runs, interleaved};
use super::{machine, scratch};
use crate::shell::{root, run as run_command, say};

/// How often the export is repeated: 312 MB, and ten times as much.
const TIMES: [u32; 2] = [129, 1_290];

/// The commands, and what is asked of each at 312 MB: seconds of processor time, and MB.
const COMMANDS: [(&str, f64, f64); 3] =
    [("survey", 1.5, f64::INFINITY), ("diagnose", 3.0, 400.0), ("whatif", 6.0, f64::INFINITY)];

/// One size of the export.
struct Size {
    mb: f64,
    runs: Vec<Runs>,
}

/// `program` is the busbound to measure; `export`: another one to repeat.
pub(crate) fn run(program: &Path, export: Option<&Path>, repetitions: usize) -> anyhow::Result<()> {
    let default = || root().join("../shared/peers/nsys_ai/mfu_2gpu_before.sqlite");
    let source = export.map_or_else(default, Path::to_owned);
    ensure!(source.is_file(), "{} does not exist", source.display());
    fs::create_dir_all(scratch())?;
    let sizes = TIMES.into_iter().map(|times| measure(program, &source, times, repetitions));
    let sizes = sizes.collect::<anyhow::Result<Vec<Size>>>()?;
    let name = source.file_name().unwrap_or_default().to_string_lossy();
    let text = page(&name, &sizes)?;
    say(&text);
    fs::write(root().join("docs/results/nsight.md"), text)?;
    Ok(())
}

fn measure(program: &Path, source: &Path, times: u32, repetitions: usize) -> anyhow::Result<Size> {
    let export: PathBuf = scratch().join(format!("x{times}.sqlite"));
    let mut make = Command::new("python3");
    make.arg(root().join("fixtures/nsight/large.py")).args([source, &export]).arg(times.to_string());
    run_command(&mut make)?;
    let of = |(command, ..): &(&str, f64, f64)| {
        let mut measured = Command::new(program);
        measured.arg(command).arg(&export).args(["--quiet", "--threads", "2"]);
        measured
    };
    let mb = fs::metadata(&export)?.len() as f64 / 1e6;
    let runs = interleaved(&mut COMMANDS.iter().map(of).collect::<Vec<_>>(), repetitions);
    fs::remove_file(&export)?;
    Ok(Size { mb, runs: runs? })
}

fn page(name: &str, sizes: &[Size]) -> anyhow::Result<String> {
    let mut text = String::from("# Large Nsight exports\n\n");
    writeln!(text, "Written by `cargo xtask bench --nsight`. {}.", machine()?)?;
    writeln!(
        text,
        "A public export of two GPUs ({name}), repeated in time with new correlation IDs by fixtures/nsight/large.py. Processor time of all threads, in seconds: the \
         least of all runs, because other programs on the machine only add to it; in parentheses the most. All commands are interleaved.\n"
    )?;
    let mut head = "| |".to_owned();
    let mut line = "|---|".to_owned();
    for size in sizes {
        write!(head, " {:.0} MB | peak memory | ns per byte |", size.mb)?;
        line.push_str("---:|---:|---:|");
    }
    writeln!(text, "{head}\n{line}")?;
    for (at, (command, ..)) in COMMANDS.iter().enumerate() {
        write!(text, "| `busbound {command}` |")?;
        for size in sizes {
            let runs = &size.runs[at];
            let (least, most) = super::measure::extremes(&runs.processor);
            let each = least * 1e3 / size.mb;
            write!(text, " {least:.2} ({most:.2}) | {:.0} MB | {each:.1} |", runs.peak_mb)?;
        }
        writeln!(text)?;
    }
    writeln!(text, "\nGoals at {:.0} MB:\n", sizes[0].mb)?;
    for (at, (command, seconds, mb)) in COMMANDS.iter().enumerate() {
        let runs = &sizes[0].runs[at];
        let (least, _) = super::measure::extremes(&runs.processor);
        let said = |is_met: bool| if is_met { "met" } else { "missed" };
        write!(text, "- `{command}`: {seconds} s of processor time: {}", said(least <= *seconds))?;
        if mb.is_finite() {
            write!(text, "; {mb:.0} MB: {}", said(runs.peak_mb <= *mb))?;
        }
        writeln!(text)?;
    }
    Ok(text)
}
