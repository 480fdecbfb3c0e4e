//! `busbound export`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use busbound::diagnosis::Detail;
use busbound::report::{PointAt, Timeline, tensorboard_events};
use busbound::tables::{Provenance, write_parquet};
use busbound::trace::Trace;
use busbound::whatif::replay::Change;
use busbound::{Diagnosis, Format, Machine, Options, Run};

use crate::args::export::{ExportArgs, ExportTo};
use crate::failure::Failure;
use crate::io::output::{save, warn};
use crate::io::reading::each_run;
use crate::request::{Output, resolve_analysis, resolve_machine};
use crate::warnings::warn_of_misfits;

/// What to write, and where.
struct Export<'a> {
    args: &'a ExportArgs,
    output: Output,
    path: &'a Path,
    machine: Machine,
    options: Options,
    scenarios: Vec<Vec<Change>>,
}

pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    if args.path.is_dir() {
        let why =
            format!("export takes one trace, and {} is a directory: name one file", args.path.display());
        return Err(Failure::usage(why));
    }
    if args.at.is_some() && args.to != ExportTo::Tensorboard {
        return Err(Failure::usage("--at is for --to tensorboard"));
    }
    let path = args.output.clone().unwrap_or_else(|| usual_path(args));
    let export = Export {
        args,
        output: Output::quiet_or_not(args.quiet),
        path: &path,
        machine: resolve_machine(&args.run.machine)?,
        options: resolve_analysis(&args.run.analysis)?,
        scenarios: if args.apply.is_empty() { Vec::new() } else { vec![args.apply.clone()] },
    };
    let mut written = Ok(());
    each_run(std::slice::from_ref(&args.path), &args.run.reading, &export.output, |run| {
        written = export.write(run)
    })?;
    written?;
    if !args.quiet {
        let path = path.display();
        warn(&match args.to {
            ExportTo::Perfetto | ExportTo::Chrome => format!("wrote {path}; open it in ui.perfetto.dev"),
            ExportTo::Tensorboard => {
                format!("wrote one point per curve to {path}: tensorboard --logdir {path}")
            }
            ExportTo::Parquet => {
                format!("wrote events, copies, collectives, gaps and steps as Parquet to {path}")
            }
        });
    }
    Ok(())
}

/// The trace's name with the ending of the format, in the working directory.
fn usual_path(args: &ExportArgs) -> PathBuf {
    let packed = |format: Format| format!("{}.gz", format.suffixes()[0]);
    let end = match args.to {
        ExportTo::Perfetto => packed(Format::Perfetto),
        ExportTo::Chrome => packed(Format::Chrome),
        ExportTo::Parquet => "tables".to_owned(),
        ExportTo::Tensorboard => "tensorboard".to_owned(),
    };
    PathBuf::from(format!("{}.{end}", busbound::stem_of(&args.path)))
}

/// The last step that torch.profiler numbered.
fn last_step(trace: &Trace) -> Option<u64> {
    let number = |name: &str| name.strip_prefix("ProfilerStep#")?.parse().ok();
    trace.names().iter().filter_map(number).max()
}

/// When the trace was written, in seconds since 1970; 0 for standard input.
fn recorded_at(path: &Path) -> f64 {
    let written = fs::metadata(path).and_then(|file| file.modified()).ok();
    written.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0.0, |since| since.as_secs_f64())
}

impl Export<'_> {
    fn warn(&self, diagnosis: &Diagnosis) {
        warn_of_misfits([diagnosis], &self.args.run, &self.output);
    }

    /// TensorBoard reads all event files of a directory by name: one file per training step, so that a trace that is exported again
    /// replaces its point.
    fn write_point(&self, run: &Run, diagnosis: &Diagnosis) -> Result<(), Failure> {
        let step = self.args.at.or_else(|| last_step(run.trace())).unwrap_or(0);
        let bytes = tensorboard_events(diagnosis, PointAt { step, time: recorded_at(&self.args.path) });
        let file = self.path.join(format!("events.out.tfevents.{step:010}.busbound"));
        fs::create_dir_all(self.path).map_err(Failure::unwritable_at(self.path))?;
        fs::write(&file, bytes).map_err(Failure::unwritable_at(&file))
    }

    fn write(&self, run: &Run) -> Result<(), Failure> {
        let timeline =
            |format, drawn| save(&Timeline { trace: run.trace(), drawn }, format, &self.output, self.path);
        match self.args.to {
            ExportTo::Perfetto => {
                let drawn = run.draw(&self.machine, &self.options, &self.scenarios, Detail::All);
                self.warn(&drawn.diagnosis);
                timeline(Format::Perfetto, Some(&drawn))
            }
            ExportTo::Chrome => timeline(Format::Chrome, None),
            ExportTo::Tensorboard => {
                let diagnosis = run.diagnose(&self.machine, &self.options);
                self.warn(&diagnosis);
                self.write_point(run, &diagnosis)
            }
            ExportTo::Parquet => {
                let (diagnosis, tables) = run.tables(&self.machine, &self.options);
                self.warn(&diagnosis);
                write_parquet(self.path, &Arc::new(tables), &Provenance::of(&diagnosis))
                    .map_err(Failure::output)
            }
        }
    }
}
