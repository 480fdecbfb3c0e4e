//! A program that is recorded.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use busbound_capture::inject::settings::{Settings, When};

use super::library::{CAPTURE, make_private};
use crate::failure::Failure;

/// Loads the recording library into the program: it does what these settings say.
pub(crate) fn recording(command: &mut Command, settings: &Settings) -> Result<(), Failure> {
    let library = CAPTURE.unpacked()?;
    command.env("CUDA_INJECTION64_PATH", &library).env("NVTX_INJECTION64_PATH", &library);
    for (name, value) in settings.variables() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Ok(())
}

/// Records everything, to one file.
pub(crate) fn everything(to: &Path) -> Settings {
    Settings {
        to: to.to_owned(),
        when: When::Window { delay: Duration::ZERO, duration: None },
        control: None,
        signal: None,
        watchdog: None,
        counts_bytes: true,
    }
}

/// Where the sockets of recorded processes are: a directory of this user, with a path that is short enough for a socket.
pub(crate) fn control_directory() -> Result<PathBuf, Failure> {
    let user = rustix::process::getuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let mut last = String::new();
    for place in runtime.into_iter().chain([std::env::temp_dir(), "/tmp".into()]) {
        let directory = place.join(format!("busbound-{user}"));
        if directory.as_os_str().len() > 80 {
            continue;
        }
        match make_private(&directory) {
            Ok(()) => return Ok(directory),
            Err(error) => last = format!("{}: {error}", directory.display()),
        }
    }
    Err(Failure::output(format!("no directory for the recorder's socket: {last}")))
}
