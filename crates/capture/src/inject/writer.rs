//! The writer thread: takes filled buffers, converts their records, and passes them to the file or to the ring. It starts and
//! stops recording, and answers commands.

#![expect(unsafe_code, reason = "a buffer of numbers is read as bytes")]

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::collect::Collector;
use super::control::{Command, Control};
use super::cupti::Cupti;
use super::flusher::Flusher;
use super::layout::Raw;
use super::output::{Output, RecordingFile};
use super::ring::Ring;
use super::sampler::Sampler;
use super::settings::{Settings, When};
use super::timer::Timer;
use super::triggers::Triggers;
use super::{IS_SUBSCRIBED, QUEUED, driver, pinned, say, signals, waits};
use crate::format::{ChunkWriter, Record};

/// Whether CUPTI has delivered its last buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flush {
    First,
    Done,
}

/// Messages to the thread.
pub(super) enum Message {
    /// A buffer that CUPTI has filled, with its valid length.
    Buffer(Box<[u64]>, usize),
    /// The process ends: write what is left, and signal when done.
    End(Sender<()>),
}

/// Complete data is written at least this often.
const FLUSHED_EVERY: Duration = Duration::from_millis(400);
/// How often the link's counters are read. They wrap, see [`Nvml::crossed`](super::nvml::Nvml::crossed); and kernels that read
/// host memory leave no other trace of it, so a reading must not span many of them. Much more often would hurt: a reading takes 0.3 to
/// 0.5 ms, and a kernel that reads host memory meanwhile takes half as long again (docs/results/zero_copy.md).
const COUNTED_EVERY: Duration = Duration::from_millis(8);
/// The same for a ring, which is always on.
const COUNTED_IN_RING: Duration = Duration::from_millis(50);
/// How often the thread looks around.
const TICK: Duration = Duration::from_millis(8);
const TICK_IN_RING: Duration = Duration::from_millis(25);
/// Links change their speed with the load.
const LINK_ASKED_EVERY: Duration = Duration::from_secs(1);
/// How often it is asked what the process has read from files, which takes less than 0.1 ms, also with 200 threads.
const FILES_COUNTED_EVERY: Duration = Duration::from_millis(100);
/// How long a dump waits for CUPTI's last buffers: less than a process that crashes waits for its dump.
const FLUSHED_WITHIN: Duration = Duration::from_millis(700);
/// A chunk is written when it reaches this size. Damage loses a whole chunk, about a thousand events of this size.
const CHUNK: usize = 32 << 10;

pub(super) struct Writer {
    settings: Settings,
    messages: Receiver<Message>,
    collector: Collector,
    flusher: Option<Flusher>,
    output: Output,
    control: Option<Control>,
    is_subscribed: bool,
    /// Whether the process already uses CUDA.
    is_late: bool,
    is_recording: bool,
    /// When recording starts and stops by itself.
    start_at: Option<Instant>,
    stop_at: Option<Instant>,
    /// Files that this process has written.
    files: u32,
    sampler: Option<Sampler>,
    /// Kernels are not recorded since then.
    kernels_off: Option<u64>,
    triggers: Triggers,
    /// Who waits for the end.
    ending: Option<Sender<()>>,
}

impl Writer {
    pub(super) fn new(settings: Settings, messages: Receiver<Message>, cupti: Cupti, place: &str) -> Self {
        let ring = match settings.when {
            When::Ring { last } => Some(Ring::new(last, Instant::now())),
            _ => None,
        };
        let watchdog = settings.watchdog.filter(|_| ring.is_some());
        Self {
            collector: Collector::new(cupti, place, settings.counts_bytes),
            flusher: None,
            output: Output::new(ring),
            settings,
            messages,
            control: None,
            is_subscribed: false,
            is_late: false,
            is_recording: false,
            start_at: None,
            stop_at: None,
            files: 0,
            sampler: None,
            kernels_off: None,
            triggers: Triggers::new(watchdog),
            ending: None,
        }
    }

    /// Subscribes to CUPTI and makes the file, before the process continues.
    ///
    /// # Errors
    /// With a message: another profiler uses CUPTI, or no file can be written.
    pub(super) fn prepare(&mut self) -> Result<(), String> {
        match self.settings.when {
            When::Window { delay, duration } => {
                self.subscribe()?;
                let file = RecordingFile::for_process(&self.settings.to);
                self.begin_file(file)?;
                match delay.is_zero() {
                    true => self.record(duration),
                    false => self.start_at = Some(Instant::now() + delay),
                }
            }
            When::Ring { .. } => {
                self.subscribe()?;
                self.record(None);
            }
            When::Standby => {}
            When::Cycle { every, .. } => self.start_at = Some(next_window(every)),
        }
        if self.is_recording {
            pinned::begin();
        }
        if let Some(directory) = &self.settings.control {
            match Control::listen(directory) {
                Ok(control) => self.control = Some(control),
                // What needs no commands works without.
                Err(why) => say(&why),
            }
        }
        Ok(())
    }

    fn begin_file(&mut self, file: Result<RecordingFile, String>) -> Result<(), String> {
        let begun = file.and_then(|file| self.output.begin(file, &mut self.collector.definitions));
        if begun.is_err() {
            // Other profilers may need CUPTI.
            self.unsubscribe();
            return begun;
        }
        self.collector.clock();
        self.cut();
        Ok(())
    }

    fn subscribe(&mut self) -> Result<(), String> {
        if !self.is_subscribed {
            let called = waits::called;
            self.collector.cupti.take(super::buffer_requested, super::buffer_completed, called)?;
            self.collector.prepare();
            if self.flusher.is_none() {
                self.flusher = Flusher::start(self.collector.cupti);
            }
            self.set_subscribed(true);
            if self.is_late {
                driver::gpus().into_iter().for_each(|(gpu, uuid)| self.collector.gpu(gpu, uuid));
            }
        }
        Ok(())
    }

    fn unsubscribe(&mut self) {
        if self.is_subscribed {
            self.is_late = true;
            self.collector.cupti.release();
            self.set_subscribed(false);
        }
    }

    fn set_subscribed(&mut self, is_subscribed: bool) {
        self.is_subscribed = is_subscribed;
        IS_SUBSCRIBED.store(is_subscribed, Ordering::SeqCst);
    }

    fn record(&mut self, duration: Option<Duration>) {
        let cupti = self.collector.cupti;
        for kind in cupti.begin(waits::calls(&cupti), self.is_late) {
            self.collector.definitions.note(&format!("CUPTI does not record activity kind {kind} here"));
        }
        self.collector.links(true);
        self.collector.files();
        self.tell_kernels_off();
        self.kernels_off = None;
        self.sampler = self.output.ring.is_some().then(|| Sampler::new(Instant::now()));
        self.stop_at = duration.map(|duration| Instant::now() + duration);
        (self.is_recording, self.start_at) = (true, None);
    }

    fn start(&mut self, duration: Option<Duration>) -> Result<String, String> {
        if self.is_recording {
            return Err("it is recording already".to_owned());
        }
        self.subscribe()?;
        let is_ring = self.output.ring.is_some();
        if !is_ring && !self.output.is_writing() {
            let file = RecordingFile::numbered(&self.settings.to, "window", &mut self.files);
            self.begin_file(file)?;
        }
        self.record(duration);
        Ok(match duration {
            Some(duration) => format!("started to record, for {} s", duration.as_secs_f64()),
            None => "started to record".to_owned(),
        })
    }

    fn stop(&mut self) -> Result<String, String> {
        if !self.is_recording {
            return Err("it is not recording".to_owned());
        }
        let cupti = self.collector.cupti;
        waits::end(&cupti);
        self.flush(true);
        self.take_all();
        pinned::forget();
        // A ring goes on after the gap, which must not look like idle time.
        self.kernels_off = self.output.ring.is_some().then(|| cupti.now());
        (self.is_recording, self.stop_at, self.sampler) = (false, None, None);
        self.unsubscribe();
        if let When::Cycle { every, .. } = self.settings.when {
            self.start_at = Some(next_window(every));
        }
        if self.output.ring.is_some() {
            return Ok("stopped; what the ring holds can still be dumped".to_owned());
        }
        self.finish_file().map(|path| format!("wrote {path}"))
    }

    /// Writes the end of the file; its path.
    fn finish_file(&mut self) -> Result<String, String> {
        let mut chunk = ChunkWriter::default();
        chunk.add(&Record::End);
        self.output.add(&mut chunk);
        self.output.end().map(|path| path.display().to_string())
    }

    /// Writes what the ring holds.
    fn dump(&mut self, why: &str, flush: Flush) -> Result<String, String> {
        let now = Instant::now();
        let Some(ring) = &self.output.ring else {
            return Err("it keeps no ring: start the program with busbound record --ring 60s".to_owned());
        };
        let note = format!("Dumped because {why}; {}.", ring.describe(now));
        let sampled = self.sampler.as_ref().and_then(Sampler::describe);
        // First without CUPTI: a process that crashes may hold its locks.
        self.cut();
        let file = RecordingFile::numbered(&self.settings.to, "dump", &mut self.files)?;
        self.output.begin(file, &mut self.collector.definitions)?;
        let mut chunk = ChunkWriter::default();
        for text in [Some(note), sampled.map(|how| format!("In this dump, {how}."))].into_iter().flatten() {
            chunk.add(&Record::Note { text: text.as_bytes() });
        }
        self.output.add(&mut chunk);
        self.output.settle();
        if self.is_recording {
            if flush == Flush::First {
                self.flush(self.triggers.is_quiet(now));
            }
            self.take_all();
            self.collector.state_of_links(&mut chunk);
        }
        let unfinished = self.collector.take_unfinished();
        if !unfinished.is_empty() {
            let text = format!("These kernels had not finished: {}.", unfinished.join(", "));
            chunk.add(&Record::Note { text: text.as_bytes() });
        }
        self.output.add(&mut chunk);
        self.finish_file()
    }

    /// Lets CUPTI deliver its buffers.
    fn flush(&mut self, all: bool) {
        if let Some(flusher) = &mut self.flusher {
            flusher.flush(all, FLUSHED_WITHIN);
        }
    }

    fn is_stuck(&mut self) -> bool {
        self.flusher.as_mut().is_some_and(Flusher::is_stuck)
    }

    /// Reads everything that has arrived.
    fn take_all(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            self.message(message);
        }
        self.collector.waits();
        self.sum_up();
        self.cut();
    }

    /// What CUPTI says about itself, if it still answers.
    fn sum_up(&mut self) {
        if !self.is_stuck() {
            self.collector.files();
            self.collector.lost();
            self.tell_kernels_off();
        }
    }

    fn cut(&mut self) {
        self.output.cut(&mut self.collector.chunk, &mut self.collector.definitions);
    }

    /// Runs until the process ends.
    pub(super) fn run(mut self) {
        self.is_late = !self.is_subscribed;
        if self.output.ring.is_some() {
            signals::watch_crashes();
        }
        if let Some(Err(why)) = self.settings.signal.map(signals::watch_requests) {
            say(&why);
        }
        let is_ring = self.output.ring.is_some();
        let (tick, counted) = if is_ring { (TICK_IN_RING, COUNTED_IN_RING) } else { (TICK, COUNTED_EVERY) };
        let mut timers = [FLUSHED_EVERY, counted, LINK_ASKED_EVERY, FILES_COUNTED_EVERY].map(Timer::new);
        loop {
            match self.messages.recv_timeout(tick) {
                Ok(message) => self.message(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if let Some(done) = self.ending.take() {
                self.end();
                let _ = done.send(());
                return;
            }
            if let Some(signal) = signals::fatal() {
                let _ = self.dump(&format!("the process received {}", signals::name(signal)), Flush::First);
                signals::is_dumped();
                return;
            }
            self.obey();
            if self.is_recording {
                self.observe(&mut timers);
            }
        }
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Buffer(buffer, valid) => self.buffer(buffer, valid),
            Message::End(done) => self.ending = Some(done),
        }
    }

    /// The process ends.
    fn end(&mut self) {
        self.control = None;
        if self.output.ring.is_some() {
            if let Err(why) = self.dump("the process exited", Flush::Done) {
                say(&why);
            }
        } else if self.output.is_writing() {
            // Nothing is turned off: CUDA may be gone already.
            self.take_all();
            let _ = self.finish_file();
        }
    }

    /// Does what the clock, a command, a signal or the program's behavior ask for.
    fn obey(&mut self) {
        let now = Instant::now();
        if self.start_at.is_some_and(|at| now >= at) {
            self.start_at = None;
            let duration = match self.settings.when {
                When::Window { duration, .. } => duration,
                When::Cycle { duration, .. } => Some(duration),
                _ => None,
            };
            if let Err(why) = self.start(duration) {
                say(&why);
                if let When::Cycle { every, .. } = self.settings.when {
                    self.start_at = Some(next_window(every));
                }
            }
        }
        if self.is_recording
            && self.stop_at.is_some_and(|at| now >= at)
            && let Err(why) = self.stop()
        {
            say(&why);
        }
        if let Some((command, client)) = self.control.as_ref().and_then(Control::next) {
            let answer = match command {
                Command::Dump => {
                    self.dump("it was asked for", Flush::First).map(|path| format!("wrote {path}"))
                }
                Command::Start(duration) => self.start(duration),
                Command::Stop => self.stop(),
            };
            client.answer(&answer);
        }
        let asked = signals::take_request().then(|| "a signal asked for it".to_owned());
        let is_ring = self.is_recording && self.output.ring.is_some();
        if let Some(why) = asked.or_else(|| self.triggers.reason(now).filter(|_| is_ring)) {
            match self.dump(&why, Flush::First) {
                Ok(path) => say(&format!("wrote {path}, because {why}")),
                Err(failed) => say(&failed),
            }
        }
    }

    /// What is done again and again while recording.
    fn observe(&mut self, [flushed, counted, links, files]: &mut [Timer; 4]) {
        self.collector.waits();
        let is_stuck = self.is_stuck();
        if counted.is_due() && !is_stuck {
            self.collector.count();
        }
        if links.is_due() {
            self.collector.links(false);
        }
        if files.is_due() && !is_stuck {
            self.collector.files();
        }
        let now = Instant::now();
        let arrived = self.collector.take_arrived();
        if arrived.has_device_work {
            self.triggers.device_worked(now);
        }
        arrived.steps.into_iter().for_each(|nanos| self.triggers.step(nanos));
        if let Some(sampler) = self.sampler.as_mut().filter(|_| !is_stuck) {
            sampler.add_kernels(arrived.kernels);
            if let Some(is_on) = sampler.tick(now) {
                self.set_kernels(is_on);
            }
        }
        if flushed.is_due() {
            // Buffers arrive through the callback, in this thread's own channel.
            if let Some(flusher) = &mut self.flusher {
                flusher.ask(false);
            }
            self.sum_up();
            if self.output.ring.is_some() && !is_stuck {
                // Whatever the ring forgets, a dump has the time of day.
                self.collector.clock();
            }
            self.cut();
        }
    }

    fn set_kernels(&mut self, is_on: bool) {
        self.collector.cupti.set_kernels(is_on);
        self.tell_kernels_off();
        self.kernels_off = (!is_on).then(|| self.collector.cupti.now());
    }

    /// Records since when kernels have not been recorded.
    fn tell_kernels_off(&mut self) {
        if let Some(start) = self.kernels_off {
            let end = self.collector.cupti.now();
            self.collector.chunk.add(&Record::KernelsOff { start, end });
            self.kernels_off = Some(end);
        }
    }

    fn buffer(&mut self, mut buffer: Box<[u64]>, valid: usize) {
        QUEUED.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: any u64 is eight bytes, and the slice covers the same memory.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast::<u8>(), valid.min(buffer.len() * 8))
        };
        for at in self.collector.cupti.records(bytes) {
            self.collector.add(Raw { bytes: &bytes[at..] });
            if self.collector.chunk.len() >= CHUNK {
                self.cut();
            }
        }
        super::keep(buffer);
    }
}

/// Windows begin at multiples of their period in calendar time: all ranks of a run record the same steps, without asking
/// each other.
fn next_window(every: Duration) -> Instant {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let into = unix.as_nanos().checked_rem(every.as_nanos()).unwrap_or(0);
    Instant::now() + every.saturating_sub(Duration::from_nanos(u64::try_from(into).unwrap_or(0)))
}
