//! Where do snapshots come from? A GPU or a log; peaks, heartbeats and warnings are added here.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

use busbound::diagnosis::quantity::plural;
use busbound::machine::live::{Limits, Log, Snapshot, Watch};
use busbound::{Format, Machine};
use busbound_gpu::live::Sampler;

use super::heartbeats::Heartbeats;
use super::summaries::Summaries;
use super::{Show, rendered};
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
    limits: Limits,
}

enum Origin {
    Live(Box<Live>),
    Replay { log: Vec<Snapshot>, judged: usize, at: usize, path: PathBuf },
}

/// What is asked in each interval.
struct Live {
    /// `None` on a machine without a GPU, where only summaries and heartbeats are shown.
    sampler: Option<Sampler>,
    heartbeats: Heartbeats,
    summaries: Option<Summaries>,
    log: Option<(File, PathBuf)>,
    last: Instant,
    /// Whether what cannot be read is said on standard error, or only counted on the screen.
    says_skipped: bool,
    is_once: bool,
}

impl Feed {
    pub(super) fn open(args: &TopArgs, show: Show) -> Result<Self, Failure> {
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
                (replay(path, args)?, is_flag.then_some(machine))
            }
            None => (Origin::Live(Box::new(live(args, show)?)), Some(machine)),
        };
        Ok(Self { origin, machine, watch: Watch::with(limits), limits })
    }

    /// Whether each snapshot covers the time since the previous one.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.origin, Origin::Live(_))
    }

    /// When it warns.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// `None` at the end of a log.
    pub(super) fn next(&mut self) -> Result<Option<Snapshot>, Failure> {
        let Origin::Live(live) = &mut self.origin else {
            let Some((before, all)) = self.position() else { return Ok(None) };
            let shown = if before < all { self.seek(1) } else { None };
            return Ok(shown.and_then(|shown| shown.last().cloned()));
        };
        let mut snapshot = live.read();
        judge(&mut snapshot, self.machine.as_ref(), &mut self.watch);
        if let Some((file, path)) = &mut live.log {
            let line = rendered(&snapshot, Format::Json)?;
            // One write per line, so that whoever follows the file sees whole lines.
            file.write_all(line.as_bytes()).map_err(Failure::output_at(path.display()))?;
        }
        Ok(Some(snapshot))
    }

    /// How many intervals of a log were shown, and how many it has; `None` without a log.
    fn position(&self) -> Option<(usize, usize)> {
        match &self.origin {
            Origin::Live(_) => None,
            Origin::Replay { log, at, .. } => Some((*at, log.len())),
        }
    }

    /// Moves within a log, at most to its first or last interval. Everything up to there; `None` without a log.
    pub(super) fn seek(&mut self, by: i64) -> Option<&[Snapshot]> {
        let Origin::Replay { log, judged, at, .. } = &mut self.origin else { return None };
        let most = log.len() as i64;
        *at = (*at as i64).saturating_add(by).clamp(most.min(1), most) as usize;
        // Warnings depend on what came before, so that intervals are judged once and in order.
        while *judged < *at {
            judge(&mut log[*judged], self.machine.as_ref(), &mut self.watch);
            *judged += 1;
        }
        Some(&log[..*at])
    }

    /// The source in words.
    pub(super) fn describe(&self) -> String {
        match &self.origin {
            Origin::Live(live) => live.describe(),
            Origin::Replay { log, at, path, .. } => {
                format!("replayed from {}, {at} of {}", path.display(), log.len())
            }
        }
    }
}

/// Adds peaks and warnings.
fn judge(snapshot: &mut Snapshot, machine: Option<&Machine>, watch: &mut Watch) {
    if let Some(machine) = machine {
        snapshot.compare_with_peak(machine);
    }
    snapshot.signs = watch.see(snapshot);
}

impl Live {
    fn read(&mut self) -> Snapshot {
        let mut snapshot = match &mut self.sampler {
            Some(sampler) => sampler.read(now()),
            None => Snapshot::new(now(), (self.last.elapsed().as_secs_f64() * 1e6).round() / 1e6, Vec::new()),
        };
        self.last = Instant::now();
        snapshot.training = self.heartbeats.read();
        if let Some(summaries) = &mut self.summaries {
            if self.is_once {
                // A file that is the same after one interval is not being written.
                summaries.look();
            }
            snapshot.windows = summaries.read();
            let skipped = summaries.take_skipped();
            skipped.iter().filter(|_| self.says_skipped).for_each(|why| warn(why));
        }
        snapshot
    }

    fn describe(&self) -> String {
        let mut parts = vec!["live".to_owned()];
        parts.extend(self.log.as_ref().map(|(_, path)| format!("logged to {}", path.display())));
        parts.extend(self.summaries.as_ref().map(Summaries::describe));
        parts.join(", ")
    }
}

fn live(args: &TopArgs, show: Show) -> Result<Live, Failure> {
    let heartbeats = heartbeats(args)?;
    let mut summaries = args.training.summaries.as_deref().map(Summaries::below);
    if let Some(summaries) = &mut summaries {
        summaries.look();
        // Who watches may wait for the directory; who asks once has no answer.
        if let Some(why) = summaries.unlistable().filter(|_| show == Show::Once) {
            return Err(Failure::Unreadable(why.to_owned()));
        }
    }
    let sampler = match Sampler::start() {
        Ok(sampler) => Some(sampler),
        Err(error) => {
            let Some(shown) = shown_without_a_gpu(args) else {
                let why = format!("{error}; to play back a log from another machine, use --replay");
                return Err(Failure::no_gpu(why));
            };
            warn(&format!("{error}: only {shown} are shown"));
            None
        }
    };
    let open = |path: &PathBuf| {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(|file| (file, path.clone())).map_err(Failure::unwritable_at(path))
    };
    let log = args.log.as_ref().map(open).transpose()?;
    Ok(Live {
        sampler,
        heartbeats,
        summaries,
        log,
        last: Instant::now(),
        says_skipped: show != Show::Screen,
        is_once: show == Show::Once,
    })
}

fn heartbeats(args: &TopArgs) -> Result<Heartbeats, Failure> {
    Heartbeats::matching(&args.training.heartbeat, args.training.keys.clone()).map_err(Failure::usage)
}

/// `the summaries in summaries/ and the heartbeats`; `None` if there is neither.
fn shown_without_a_gpu(args: &TopArgs) -> Option<String> {
    let summaries = args.training.summaries.as_ref();
    let summaries = summaries.map(|directory| format!("the summaries in {}", directory.display()));
    let heartbeats = (!args.training.heartbeat.is_empty()).then(|| "the heartbeats".to_owned());
    summaries.into_iter().chain(heartbeats).reduce(|one, other| format!("{one} and {other}"))
}

fn replay(path: &PathBuf, args: &TopArgs) -> Result<Origin, Failure> {
    let bytes = fs::read(path).map_err(Failure::unreadable_at(path))?;
    // A byte that is not UTF-8 costs its line, not the log.
    let mut log = Log::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| {
        let known = not_a(FileKind::TopLog, path);
        Failure::Unreadable(known.unwrap_or_else(|| format!("{} {error}", path.display())))
    })?;
    if log.unread_lines > 0 {
        let lines = plural(log.unread_lines as u64, "line", "lines");
        warn(&format!("skipped: {lines} of {} that could not be read as snapshots", path.display()));
    }
    // Heartbeats have no time: the newest ones belong to the end. A log has those that `top` saw.
    if let Some(last) = log.snapshots.last_mut() {
        for training in heartbeats(args)?.read() {
            if last.training.iter().all(|known| known.file != training.file) {
                last.training.push(training);
            }
        }
    }
    Ok(Origin::Replay { log: log.snapshots, judged: 0, at: 0, path: path.clone() })
}

/// UTC, to the millisecond.
fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}
