//! `busbound try`: runs a program as it is and with staged copies, and compares.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use busbound::diagnosis::{TimeOf, Trial, TrialRun, TrialSide, judge_trial};
use busbound::machine::live::{LineReader, Training};
use busbound::{Machine, Options};
use busbound_apply::settings::Mode;
use busbound_apply::tally::{Counted, KINDS, Kind, Read};
use busbound_capture::inject;

use crate::args::trial::TryArgs;
use crate::failure::Failure;
use crate::io::output::{show, warn};
use crate::launch::child::{code_of, watch};
use crate::launch::library::CAPTURE;
use crate::launch::stage::{counting, staged};
use crate::request::resolve_output;

/// Returns the exit code of the program: that of the first run that fails, else 0.
pub(crate) fn run(args: &TryArgs) -> Result<u8, Failure> {
    let output = resolve_output(&args.output)?;
    let recordings = recordings(args)?;
    let mut tried = Tried {
        args,
        is_quiet: output.quiet,
        times: [Vec::new(), Vec::new()],
        threads: 0,
        time_of: TimeOf::Run,
    };
    let runs = usize::from(args.runs);
    for number in 0..runs {
        for (side, mode) in [Mode::Observe, Mode::Stage].into_iter().enumerate() {
            let done = number * 2 + side;
            let code = tried.run_once(mode, side, &format!("run {} of {}", done + 1, 2 * runs))?;
            if code != 0 {
                return Ok(tried.failed(mode, code));
            }
            if side == 0 && tried.times[0].iter().all(|run| run.copies == 0) {
                show(&tried.answer(&[])?, &output, "try.html")?;
                return Ok(0);
            }
        }
    }
    for ((mode, name), path) in
        [(Mode::Off, "as it is"), (Mode::Stage, "staged")].into_iter().zip(&recordings)
    {
        tried.say(&format!("recording it {name}"));
        let code = tried.record(mode, path)?;
        if code != 0 {
            return Ok(tried.failed(mode, code));
        }
    }
    show(&tried.answer(&recordings)?, &output, "try.html")?;
    Ok(0)
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

/// The runs so far.
struct Tried<'a> {
    args: &'a TryArgs,
    is_quiet: bool,
    /// As it is, and staged.
    times: [Vec<TrialRun>; 2],
    threads: u64,
    time_of: TimeOf,
}

impl Tried<'_> {
    fn say(&self, what: &str) {
        if !self.is_quiet {
            warn(what);
        }
    }

    /// One timed run; its exit code.
    fn run_once(&mut self, mode: Mode, side: usize, which: &str) -> Result<u8, Failure> {
        let name = if side == 0 { "as it is" } else { "staged" };
        self.say(&format!("{which}: {name}"));
        let folder = Scratch::new()?;
        let mut command = self.command(mode)?;
        counting(&mut command, &folder.0);
        let sizes = sizes(&self.args.heartbeat);
        let began = Instant::now();
        let status = watch(command)?;
        let whole = began.elapsed();
        let code = code_of(status);
        if code == 0 {
            let counted = Counts::read(&folder.0);
            self.threads = self.threads.max(counted.threads);
            let run = self.timed(&counted, whole, &sizes);
            self.say(&format!("{which}: {name}, {:.2} s", whole.as_secs_f64()));
            self.times[side].push(run);
        }
        Ok(code)
    }

    /// The program; what it prints goes to standard error, because standard output is for the answer.
    fn command(&self, mode: Mode) -> Result<Command, Failure> {
        let mut command = staged(&self.args.command, mode, &self.args.stage)?;
        let stderr =
            io::stderr().as_fd().try_clone_to_owned().map_err(Failure::output_at("standard error"))?;
        command.stdout(Stdio::from(stderr));
        Ok(command)
    }

    fn timed(&mut self, counted: &Counts, whole: Duration, sizes: &[(PathBuf, u64)]) -> TrialRun {
        let steps = steps_since(sizes, self.args);
        let (time_of, ms) = match (median(steps), counted.since_first_copy) {
            (Some(step), _) => (TimeOf::Step, step),
            (None, Some(since)) => (TimeOf::SinceFirstCopy, since.min(whole).as_secs_f64() * 1e3),
            (None, None) => (TimeOf::Run, whole.as_secs_f64() * 1e3),
        };
        self.time_of = time_of;
        let all = counted.all;
        #[expect(clippy::cast_precision_loss, reason = "times are far below 52 bits")]
        let copy_ms = all.nanoseconds as f64 / 1e6;
        TrialRun { ms, copies: all.copies, bytes: all.bytes, staged_bytes: counted.staged.bytes, copy_ms }
    }

    /// Records one more run; its exit code.
    fn record(&self, mode: Mode, path: &Path) -> Result<u8, Failure> {
        let library = CAPTURE.unpacked()?;
        let to = std::path::absolute(path).map_err(Failure::output_at("the working directory"))?;
        let mut command = self.command(mode)?;
        command.env("CUDA_INJECTION64_PATH", &library).env("NVTX_INJECTION64_PATH", &library);
        command.env(inject::TO, to).env(inject::DELAY, "0").env_remove(inject::DURATION);
        Ok(code_of(watch(command)?))
    }

    /// The program failed: says which way, because that is what matters.
    fn failed(&self, mode: Mode, code: u8) -> u8 {
        match mode {
            Mode::Stage => warn(&format!(
                "the program failed with staged copies (exit code {code}) and not without: please report this, and do not use `busbound run` for it"
            )),
            _ => warn(&format!("the program failed (exit code {code}): nothing was compared")),
        }
        code
    }

    fn answer(&self, recordings: &[PathBuf]) -> Result<Trial, Failure> {
        let nothing = || Failure::output("no run ended");
        let [before, after] = self.times.clone();
        let (mut before, mut after) = (TrialSide::of(before).ok_or_else(nothing)?, TrialSide::of(after));
        let mut time_of = self.time_of;
        // Steps say more than whole runs, also if they are recorded ones.
        if let ([first, second], Some(after), false) = (recordings, &mut after, time_of == TimeOf::Step)
            && let Some((first, second)) = recorded_step(first).zip(recorded_step(second))
        {
            time_of = TimeOf::Step;
            per_step(&mut before, first);
            per_step(after, second);
        }
        let mut trial = judge_trial(time_of, before, after, self.threads);
        trial.recordings = recordings.iter().map(|path| path.display().to_string()).collect();
        Ok(trial)
    }
}

/// The times of a side, with the recorded step for the runs' times: each run keeps its share of their median.
fn per_step(side: &mut TrialSide, step: f64) {
    let scale = if side.ms > 0.0 { step / side.ms } else { 0.0 };
    for run in &mut side.runs {
        run.ms *= scale;
    }
    (side.ms, side.low_ms, side.high_ms) = (step, side.low_ms * scale, side.high_ms * scale);
}

/// The step of a recording that has some.
fn recorded_step(path: &Path) -> Option<f64> {
    let run = busbound::open(path).ok()?;
    let diagnosis = run.diagnose(&Machine::default(), &Options::default());
    diagnosis.window.steps.as_ref().map(|steps| steps.p50_ms)
}

/// What the processes of a run counted.
#[derive(Default)]
struct Counts {
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
            counts.threads = counts.threads.max(read.threads);
            for kind in KINDS {
                counts.all = counts.all.and(read.counted(kind));
            }
            counts.staged =
                counts.staged.and(read.counted(Kind::StagedIn)).and(read.counted(Kind::StagedOut));
            let copies: u64 = KINDS.iter().map(|&kind| read.counted(kind).copies).sum();
            if copies > 0 {
                let since = Duration::from_nanos(now.saturating_sub(read.began));
                counts.since_first_copy = counts.since_first_copy.max(Some(since));
            }
        }
        counts
    }
}

/// The clock of the counters.
fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or_default()
}

/// The files that match, and how much is in them.
fn sizes(patterns: &[String]) -> Vec<(PathBuf, u64)> {
    let found = patterns.iter().filter_map(|pattern| glob::glob(pattern).ok()).flatten().flatten();
    found.map(|path| (path.clone(), path.metadata().map_or(0, |about| about.len()))).collect()
}

/// The step times, in milliseconds, that a run has appended.
fn steps_since(before: &[(PathBuf, u64)], args: &TryArgs) -> Vec<f64> {
    let mut steps = Vec::new();
    for (path, length) in sizes(&args.heartbeat) {
        let old = before.iter().find(|(known, _)| *known == path).map_or(0, |(_, length)| *length);
        // A shorter file was written anew.
        let skipped = usize::try_from(if old <= length { old } else { 0 }).unwrap_or_default();
        let bytes = fs::read(&path).unwrap_or_default();
        let mut training = Training::default();
        LineReader::default().feed(bytes.get(skipped..).unwrap_or_default(), &args.keys, &mut training);
        steps.extend(training.beats.iter().filter_map(|beat| beat.dt_step_s).map(|seconds| seconds * 1e3));
    }
    steps
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

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
