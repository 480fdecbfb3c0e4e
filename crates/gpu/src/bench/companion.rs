//! A second process that copies at the same time. It is this program again, with a hidden argument: [`serve_companion`] is its
//! side, [`Companion`] is ours.
//!
//! They talk in lines: it says `ready`; `go` makes it copy without pause, and it says `going` once it does; `stop` makes it say how
//! long each batch of copies took (`ns 1 2 3`), and end. It also ends when we are gone.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use busbound_machine::bench::{Direction, Memory, OtherCopies};

use super::task_error::TaskError;
use crate::driver::{CudaError, DeviceBuffer, Event, Gpu, HostBuffer, Stream};

/// Copies that are timed together: GPUs switch between processes every few milliseconds, and a batch must last longer.
pub(super) const BATCH: u32 = 16;
/// To start a process and its CUDA context, and to end a batch.
const ANSWERS_WITHIN: Duration = Duration::from_secs(20);
/// Batches that are kept.
const MOST_BATCHES: usize = 10_000;

/// What the second process copies: `h2d:67108864`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompanionTask {
    pub direction: Direction,
    pub bytes: u64,
}

impl fmt::Display for CompanionTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.direction.words().to_lowercase(), self.bytes)
    }
}

impl FromStr for CompanionTask {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "must be h2d:BYTES or d2h:BYTES";
        let (direction, bytes) = text.split_once(':').ok_or(FORM)?;
        let direction = match direction {
            "h2d" => Direction::H2d,
            "d2h" => Direction::D2h,
            _ => return Err(FORM),
        };
        let bytes = bytes.parse().ok().filter(|bytes| (1..=1 << 30).contains(bytes)).ok_or(FORM)?;
        Ok(Self { direction, bytes })
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompanionError {
    #[error(transparent)]
    Cuda(#[from] CudaError),
    #[error("cannot talk to the process that started this one: {0}")]
    Io(#[from] std::io::Error),
}

/// Copies on this GPU while the process on the other end of these streams says so.
///
/// # Errors
/// Without the GPU, or if the other process is gone.
pub fn serve_companion(
    gpu: u32,
    task: CompanionTask,
    input: impl BufRead + Send + 'static,
    output: &mut dyn Write,
) -> Result<(), CompanionError> {
    let gpu = Gpu::open(gpu)?;
    gpu.make_current()?;
    let host = HostBuffer::new(task.bytes, Memory::Pinned)?;
    let device = DeviceBuffer::new(task.bytes)?;
    let stream = Stream::new()?;
    let (start, end) = (Event::new()?, Event::new()?);
    let batch = || {
        stream.record(&start)?;
        (0..BATCH).try_for_each(|_| match task.direction {
            Direction::H2d => stream.to_device(&device, 0, &host, 0, task.bytes),
            Direction::D2h => stream.to_host(&host, 0, &device, 0, task.bytes),
        })?;
        stream.record(&end)?;
        stream.synchronize()?;
        end.ns_since(&start)
    };
    batch()?;
    converse(input, output, batch)
}

/// The conversation of the second process; `batch` copies and returns how long that took.
fn converse<E>(
    mut input: impl BufRead + Send + 'static,
    output: &mut dyn Write,
    mut batch: impl FnMut() -> Result<u64, E>,
) -> Result<(), CompanionError>
where
    CompanionError: From<E>,
{
    say(output, "ready")?;
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 || line.trim() != "go" {
        return Ok(());
    }
    let stop = Arc::new(AtomicBool::new(false));
    let is_stopped = Arc::clone(&stop);
    // Also stops at the end of the input: the other process is gone.
    thread::spawn(move || {
        let _ = input.read_line(&mut String::new());
        is_stopped.store(true, Ordering::SeqCst);
    });
    batch()?;
    say(output, "going")?;
    let mut times = Vec::new();
    while !stop.load(Ordering::SeqCst) && times.len() < MOST_BATCHES {
        times.push(batch()?.to_string());
    }
    say(output, &format!("ns {}", times.join(" ")))?;
    Ok(())
}

fn say(output: &mut dyn Write, line: &str) -> std::io::Result<()> {
    writeln!(output, "{line}")?;
    output.flush()
}

/// The second process, as we see it. It ends with this.
pub(super) struct Companion {
    child: Child,
    lines: Receiver<String>,
}

impl Companion {
    /// Starts it, and waits until it can copy.
    pub(super) fn start(program: &Path, gpu: u32, task: CompanionTask) -> Result<Self, TaskError> {
        let mut command = Command::new(program);
        command.args(["bench", "--gpu", &gpu.to_string(), "--companion", &task.to_string()]);
        Self::of(command)
    }

    fn of(mut command: Command) -> Result<Self, TaskError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| cannot(&error.to_string()))?;
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                let all = BufReader::new(output).lines().map_while(Result::ok);
                all.take_while(|line| sender.send(line.clone()).is_ok()).for_each(drop);
            });
        }
        let mut companion = Self { child, lines };
        companion.expect("ready")?;
        Ok(companion)
    }

    /// From the return on, it copies.
    pub(super) fn go(&mut self) -> Result<(), TaskError> {
        self.tell("go")?;
        self.expect("going").map(drop)
    }

    /// Ends it; returns the times of the batches during which we copied too.
    pub(super) fn stop(mut self) -> Result<OtherCopies, TaskError> {
        self.tell("stop")?;
        let times = self.expect("ns")?;
        let ns: Vec<u64> = times.split_whitespace().filter_map(|ns| ns.parse().ok()).collect();
        // The first and the last one were partly alone.
        let ns = ns.get(1..ns.len().saturating_sub(1)).unwrap_or_default().to_vec();
        if ns.is_empty() {
            return Err(cannot("it made too few copies"));
        }
        Ok(OtherCopies { copies: BATCH, ns })
    }

    fn tell(&mut self, line: &str) -> Result<(), TaskError> {
        let input = self.child.stdin.as_mut().ok_or_else(|| cannot("its input is closed"))?;
        say(input, line).map_err(|error| cannot(&error.to_string()))
    }

    /// What follows this word in its next line.
    fn expect(&mut self, word: &str) -> Result<String, TaskError> {
        match self.lines.recv_timeout(ANSWERS_WITHIN) {
            Ok(line) => match line.strip_prefix(word) {
                Some(rest) => Ok(rest.trim().to_owned()),
                None => Err(cannot(&format!("it said {line:?}"))),
            },
            Err(_) => Err(cannot(&self.last_words())),
        }
    }

    /// What it wrote to standard error, after it ended or was ended.
    fn last_words(&mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let errors = self.child.stderr.take().map(BufReader::new);
        let last = errors.and_then(|errors| errors.lines().map_while(Result::ok).last());
        last.unwrap_or_else(|| "it ended, or did not answer".to_owned())
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        // It has ended already, unless something went wrong.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cannot(why: &str) -> TaskError {
    TaskError::CannotRun(format!("a second process cannot copy at the same time: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_read_as_they_are_written() {
        for direction in [Direction::H2d, Direction::D2h] {
            let task = CompanionTask { direction, bytes: 64 << 20 };
            assert_eq!(task.to_string().parse(), Ok(task));
        }
        for wrong in ["h2d", "d2d:5", "h2d:0", "h2d:many", ""] {
            assert!(wrong.parse::<CompanionTask>().is_err(), "{wrong}");
        }
    }

    fn conversation(input: &'static str) -> String {
        let (mut output, mut number) = (Vec::new(), 0);
        let batch = || {
            number += 1;
            // The reader of the input is another thread.
            thread::sleep(Duration::from_millis(1));
            Ok::<u64, CudaError>(number)
        };
        converse(std::io::Cursor::new(input), &mut output, batch).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn the_second_process_copies_until_it_is_stopped_or_alone() {
        for input in ["go\nstop\n", "go\n"] {
            let said = conversation(input);
            assert!(said.starts_with("ready\ngoing\nns"), "{said}");
        }
        assert_eq!(conversation(""), "ready\n");
        assert_eq!(conversation("what\n"), "ready\n");
    }

    #[cfg(unix)]
    fn script(text: &str) -> Result<Companion, TaskError> {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        Companion::of(command)
    }

    /// A process that answers like the second one.
    #[test]
    #[cfg(unix)]
    fn batches_that_were_partly_alone_do_not_count() {
        let mut companion =
            script("echo ready; read a; echo going; read b; echo ns 10 20 30 40; read c").unwrap();
        companion.go().unwrap();
        assert_eq!(companion.stop().unwrap(), OtherCopies { copies: BATCH, ns: vec![20, 30] });
        let mut companion = script("echo ready; read a; echo going; read b; echo ns 10 20").unwrap();
        companion.go().unwrap();
        assert!(matches!(companion.stop(), Err(TaskError::CannotRun(why)) if why.contains("too few")));
    }

    #[test]
    #[cfg(unix)]
    fn a_second_process_that_fails_says_why() {
        let Err(TaskError::CannotRun(why)) = script("echo 'no GPU is free' >&2; exit 4") else {
            panic!("it did not start")
        };
        assert_eq!(why, "a second process cannot copy at the same time: no GPU is free");
    }
}
