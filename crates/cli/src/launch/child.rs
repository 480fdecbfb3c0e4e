//! Runs a program to its end, as if it had been started directly.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use super::program::not_started;
use crate::failure::Failure;

/// Runs it to its end, and forwards signals to it.
pub(crate) fn watch(mut command: Command) -> Result<ExitStatus, Failure> {
    // Before the program starts, so that no signal is lost.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2])
        .map_err(Failure::output_at("cannot listen for signals"))?;
    let mut child = command.spawn().map_err(not_started(command.get_program()))?;
    let process = child.id();
    let handle = signals.handle();
    let passing = thread::spawn(move || {
        for signal in signals.forever() {
            // The terminal sends Ctrl-C to the program as well; other signals reach only this process.
            if signal != SIGINT {
                pass_on(process, signal);
            }
        }
    });
    let status = child.wait().map_err(Failure::output_at("waiting for the program"));
    handle.close();
    let _ = passing.join();
    status
}

fn pass_on(process: u32, signal: i32) {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    let signal = rustix::process::Signal::from_named_raw(signal);
    if let (Some(process), Some(signal)) = (process, signal) {
        // It may have ended already.
        let _ = rustix::process::kill_process(process, signal);
    }
}

/// As in a shell: 128 plus the signal's number for a program that a signal has killed.
pub(crate) fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}
