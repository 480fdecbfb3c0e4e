//! `busbound record`: starts a program with the recording library loaded, and waits for it.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;

use busbound_capture::inject;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

use crate::args::record::RecordArgs;
use crate::failure::Failure;
use crate::io::output::warn;

/// The library, compiled by build.rs.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/busbound_capture.so"));

/// Returns the program's exit code, unless it could not be started.
pub(crate) fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let output = std::path::absolute(&args.output).map_err(Failure::output_at("the working directory"))?;
    if output.exists() {
        if !args.force {
            let taken = format!(
                "{} exists already: choose another file with -o, or overwrite it with --force",
                output.display()
            );
            return Err(Failure::usage(taken));
        }
        fs::remove_file(&output).map_err(Failure::unwritable_at(&output))?;
    }
    let status = watch(recorded(args, &output)?)?;
    if !args.quiet {
        say_what_was_recorded(&args.output);
    }
    Ok(code_of(status))
}

/// The program, with the library loaded into it.
fn recorded(args: &RecordArgs, output: &Path) -> Result<Command, Failure> {
    let library = unpacked()?;
    let [program, rest @ ..] = args.command.as_slice() else {
        return Err(Failure::usage("no program to record: give it after --"));
    };
    let mut command = Command::new(program);
    command.args(rest);
    command.env("CUDA_INJECTION64_PATH", &library).env("NVTX_INJECTION64_PATH", &library);
    command.env(inject::TO, output).env(inject::DELAY, args.delay.to_string());
    match args.duration {
        Some(duration) => command.env(inject::DURATION, duration.to_string()),
        None => command.env_remove(inject::DURATION),
    };
    Ok(command)
}

/// Runs it to its end, and forwards signals to it.
fn watch(mut command: Command) -> Result<ExitStatus, Failure> {
    // Before the program starts, so that no signal is lost.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2])
        .map_err(Failure::output_at("cannot listen for signals"))?;
    let mut child = command.spawn().map_err(Failure::unreadable_at(command.get_program().as_ref()))?;
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
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// The library as a file in a directory that only this user can write to, named after what is in it.
fn unpacked() -> Result<PathBuf, Failure> {
    if LIBRARY.is_empty() {
        return Err(Failure::output(
            "recording needs Linux with glibc, and this build of busbound has no library for it",
        ));
    }
    let digest = busbound_capture::format::crc32(LIBRARY);
    let version = env!("CARGO_PKG_VERSION");
    let user = rustix::process::getuid().as_raw();
    let home = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let places = home.into_iter().chain([std::env::temp_dir()]);
    let mut last = "no directory to unpack the recording library into".to_owned();
    for place in places {
        let directory = place.join(format!("busbound-{user}"));
        let path = directory.join(format!("capture-{version}-{digest:08x}.so"));
        match place_library(&directory, &path) {
            Ok(()) => return Ok(path),
            Err(error) => last = format!("{}: {error}", path.display()),
        }
    }
    Err(Failure::output(last))
}

fn place_library(directory: &Path, path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    // A directory that belongs to or is writable by others is not trusted.
    let about = fs::symlink_metadata(directory)?;
    let is_ours = std::os::unix::fs::MetadataExt::uid(&about) == rustix::process::getuid().as_raw();
    if !about.is_dir() || !is_ours || about.permissions().mode() & 0o022 != 0 {
        return Err(io::Error::other("the directory belongs to, or is writable by, somebody else"));
    }
    if fs::read(path).is_ok_and(|there| there == LIBRARY) {
        return Ok(());
    }
    // Written to the side and renamed, because two recordings may start at the same time.
    let half = directory.join(format!("{}.part", std::process::id()));
    fs::write(&half, LIBRARY)?;
    fs::set_permissions(&half, fs::Permissions::from_mode(0o700))?;
    fs::rename(&half, path)
}

/// Prints one line about the recording.
fn say_what_was_recorded(output: &Path) {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let directory = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let others = fs::read_dir(directory).into_iter().flatten().flatten().filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix(&format!("{stem}.")).and_then(|rest| rest.strip_suffix(".bbt"));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    });
    match (output.metadata(), others.count()) {
        (Err(_), _) => warn("nothing was recorded: no process used CUDA, or an error is shown above"),
        (Ok(about), 0) => {
            let size = busbound::diagnosis::quantity::bytes(about.len());
            warn(&format!("recorded {size}; next: busbound {}", output.display()));
        }
        (Ok(_), others) => {
            let all = format!("recorded {} processes", others + 1);
            warn(&format!("{all}; next: busbound {} '{stem}.*.bbt'", output.display()));
        }
    }
}
