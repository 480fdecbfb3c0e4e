//! `busbound record`.

use std::path::PathBuf;

use clap::Args;

pub(super) const EXAMPLES: &str = "\
Examples:
  busbound record -- python train.py
  busbound record -o run.bbt --delay 60 --duration 10 -- torchrun train.py
  busbound run.bbt                      diagnose what was recorded";

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Write the recording to this file
    #[arg(short, long, value_name = "FILE.bbt", default_value = "run.bbt")]
    pub(crate) output: PathBuf,
    /// Start recording this many seconds after the first CUDA call
    #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = parse_seconds)]
    pub(crate) delay: f64,
    /// Stop recording after this many seconds [default: at the end of the run]
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub(crate) duration: Option<f64>,
    /// Overwrite an existing recording
    #[arg(long)]
    pub(crate) force: bool,
    /// Print nothing about the recording
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program to run, and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..1e9).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds, e.g. 10 or 0.5".to_owned()),
    }
}
