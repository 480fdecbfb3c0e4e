//! `busbound record`.

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Starts CMD with a small library in it that records copies, kernels, calls, waits and NVTX ranges
through the process's own CUPTI. Its output, exit code and signals are its own. Each further process
that uses CUDA writes a file beside the first one: run.1234.bbt. A run that is killed loses the last
second at most.

Examples:
  busbound record -- python train.py
  busbound record -o run.bbt --delay 60 --duration 10 -- torchrun --nproc-per-node 8 train.py
  busbound diagnose run.bbt";

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Where the recording goes
    #[arg(short, long, value_name = "FILE.bbt", default_value = "run.bbt")]
    pub(crate) output: PathBuf,
    /// Seconds from the first use of CUDA until recording begins
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = parse_seconds)]
    pub(crate) delay: f64,
    /// Seconds that are recorded [default: all]
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub(crate) duration: Option<f64>,
    /// Overwrite a recording that is there
    #[arg(long)]
    pub(crate) force: bool,
    /// Say nothing about the recording
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..1e9).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds, e.g. 10 or 0.5".to_owned()),
    }
}
