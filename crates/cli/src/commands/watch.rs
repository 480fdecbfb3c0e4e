//! `busbound diagnose --watch DIR`: each new trace as it appears, until Ctrl-C.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use busbound::diagnosis::{Watched, watched};
use busbound::report::{watched_as_json_line, watched_as_terminal};
use busbound::{Diagnosis, Error, Format, Input, Machine, Options, ReadOptions, open_input, traces_in};

use crate::args::diagnose::DiagnoseArgs;
use crate::failure::Failure;
use crate::io::arrivals::{Arrivals, Listing, Mark, Ready};
use crate::io::interrupt::listen_for_signals;
use crate::io::output::warn;
use crate::io::progress::WatchBar;
use crate::request::{Output, resolve_diagnosis, resolve_machine, resolve_output, resolve_reading};

/// How often the directory is listed at most; at least four times until a file has settled.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What each trace is diagnosed with, and the last one.
struct Watch {
    machine: Machine,
    options: Options,
    reading: ReadOptions,
    output: Output,
    stop: Arc<AtomicBool>,
    last: Option<Diagnosis>,
}

/// What became of a file.
enum Outcome {
    Shown,
    /// It may still be written.
    Incomplete,
    /// Nobody reads the answers any more, or Ctrl-C.
    Ends,
}

pub(crate) fn run(args: &DiagnoseArgs, directory: &Path) -> Result<(), Failure> {
    let output = checked(args)?;
    if !directory.is_dir() {
        return Err(Failure::unreadable(format!("{} is not a directory", directory.display())));
    }
    let settle = Duration::from_secs_f64(args.watch.settle);
    let bar = WatchBar::new(directory, output.show_progress);
    let mut watch = Watch {
        machine: resolve_machine(&args.run.machine)?,
        options: resolve_diagnosis(args)?,
        reading: resolve_reading(&args.run.reading),
        output,
        stop: listen_for_signals()?,
        last: None,
    };
    let mut arrivals = Arrivals::new(settle, &listed(directory)?, Instant::now());
    while !watch.is_stopped() {
        for ready in arrivals.ready(&listed(directory)?, Instant::now()) {
            match watch.take(&ready, &bar)? {
                Outcome::Shown => arrivals.done(&ready.path),
                Outcome::Incomplete => arrivals.hold(&ready.path),
                Outcome::Ends => return Ok(()),
            }
        }
        sleep(LOOK_EVERY.min(settle / 4));
    }
    Ok(())
}

/// Only text and JSON can go on without an end.
fn checked(args: &DiagnoseArgs) -> Result<Output, Failure> {
    let output = resolve_output(&args.output)?;
    if output.file.is_some() {
        return Err(Failure::usage("--watch writes to standard output: use > FILE instead of -o"));
    }
    if !matches!(output.format, Format::Terminal | Format::Json) {
        let why = format!("--watch has no {}: use it with --format json, or without", output.format);
        return Err(Failure::usage(why));
    }
    Ok(output)
}

/// The traces in the directory; files that vanish in the meantime are not there.
fn listed(directory: &Path) -> Result<Listing, Failure> {
    let files = match traces_in(&[directory.to_owned()]) {
        Ok(files) => files,
        Err(Error::NoTraces { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let mark = |path: PathBuf| {
        let about = path.metadata().ok()?;
        Some((path, Mark { size: about.len(), modified: about.modified().ok()? }))
    };
    Ok(files.into_iter().filter_map(mark).collect())
}

impl Watch {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reads and shows a trace, unless it is cut off and may still be written.
    fn take(&mut self, ready: &Ready, bar: &WatchBar) -> Result<Outcome, Failure> {
        let read =
            open_input(&Input::File(ready.path.clone()), &self.reading, &mut |_| match self.is_stopped() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            });
        let run = match read {
            Ok(run) => run,
            Err(Error::Interrupted { .. }) => return Ok(Outcome::Ends),
            Err(_) if !ready.is_final => return Ok(Outcome::Incomplete),
            Err(error) => {
                bar.above(|| warn(&format!("skipped: {error}")));
                return Ok(Outcome::Shown);
            }
        };
        let diagnosis = run.diagnose(&self.machine, &self.options);
        if !diagnosis.source.complete && !ready.is_final {
            return Ok(Outcome::Incomplete);
        }
        let watched = watched(diagnosis, self.last.as_ref());
        let is_read = bar.above(|| self.show(&watched))?;
        bar.one_done();
        self.last = Some(watched.diagnosis);
        Ok(if is_read { Outcome::Shown } else { Outcome::Ends })
    }

    /// Writes one block; `false` if nobody reads it.
    fn show(&self, watched: &Watched) -> Result<bool, Failure> {
        let text = match self.output.format {
            Format::Json => watched_as_json_line(watched).map_err(Failure::output)?,
            _ => watched_as_terminal(watched, &self.output.style(true)),
        };
        let mut out = anstream::stdout();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
            other => other.map(|()| true).map_err(Failure::output_at("standard output")),
        }
    }
}
