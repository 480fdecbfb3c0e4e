//! What has the project set? `busbound.toml`, from the working directory or the nearest one above it. Flags win.

mod parse;

use std::path::{Path, PathBuf};

use busbound::diagnosis::StageChoice;
use regex_lite::Regex;

use crate::args::Command;
use crate::args::gate::BarArgs;
use crate::args::shared::{AnalysisArgs, MachineArgs};
use crate::failure::Failure;
use crate::io::output::warn;

const NAME: &str = "busbound.toml";

/// The settings of one file.
#[derive(Debug, Default)]
struct Config {
    /// As it is shown in messages.
    path: PathBuf,
    machine: Option<String>,
    steps: Option<Regex>,
    warmup: Option<usize>,
    wall: Option<f64>,
    stages: Vec<StageChoice>,
    require: Vec<String>,
    baseline: Option<PathBuf>,
}

/// The parts of a command that a file can set.
struct Settable<'c> {
    machine: &'c mut MachineArgs,
    analysis: Option<&'c mut AnalysisArgs>,
    bar: Option<&'c mut BarArgs>,
    verbose: bool,
}

/// Sets what no flag has set.
///
/// # Errors
/// If the file cannot be read, or has an unknown key or a value of the wrong type.
pub(crate) fn apply(command: &mut Command) -> Result<(), Failure> {
    let Some(settable) = settable(command) else { return Ok(()) };
    let Some(path) = find() else { return Ok(()) };
    let text = std::fs::read_to_string(&path).map_err(Failure::unreadable_at(&path))?;
    let config = parse::parse(&text, &path).map_err(Failure::Usage)?;
    if settable.verbose {
        warn(&format!("settings from {}", config.path.display()));
    }
    config.apply(settable);
    Ok(())
}

/// `None` for commands that no setting concerns: a broken file does not stop them.
fn settable(command: &mut Command) -> Option<Settable<'_>> {
    let (machine, analysis, bar, verbose) = match command {
        Command::Diagnose(args) => {
            (&mut args.run.machine, Some(&mut args.run.analysis), None, args.output.verbose)
        }
        Command::Compare(args) => {
            (&mut args.run.machine, Some(&mut args.run.analysis), None, args.output.verbose)
        }
        Command::WhatIf(args) => {
            (&mut args.run.machine, Some(&mut args.run.analysis), None, args.output.verbose)
        }
        Command::Gate(args) => {
            (&mut args.run.machine, Some(&mut args.run.analysis), Some(&mut args.bar), args.output.verbose)
        }
        Command::Summarize(args) => (&mut args.run.machine, Some(&mut args.run.analysis), None, false),
        Command::Export(args) => (&mut args.run.machine, Some(&mut args.run.analysis), None, false),
        Command::Top(args) => (&mut args.machine, None, None, args.output.verbose),
        _ => return None,
    };
    Some(Settable { machine, analysis, bar, verbose })
}

/// In the working directory, else in the nearest directory above it; shown relative to it where possible.
fn find() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let found = here.ancestors().map(|directory| directory.join(NAME)).find(|path| path.is_file())?;
    Some(found.strip_prefix(&here).map(Path::to_owned).unwrap_or(found))
}

impl Config {
    fn apply(self, settable: Settable<'_>) {
        let Settable { machine, analysis, bar, .. } = settable;
        if machine.machine.is_none() && self.machine.is_some() {
            machine.machine = self.machine;
            machine.file = Some(self.path.clone());
        }
        if let Some(analysis) = analysis {
            if analysis.steps.is_none() && self.steps.is_some() {
                analysis.steps = self.steps;
                analysis.steps_file = Some(self.path.clone());
            }
            if analysis.warmup.is_none() && self.warmup.is_some() {
                analysis.warmup = self.warmup;
                analysis.warmup_file = Some(self.path.clone());
            }
            if analysis.wall.is_empty() && self.wall.is_some() {
                analysis.wall = self.wall.into_iter().collect();
                analysis.wall_file = Some(self.path.clone());
            }
            if analysis.stages.is_empty() {
                analysis.stages = self.stages;
            }
        }
        if let Some(bar) = bar {
            if bar.require.is_empty() && !self.require.is_empty() {
                bar.require = self.require;
                bar.file = Some(self.path);
            }
            bar.baseline = bar.baseline.take().or(self.baseline);
        }
    }
}
