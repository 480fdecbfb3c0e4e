//! Where do snapshots come from? A GPU or a log; peaks, heartbeats and warnings are added here.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

use busbound::diagnosis::quantity::plural;
use busbound::machine::live::{Limits, Log, Snapshot, Watch};
use busbound::{Format, Machine};
use busbound_gpu::live::Sampler;

use super::heartbeats::Heartbeats;
use super::rendered;
use crate::args::top::TopArgs;
use crate::failure::Failure;
use crate::io::kind::{FileKind, not_a};
use crate::io::output::warn;
use crate::request::resolve_machine;

/// The source of snapshots.
pub(super) struct Feed {
    origin: Origin,
    /// A log keeps the peaks it was written with, unless --machine gives others.
    machine: Option<Machine>,
    watch: Watch,
}

enum Origin {
    Live { sampler: Sampler, heartbeats: Box<Heartbeats>, log: Option<(File, PathBuf)> },
    Replay { left: VecDeque<Snapshot>, of: usize, path: PathBuf },
}

impl Feed {
    pub(super) fn open(args: &TopArgs) -> Result<Self, Failure> {
        let machine = resolve_machine(&args.machine)?;
        let limits = Limits {
            patience_s: args.warnings.patience,
            bus_share: args.warnings.bus_share,
            watchdog_s: args.warnings.watchdog,
            ..Limits::default()
        };
        let (origin, machine) = match &args.replay {
            Some(path) => {
                // A log may be from another machine, so that only a flag replaces its peaks.
                let is_flag = args.machine.machine.is_some() && args.machine.file.is_none();
                (replay(path)?, is_flag.then_some(machine))
            }
            None => (live(args)?, Some(machine)),
        };
        Ok(Self { origin, machine, watch: Watch::with(limits) })
    }

    /// Whether each snapshot covers the time since the previous one.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.origin, Origin::Live { .. })
    }

    /// `None` at the end of a log.
    pub(super) fn next(&mut self) -> Result<Option<Snapshot>, Failure> {
        let mut snapshot = match &mut self.origin {
            Origin::Live { sampler, heartbeats, .. } => {
                let mut snapshot = sampler.read(now());
                snapshot.training = heartbeats.read();
                snapshot
            }
            Origin::Replay { left, .. } => match left.pop_front() {
                Some(snapshot) => snapshot,
                None => return Ok(None),
            },
        };
        if let Some(machine) = &self.machine {
            snapshot.compare_with_peak(machine);
        }
        snapshot.signs = self.watch.see(&snapshot);
        if let Origin::Live { log: Some((file, path)), .. } = &mut self.origin {
            let line = rendered(&snapshot, Format::Json)?;
            // One write per line, so that whoever follows the file sees whole lines.
            file.write_all(line.as_bytes()).map_err(Failure::output_at(path.display()))?;
        }
        Ok(Some(snapshot))
    }

    /// The source in words.
    pub(super) fn describe(&self) -> String {
        match &self.origin {
            Origin::Live { log: Some((_, path)), .. } => format!("live, logged to {}", path.display()),
            Origin::Live { .. } => "live".to_owned(),
            Origin::Replay { left, of, path } => {
                format!("replayed from {}, {} of {of}", path.display(), of - left.len())
            }
        }
    }
}

fn live(args: &TopArgs) -> Result<Origin, Failure> {
    let heartbeats =
        Heartbeats::matching(&args.training.heartbeat, args.training.keys.clone()).map_err(Failure::usage)?;
    let sampler = Sampler::start().map_err(|error| {
        Failure::no_gpu(format!("{error}; to play back a log from another machine, use --replay"))
    })?;
    let open = |path: &PathBuf| {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(|file| (file, path.clone())).map_err(Failure::unwritable_at(path))
    };
    let log = args.log.as_ref().map(open).transpose()?;
    Ok(Origin::Live { sampler, heartbeats: Box::new(heartbeats), log })
}

fn replay(path: &PathBuf) -> Result<Origin, Failure> {
    let bytes = fs::read(path).map_err(Failure::unreadable_at(path))?;
    // A byte that is not UTF-8 costs its line, not the log.
    let log = Log::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| {
        let known = not_a(FileKind::TopLog, path);
        Failure::Unreadable(known.unwrap_or_else(|| format!("{} {error}", path.display())))
    })?;
    if log.unread_lines > 0 {
        let lines = plural(log.unread_lines as u64, "line", "lines");
        warn(&format!("skipped: {lines} of {} that could not be read as snapshots", path.display()));
    }
    let of = log.snapshots.len();
    Ok(Origin::Replay { left: log.snapshots.into(), of, path: path.clone() })
}

/// UTC, to the millisecond.
fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}
