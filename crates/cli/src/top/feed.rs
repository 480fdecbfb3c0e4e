//! Where do snapshots come from, and what is laid to them? A GPU or a log; peaks, heartbeats and warning signs.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use busbound_gpu::live::Sampler;
use busbound_machine::Machine;
use busbound_machine::live::{Limits, Log, Snapshot, Watch};
use busbound_report::top_as_json_line;

use super::heartbeats::Heartbeats;
use crate::args_top::TopArgs;
use crate::failure::Failure;
use crate::machine::resolve_machine;
use crate::output::complain;

/// One snapshot after another.
pub(super) struct Feed {
    origin: Origin,
    /// A log keeps the peaks it was written with, unless others are asked for.
    machine: Option<Machine>,
    watch: Watch,
}

enum Origin {
    Live { sampler: Sampler, heartbeats: Box<Heartbeats>, log: Option<(File, PathBuf)> },
    Replay { left: VecDeque<Snapshot>, of: usize, path: PathBuf },
}

impl Feed {
    pub(super) fn open(args: &TopArgs) -> Result<Self, Failure> {
        let named = args.machine.machine.as_deref();
        let machine = resolve_machine(named)?;
        let limits = Limits {
            patience_s: args.patience,
            bus_share: args.bus_share,
            watchdog_s: args.watchdog,
            ..Limits::default()
        };
        let (origin, machine) = match &args.replay {
            Some(path) => (replay(path)?, named.map(|_| machine)),
            None => (live(args)?, Some(machine)),
        };
        Ok(Self { origin, machine, watch: Watch::with(limits) })
    }

    /// Whether each snapshot tells of the time since the one before it was asked for.
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
            snapshot.judge_against(machine);
        }
        snapshot.signs = self.watch.see(&snapshot);
        if let Origin::Live { log: Some((file, path)), .. } = &mut self.origin {
            let line = top_as_json_line(&snapshot).map_err(|error| Failure::Output(error.into()))?;
            // A line in one piece: whoever reads along sees whole ones.
            let written = file.write_all(line.as_bytes());
            written.with_context(|| path.display().to_string()).map_err(Failure::Output)?;
        }
        Ok(Some(snapshot))
    }

    /// Where it comes from, in words.
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
    let heartbeats = Heartbeats::matching(&args.heartbeat, args.keys.clone()).map_err(Failure::Usage)?;
    let sampler = Sampler::start().map_err(|error| {
        Failure::NoGpu(anyhow::anyhow!("{error}; a log from elsewhere can be played back with --replay"))
    })?;
    let open = |path: &PathBuf| {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.with_context(|| path.display().to_string()).map_err(Failure::Output)?;
        Ok((file, path.clone()))
    };
    let log = args.log.as_ref().map(open).transpose()?;
    Ok(Origin::Live { sampler, heartbeats: Box::new(heartbeats), log })
}

fn replay(path: &PathBuf) -> Result<Origin, Failure> {
    let bytes = fs::read(path).with_context(|| path.display().to_string()).map_err(Failure::Unreadable)?;
    // A byte that is no text costs its line, not the log.
    let log = Log::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|error| Failure::Unreadable(anyhow::anyhow!("{} {error}", path.display())))?;
    if log.unread_lines > 0 {
        complain(&format!("passed over: {} lines of {} are no snapshots", log.unread_lines, path.display()));
    }
    let of = log.snapshots.len();
    Ok(Origin::Replay { left: log.snapshots.into(), of, path: path.clone() })
}

/// UTC, to the millisecond.
fn now() -> String {
    jiff::Timestamp::now()
        .round(jiff::Unit::Millisecond)
        .map_or_else(|_| String::new(), |now| format!("{now:.3}"))
}
