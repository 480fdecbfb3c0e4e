//! Does a diagnosis stay linear in traces of unusual shapes: many streams, devices, nested ranges, kernels? docs/results/shapes.md.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::measure::{Runs, extremes, interleaved};
use super::{machine, scratch};
use crate::shell::{root, say};

/// What a trace has many of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Streams,
    Devices,
    Nested,
    Kernels,
}

/// Each shape, the number that is asked for, and the most seconds of processor time for it, where that is asked.
const SHAPES: [(Shape, &str, u64, Option<f64>); 4] = [
    (Shape::Streams, "streams, a kernel on each", 100_000, Some(5.0)),
    (Shape::Devices, "devices, three kernels on each", 20_000, None),
    (Shape::Nested, "annotations inside each other", 5_000, None),
    (Shape::Kernels, "kernels on one stream", 3_000_000, None),
];

/// `program` is the busbound to measure.
pub(crate) fn run(program: &Path, repetitions: usize) -> anyhow::Result<()> {
    fs::create_dir_all(scratch())?;
    let mut text = String::from("# Traces of unusual shapes\n\n");
    writeln!(text, "Written by `cargo xtask bench --shapes`. {}.", machine()?)?;
    writeln!(
        text,
        "Traces in torch.profiler's format, made by xtask/src/bench/shapes.rs. Processor time of `busbound diagnose`, all threads, in seconds: the least of \
         {repetitions} runs; in parentheses the most. Half as many is measured too: twice the time is linear.\n"
    )?;
    writeln!(
        text,
        "| | half as many | peak memory | all | peak memory | times as long | goal |\n|---|---:|---:|---:|---:|---:|---:|"
    )?;
    for (shape, what, number, goal) in SHAPES {
        let [half, all] = [
            measure(program, shape, number / 2, repetitions)?,
            measure(program, shape, number, repetitions)?,
        ];
        let shown = |runs: &Runs| {
            let (least, most) = extremes(&runs.processor);
            format!("{least:.2} ({most:.2}) | {:.0} MB", runs.peak_mb)
        };
        let least = |runs: &Runs| extremes(&runs.processor).0;
        let said = goal.map_or("–".to_owned(), |goal| {
            format!("{goal} s: {}", if least(&all) <= goal { "met" } else { "missed" })
        });
        let times = least(&all) / least(&half).max(0.001);
        writeln!(text, "| {number} {what} | {} | {} | {times:.1} | {said} |", shown(&half), shown(&all))?;
    }
    say(&text);
    fs::write(root().join("docs/results/shapes.md"), text)?;
    Ok(())
}

fn measure(program: &Path, shape: Shape, number: u64, repetitions: usize) -> anyhow::Result<Runs> {
    let path: PathBuf = scratch().join("shape.json");
    write(&path, shape, number)?;
    let mut command = Command::new(program);
    command.arg("diagnose").arg(&path).args(["--quiet", "--threads", "2"]);
    let mut runs = interleaved(&mut [command], repetitions)?;
    fs::remove_file(&path)?;
    Ok(runs.remove(0))
}

/// A trace of this shape.
fn write(path: &Path, shape: Shape, number: u64) -> anyhow::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    write!(file, r#"{{"deviceProperties": [{{"id": 0, "name": "NVIDIA H200"}}], "traceEvents": ["#)?;
    let kernels = match shape {
        Shape::Devices => 3 * number,
        Shape::Nested => 200,
        Shape::Streams | Shape::Kernels => number,
    };
    if shape == Shape::Nested {
        for depth in 0..number {
            let (begin, length) = (depth, 100_000 - 2 * depth);
            writeln!(
                file,
                r#"{{"ph": "X", "cat": "user_annotation", "name": "block{depth}", "pid": 1, "tid": 1, "ts": {begin}, "dur": {length}}},"#
            )?;
        }
    }
    for kernel in 0..kernels {
        let (device, stream) = match shape {
            Shape::Streams => (0, kernel + 1),
            Shape::Devices => (kernel / 3, 7),
            Shape::Nested | Shape::Kernels => (0, 7),
        };
        let (id, call) = (kernel + 1, 10_000 + 10 * kernel);
        let (begin, name) = (call + 6, kernel % 50);
        let comma = if id < kernels { "," } else { "" };
        writeln!(
            file,
            r#"{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": {call}, "dur": 4, "args": {{"correlation": {id}}}}},
{{"ph": "X", "cat": "kernel", "name": "gemm{name}", "pid": {device}, "tid": {stream}, "ts": {begin}, "dur": 8, "args": {{"device": {device}, "stream": {stream}, "correlation": {id}}}}}{comma}"#
        )?;
    }
    write!(file, "]}}")?;
    Ok(())
}
