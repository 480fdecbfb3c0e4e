//! How long does another tool take to load the same trace? HTA (`traceinsight` on PyPI).

use std::fmt::Write;
use std::process::Command;

use super::measure::{Runs, interleaved};
use super::{busbound, scratch};
use crate::shell::run as run_command;

const LOAD: &str = "
import sys
from hta.common.trace import Trace
trace = Trace(trace_files={0: sys.argv[1]}, trace_dir='/')
trace.parse_traces(use_multiprocessing=False)
print(len(trace.get_trace(0)))
";

pub(crate) fn run(repetitions: usize) -> anyhow::Result<String> {
    let environment = scratch().join("hta");
    let python = environment.join("bin/python");
    if !python.exists() {
        run_command(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        run_command(Command::new(&python).args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "traceinsight==0.6.1",
            "pandas==2.3.*",
        ]))?;
    }
    let trace = scratch().join("x10.json.gz");
    let mut survey = Command::new(busbound());
    survey.arg("survey").arg(&trace).arg("--quiet");
    // HTA takes minutes: one run is enough to see a factor of 50.
    let mut hta = Runs::default();
    hta.once(Command::new(&python).args(["-c", LOAD]).arg(&trace))?;
    let ours = interleaved(&mut [survey], repetitions)?.remove(0);
    let mut text = String::from("## Against HTA\n\n| | wall | peak memory |\n|---|---:|---:|\n");
    writeln!(text, "| HTA 0.6.1, load of x10.json.gz | {} | {:.0} MB |", hta.shown(), hta.peak_mb)?;
    writeln!(text, "| `busbound survey x10.json.gz` | {} | {:.0} MB |\n", ours.shown(), ours.peak_mb)?;
    writeln!(text, "- **1/{:.0}** of HTA's load time (limit 1/50)", hta.median() / ours.median())?;
    Ok(text)
}
