//! `cargo xtask bench`: how fast, how much memory, how large. Compares ratios within one run, because machines and
//! load differ; the raw figures are listed as well.

mod build;
mod fuzz;
mod instructions;
mod measure;
mod merge;
mod nsight;
mod peers;
mod ranks;
mod ray;
mod reading;
mod replicate;
mod shapes;

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;

use crate::shell::{cargo, output, root, run as run_command, say};

#[derive(Args)]
pub(crate) struct BenchArgs {
    /// The trace to replicate [default: df_index_resolver from the peer traces; with --nsight, mfu_2gpu_before.sqlite]
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Also load with HTA, in a virtual environment made for it
    #[arg(long)]
    peers: bool,
    /// Also fuzz the reader for a minute
    #[arg(long)]
    fuzz: bool,
    /// Only measure clean builds and tests: docs/results/build.md
    #[arg(long)]
    build: bool,
    /// Only measure reading: docs/results/reading.md
    #[arg(long)]
    reading: bool,
    /// Only measure many ranks: docs/results/ranks.md
    #[arg(long)]
    ranks: bool,
    /// Only measure merging 1,000 summaries: docs/results/ranks.md
    #[arg(long)]
    merge: bool,
    /// Only measure 1,000 traces on a Ray cluster of this machine: docs/results/ranks.md
    #[arg(long)]
    ray: bool,
    /// Only measure large Nsight exports: docs/results/nsight.md
    #[arg(long, conflicts_with = "merge")]
    nsight: bool,
    /// Only measure traces of unusual shapes: docs/results/shapes.md
    #[arg(long, conflicts_with_all = ["merge", "nsight"])]
    shapes: bool,
    /// With --merge, --nsight or --shapes: the busbound to measure [default: the release build]
    #[arg(long)]
    program: Option<PathBuf>,
    /// Runs per measurement
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

/// Where the large traces are generated; not under version control.
fn scratch() -> PathBuf {
    root().join("target/bench")
}

/// The release binary that users get.
fn busbound() -> PathBuf {
    root().join("target/release/busbound")
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    if args.merge || args.nsight || args.shapes {
        let program = args.program.clone().unwrap_or_else(busbound);
        if args.program.is_none() {
            run_command(&mut cargo(&["build", "--release", "--locked", "--bin", "busbound"]))?;
        }
        return match () {
            () if args.nsight => nsight::run(&program, args.trace.as_deref(), args.runs),
            () if args.shapes => shapes::run(&program, args.runs),
            () => merge::run(&program, args.runs),
        };
    }
    if args.ray {
        return ray::run(args.runs);
    }
    if args.build {
        return build::run();
    }
    let trace = args
        .trace
        .clone()
        .unwrap_or_else(|| root().join("../shared/peers/hta/df_index_resolver/df_index_resolver.json.gz"));
    ensure!(trace.is_file(), "{} does not exist: pass a large trace with --trace", trace.display());
    run_command(&mut cargo(&["build", "--release", "--locked", "--bin", "busbound"]))?;
    fs::create_dir_all(scratch())?;
    if !args.reading {
        ranks::run(&trace, args.runs)?;
        merge::run(&busbound(), args.runs)?;
    }
    if args.ranks {
        return Ok(());
    }
    let mut report = Report::new(&trace)?;
    report.section(&reading::run(&trace, args.runs)?);
    report.section(&instructions::run(&trace)?);
    if args.peers {
        report.section(&peers::run(args.runs)?);
    }
    if args.fuzz {
        report.section(&fuzz::run()?);
    }
    report.write()?;
    if args.reading {
        return Ok(());
    }
    crate::web::bench()?;
    // The results pages that tests compute and check against their limits.
    let pages = ["test", "--release", "--locked", "-p", "busbound-report", "--test", "suite", "--"];
    let mut pages = cargo(&[&pages[..], &["bench::", "whatif::"]].concat());
    run_command(pages.env("INSTA_UPDATE", "always"))
}

/// Where and when: figures differ between machines and days.
fn machine() -> anyhow::Result<String> {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("");
    let cpu = cpu.trim_start_matches([' ', '\t', ':']);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let date = output(std::process::Command::new("date").arg("+%Y-%m-%d"))?;
    let rustc = output(std::process::Command::new("rustc").arg("--version"))?;
    Ok(format!("{}, {cores} cores, {}, {}", cpu.trim(), rustc.trim(), date.trim()))
}

/// The results, for people.
struct Report {
    text: String,
}

impl Report {
    fn new(trace: &std::path::Path) -> anyhow::Result<Self> {
        let mut text = String::from("# Reading speed\n\n");
        writeln!(text, "Written by `cargo xtask bench`. {}.", machine()?)?;
        let name = trace.file_name().unwrap_or_default().to_string_lossy().into_owned();
        writeln!(
            text,
            "Trace: {name}, its events repeated in time; medians with the fastest and slowest run \
             in parentheses, all programs interleaved in the same run.\n"
        )?;
        Ok(Self { text })
    }

    fn section(&mut self, text: &str) {
        say(text);
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn write(&self) -> anyhow::Result<()> {
        let path = root().join("docs/results/reading.md");
        fs::create_dir_all(path.parent().context("a file has a folder")?)?;
        fs::write(&path, &self.text)?;
        say(&format!("written to {}", path.strip_prefix(root()).unwrap_or(&path).display()));
        Ok(())
    }
}
