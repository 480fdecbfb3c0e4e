//! `busbound try`: runs a program as it is and with staged copies, and compares.

use std::fs;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use busbound::diagnosis::{CopyGroup, TimeOf, Trial, TrialOutcome, TrialRun, TrialSide, Unit, judge_trial};
use busbound::machine::live::{LineReader, Training};
use busbound::machine::median;
use busbound::trace::MemoryKind;
use busbound::{Machine, Options};
use busbound_apply::settings::Mode;
use busbound_apply::tally::{Counted, KINDS, Kind, Read};

use super::top::heartbeats::matching;
use crate::args::trial::TryArgs;
use crate::failure::Failure;
use crate::io::output::{show, warn};
use crate::launch::child::{code_of, watch};
use crate::launch::record::{everything, recording};
use crate::launch::stage::{counting, not_staged, staged};
use crate::request::resolve_output;

/// Returns the exit code of the program: that of the first run that fails, else 0.
pub(crate) fn run(args: &TryArgs) -> Result<u8, Failure> {
    let output = resolve_output(&args.output)?;
    let recordings = recordings(args)?;
    let mut tried =
        Tried { args, is_quiet: output.quiet, runs: [Vec::new(), Vec::new()], threads: 0, is_loaded: false };
    if let Some(why) = args.command.first().and_then(|program| not_staged(program)) {
        warn(&why);
    }
    let all = order(usize::from(args.runs));
    for (done, &side) in all.iter().enumerate() {
        let code = tried.run_once(side, &format!("run {} of {}", done + 1, all.len()))?;
        if code != 0 {
            return Ok(tried.failed(side, code));
        }
        if done == 0 && tried.runs[0].iter().all(|timed| timed.run.copies == 0) {
            show(&tried.answer(&[])?, &output, "try.html")?;
            return Ok(0);
        }
    }
    for (side, path) in [Side::AsItIs, Side::Staged].into_iter().zip(&recordings) {
        tried.say(&format!("recording it {}", side.name()));
        let code = tried.record(side, path)?;
        if code != 0 {
            return Ok(tried.failed(side, code));
        }
    }
    show(&tried.answer(&recordings)?, &output, "try.html")?;
    Ok(0)
}

/// One way to run the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    AsItIs,
    Staged,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::AsItIs => "as it is",
            Self::Staged => "staged",
        }
    }
}

/// Both ways this often, in turns that change: A B B A, so that neither is always the first.
fn order(runs: usize) -> Vec<Side> {
    let turns = [[Side::AsItIs, Side::Staged], [Side::Staged, Side::AsItIs]];
    (0..runs).flat_map(|number| turns[number % 2]).collect()
}

/// The files to record to, which must not exist.
fn recordings(args: &TryArgs) -> Result<Vec<PathBuf>, Failure> {
    let Some(name) = &args.record else { return Ok(Vec::new()) };
    let paths = ["before", "after"].map(|side| PathBuf::from(format!("{name}-{side}.bbt")));
    match paths.iter().find(|path| path.exists()) {
        Some(taken) => {
            Err(Failure::usage(format!("{} exists already: choose another name", taken.display())))
        }
        None => Ok(paths.to_vec()),
    }
}

/// A run, and both of its times.
#[derive(Debug, Clone)]
struct Timed {
    run: TrialRun,
    /// What the heartbeats say.
    step_ms: Option<f64>,
    steps: usize,
}

/// The runs so far.
struct Tried<'a> {
    args: &'a TryArgs,
    is_quiet: bool,
    /// As it is, and staged.
    runs: [Vec<Timed>; 2],
    threads: u64,
    /// Whether any process had the library.
    is_loaded: bool,
}

impl Tried<'_> {
    fn say(&self, what: &str) {
        if !self.is_quiet {
            warn(what);
        }
    }

    /// One timed run; its exit code.
    fn run_once(&mut self, side: Side, which: &str) -> Result<u8, Failure> {
        self.say(&format!("{which}: {}", side.name()));
        let folder = Scratch::new()?;
        let mode = if side == Side::AsItIs { Mode::Observe } else { Mode::Stage };
        let mut command = self.command(mode)?;
        counting(&mut command, &folder.0);
        let beats = Beats::now(&self.args.heartbeat);
        let began = Instant::now();
        let status = watch(command)?;
        let whole = began.elapsed();
        let code = code_of(status);
        if code == 0 {
            let counted = Counts::read(&folder.0);
            self.threads = self.threads.max(counted.threads);
            self.is_loaded |= counted.processes > 0;
            let steps = beats.steps_since(self.args);
            let count = steps.len();
            let timed = Timed { run: counted.run(whole), step_ms: median(steps), steps: count };
            self.say(&format!("{which}: {}, {:.2} s", side.name(), whole.as_secs_f64()));
            self.runs[side as usize].push(timed);
        }
        Ok(code)
    }

    /// The program; what it prints goes to standard error, because standard output is for the answer.
    fn command(&self, mode: Mode) -> Result<Command, Failure> {
        let mut command = staged(&self.args.command, mode, &self.args.stage)?;
        let stderr =
            io::stderr().as_fd().try_clone_to_owned().map_err(Failure::output_at("standard error"))?;
        command.stdout(Stdio::from(stderr)).stdin(input()?);
        Ok(command)
    }

    /// Records one more run; its exit code.
    fn record(&self, side: Side, path: &Path) -> Result<u8, Failure> {
        let mode = if side == Side::AsItIs { Mode::Off } else { Mode::Stage };
        let to = std::path::absolute(path).map_err(Failure::output_at("the working directory"))?;
        let mut command = self.command(mode)?;
        recording(&mut command, &everything(&to))?;
        Ok(code_of(watch(command)?))
    }

    /// The program failed: says which way, because that is what matters.
    fn failed(&self, side: Side, code: u8) -> u8 {
        match side {
            Side::Staged => warn(&format!(
                "the program failed with staged copies (exit code {code}) and not without: please report this, and do not use `busbound run` for it"
            )),
            Side::AsItIs => warn(&format!("the program failed (exit code {code}): nothing was compared")),
        }
        code
    }

    fn answer(&self, recordings: &[PathBuf]) -> Result<Trial, Failure> {
        // Steps say more than whole runs, if every run has them.
        let has_steps = self.runs.iter().flatten().all(|timed| timed.step_ms.is_some());
        let side = |runs: &[Timed]| {
            let ms = |timed: &Timed| timed.step_ms.filter(|_| has_steps).unwrap_or(timed.run.ms);
            let side = TrialSide::of(
                runs.iter().map(|timed| TrialRun { ms: ms(timed), ..timed.run.clone() }).collect(),
            );
            side.map(|side| TrialSide { bytes_per_step: bytes_per_step(runs).filter(|_| has_steps), ..side })
        };
        let [before, after] = &self.runs;
        let mut before = side(before).ok_or_else(|| Failure::output("no run ended"))?;
        let mut after = side(after);
        let mut time_of = match (has_steps, &after) {
            (true, _) => TimeOf::Step,
            (false, Some(_)) => TimeOf::SinceFirstCopy,
            (false, None) => TimeOf::Run,
        };
        // Also if they are recorded ones.
        if let ([first, second], Some(after), false) = (recordings, &mut after, has_steps)
            && let Some((first, second)) = marked_step(first).zip(marked_step(second))
        {
            time_of = TimeOf::Step;
            per_step(&mut before, first);
            per_step(after, second);
        }
        let mut trial = judge_trial(time_of, before, after, self.threads);
        if !self.is_loaded {
            trial.outcome = TrialOutcome::NotLoaded;
        }
        trial.recordings = recordings.iter().map(|path| path.display().to_string()).collect();
        Ok(trial)
    }
}

/// What each run reads: a file from its beginning, or the terminal. A pipe can be read only once, so no run gets it.
fn input() -> Result<Stdio, Failure> {
    if io::stdin().is_terminal() {
        return Ok(Stdio::inherit());
    }
    let is_file = fs::metadata("/dev/stdin").is_ok_and(|about| about.is_file());
    match is_file {
        true => fs::File::open("/dev/stdin").map(Stdio::from).map_err(Failure::output_at("standard input")),
        false => Ok(Stdio::null()),
    }
}

/// Bytes of copies over heartbeats, of all runs; `None` if there is none.
fn bytes_per_step(runs: &[Timed]) -> Option<u64> {
    let steps: usize = runs.iter().map(|timed| timed.steps).sum();
    runs.iter().map(|timed| timed.run.bytes).sum::<u64>().checked_div(steps as u64)
}

/// The times of a side, with the recorded step for the runs' times: each run keeps its share of their median.
fn per_step(side: &mut TrialSide, step: Marked) {
    let scale = if side.ms > 0.0 { step.ms / side.ms } else { 0.0 };
    for run in &mut side.runs {
        run.ms *= scale;
    }
    (side.ms, side.low_ms, side.high_ms) = (step.ms, side.low_ms * scale, side.high_ms * scale);
    side.bytes_per_step = Some(step.bytes);
}

/// A step that the program marks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Marked {
    ms: f64,
    /// Copies of pageable memory.
    bytes: u64,
}

/// The step of a recording whose program marks some. What repeats in the launches may be a layer, so it is not one.
fn marked_step(path: &Path) -> Option<Marked> {
    let run = busbound::open(path).ok()?;
    let diagnosis = run.diagnose(&Machine::default(), &Options::default());
    let steps = diagnosis.window.steps.as_ref().filter(|steps| steps.found.unit() == Unit::Step)?;
    let is_pageable = |copies: &&CopyGroup| [copies.src, copies.dst].contains(&MemoryKind::Pageable);
    let copies = diagnosis.copies.iter().filter(is_pageable);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "far below 52 bits"
    )]
    let bytes =
        (copies.map(|copies| copies.bytes).sum::<u64>() as f64 / diagnosis.step_count().max(1.0)) as u64;
    Some(Marked { ms: steps.p50_ms, bytes })
}

/// What the processes of a run counted.
#[derive(Default)]
struct Counts {
    processes: usize,
    all: Counted,
    staged: Counted,
    threads: u64,
    /// From the first copy of any process to now.
    since_first_copy: Option<Duration>,
}

impl Counts {
    fn read(folder: &Path) -> Self {
        let now = monotonic();
        let mut counts = Self::default();
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        for read in files.filter_map(|file| Read::of(&fs::read(file.path()).ok()?)) {
            counts.processes += 1;
            counts.threads = counts.threads.max(read.threads);
            for kind in KINDS {
                counts.all = counts.all.and(read.counted(kind));
            }
            counts.staged =
                counts.staged.and(read.counted(Kind::StagedIn)).and(read.counted(Kind::StagedOut));
            // The clock of the first counted copy: 0 without one.
            if read.began > 0 {
                let since = Duration::from_nanos(now.saturating_sub(read.began));
                counts.since_first_copy = counts.since_first_copy.max(Some(since));
            }
        }
        counts
    }

    /// A run that took this long in all.
    fn run(&self, whole: Duration) -> TrialRun {
        let since = self.since_first_copy.map_or(whole, |since| since.min(whole));
        #[expect(clippy::cast_precision_loss, reason = "times are far below 52 bits")]
        let copy_ms = self.all.nanoseconds as f64 / 1e6;
        TrialRun {
            ms: since.as_secs_f64() * 1e3,
            copies: self.all.copies,
            bytes: self.all.bytes,
            staged_bytes: self.staged.bytes,
            copy_ms,
        }
    }
}

/// The clock of the counters.
fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or_default()
}

/// The heartbeat files before a run: how much is in each, and how it ends.
struct Beats(Vec<(PathBuf, Vec<u8>, usize)>);

impl Beats {
    fn now(patterns: &[String]) -> Self {
        let files = matching(patterns).into_iter().map(|path| {
            let bytes = fs::read(&path).unwrap_or_default();
            let end = bytes[bytes.len().saturating_sub(ENDING)..].to_vec();
            (path, end, bytes.len())
        });
        Self(files.collect())
    }

    /// The step times, in milliseconds, that a run has appended, or written anew.
    fn steps_since(&self, args: &TryArgs) -> Vec<f64> {
        let mut steps = Vec::new();
        for path in matching(&args.heartbeat) {
            let bytes = fs::read(&path).unwrap_or_default();
            let old = self.0.iter().find(|(known, _, _)| *known == path);
            let is_appended =
                |end: &[u8], length: usize| bytes.get(..length).is_some_and(|old| old.ends_with(end));
            let skipped =
                old.filter(|(_, end, length)| is_appended(end, *length)).map_or(0, |(_, _, length)| *length);
            let mut training = Training::default();
            LineReader::default().feed(&bytes[skipped..], &args.keys, &mut training);
            steps
                .extend(training.beats.iter().filter_map(|beat| beat.dt_step_s).map(|seconds| seconds * 1e3));
        }
        steps
    }
}

/// Bytes that show whether a file still begins as it did.
const ENDING: usize = 256;

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        use std::os::unix::fs::DirBuilderExt;
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("busbound-try-{}-{number}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(Failure::unwritable_at(&path))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is a few hundred bytes.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
    }

    /// A model whose layers come from the host: what repeats was 50.2 ms, and its step 410 ms.
    #[test]
    fn what_repeats_in_a_recording_is_not_called_a_step() {
        for name in ["accelerate-decode", "accelerate-prefill", "loader", "save_on_cpu"] {
            assert_eq!(marked_step(&recording(&format!("try/recorded/{name}.bbt"))), None, "{name}");
        }
        // This one marks its steps.
        let step = marked_step(&recording("recorded/offload.bbt")).unwrap();
        assert!((step.ms - 21.07).abs() < 0.01 && step.bytes > 0, "{step:?}");
    }
}
