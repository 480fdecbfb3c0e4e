//! `busbound record`: starts a program with the recording library loaded, and waits for it; or talks to one that runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use busbound_capture::inject::control::Command as Asked;
use busbound_capture::inject::settings::{Settings, When};

use super::record_cycles::Cycles;
use crate::args::record::RecordArgs;
use crate::failure::Failure;
use crate::io::output::{warn, write_answer};
use crate::launch::attach;
use crate::launch::child::{code_of, watch};
use crate::launch::record::{control_directory, recording};

/// Where a recording goes without -o.
const FILE: &str = "run.bbt";
const SUMMARIES: &str = "summaries";

/// Returns the program's exit code, unless it could not be started.
pub(crate) fn run(args: &RecordArgs) -> Result<u8, Failure> {
    if let Some(process) = args.pid {
        return ask(process, args);
    }
    let begun = SystemTime::now();
    let named = args.output.clone().unwrap_or_else(|| match args.every {
        Some(_) => SUMMARIES.into(),
        None => FILE.into(),
    });
    let output = std::path::absolute(&named).map_err(Failure::output_at("the working directory"))?;
    if args.every.is_some() {
        let cycles = Cycles::new(&output, args)?;
        let command = recorded(args, settings(args, &cycles.recordings)?)?;
        return cycles.follow(|| watch(command)).map(code_of);
    }
    let settings = settings(args, &output)?;
    if matches!(settings.when, When::Window { .. }) {
        make_room(&output, args.force)?;
    }
    let when = settings.when;
    let status = watch(recorded(args, settings)?)?;
    if !args.quiet {
        match when {
            When::Window { .. } => say_what_was_recorded(&named),
            _ => say_what_was_written(&named, begun),
        }
    }
    Ok(code_of(status))
}

fn make_room(output: &Path, force: bool) -> Result<(), Failure> {
    if output.exists() {
        if !force {
            let taken = format!(
                "{} exists already: choose another file with -o, or overwrite it with --force",
                output.display()
            );
            return Err(Failure::usage(taken));
        }
        fs::remove_file(output).map_err(Failure::unwritable_at(output))?;
    }
    Ok(())
}

fn settings(args: &RecordArgs, to: &Path) -> Result<Settings, Failure> {
    if let Some((every, duration)) = args.every.zip(args.duration)
        && every <= duration
    {
        return Err(Failure::usage("--every is the period of the windows: it must be longer than --for"));
    }
    let when = match (args.ring, args.every.zip(args.duration)) {
        (Some(last), _) => When::Ring { last },
        (None, Some((every, duration))) => When::Cycle { every, duration },
        (None, None) if args.standby => When::Standby,
        (None, None) => When::Window { delay: args.delay, duration: args.duration },
    };
    let control = match when {
        When::Window { .. } => None,
        _ => Some(control_directory()?),
    };
    Ok(Settings {
        to: to.to_owned(),
        when,
        control,
        signal: args.signal,
        watchdog: Some(args.watchdog).filter(|time| !time.is_zero() && args.ring.is_some()),
        counts_bytes: !args.no_counters,
    })
}

/// The program, with the library loaded into it.
fn recorded(args: &RecordArgs, settings: Settings) -> Result<Command, Failure> {
    let [program, rest @ ..] = args.command.as_slice() else {
        return Err(Failure::usage("no program to record: give it after --"));
    };
    let mut command = Command::new(program);
    command.args(rest);
    recording(&mut command, &settings)?;
    Ok(command)
}

/// Talks to a process that runs; the answers go to standard output.
fn ask(process: u32, args: &RecordArgs) -> Result<u8, Failure> {
    let command = match () {
        () if args.start => Asked::Start(args.duration),
        () if args.stop => Asked::Stop,
        () => Asked::Dump,
    };
    let answers = attach::ask(process, command)?;
    let mut has_failed = false;
    for answer in answers {
        match answer.said {
            Ok(said) if args.quiet => drop(said),
            Ok(said) => write_answer(&format!("process {}: {said}\n", answer.process))?,
            Err(why) => {
                warn(&format!("process {}: {why}", answer.process));
                has_failed = true;
            }
        }
    }
    Ok(if has_failed { 2 } else { 0 })
}

/// The files beside this one whose names have these parts between its stem and `.bbt`.
fn beside(output: &Path, is_ours: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let directory = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let middle = name.strip_prefix(&format!("{stem}.")).and_then(|rest| rest.strip_suffix(".bbt"));
        middle.is_some_and(&is_ours)
    });
    let mut paths: Vec<PathBuf> = ours.map(|entry| output.with_file_name(entry.file_name())).collect();
    paths.sort();
    paths
}

/// Prints one line about the recording.
fn say_what_was_recorded(output: &Path) {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let stem = output.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match (output.metadata(), beside(output, is_number).len()) {
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

/// Prints one line about the dumps or windows of this run.
fn say_what_was_written(output: &Path, since: SystemTime) {
    let is_new = |path: &PathBuf| {
        path.metadata().and_then(|about| about.modified()).is_ok_and(|modified| modified >= since)
    };
    let is_part = |text: &str| text.contains(".dump-") || text.contains(".window-");
    let written: Vec<PathBuf> = beside(output, is_part).into_iter().filter(is_new).collect();
    match written.as_slice() {
        [] => warn(
            "nothing was written: no process used CUDA, nothing asked for it, or an error is shown above",
        ),
        [one] => warn(&format!("wrote one recording; next: busbound {}", one.display())),
        [.., last] => {
            warn(&format!("wrote {} recordings; next: busbound {}", written.len(), last.display()));
        }
    }
}
