//! A program that is recorded.

use std::path::Path;
use std::process::Command;

use busbound_capture::inject;

use super::library::CAPTURE;
use crate::failure::Failure;

/// Loads the recording library into the program: it records to this file, after `delay` seconds, for `duration` or to the end.
pub(crate) fn recording(
    command: &mut Command,
    to: &Path,
    delay: f64,
    duration: Option<f64>,
) -> Result<(), Failure> {
    let library = CAPTURE.unpacked()?;
    command.env("CUDA_INJECTION64_PATH", &library).env("NVTX_INJECTION64_PATH", &library);
    command.env(inject::TO, to).env(inject::DELAY, delay.to_string());
    match duration {
        Some(duration) => command.env(inject::DURATION, duration.to_string()),
        None => command.env_remove(inject::DURATION),
    };
    Ok(())
}
