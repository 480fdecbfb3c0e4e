//! Carries one copy through the ring. The calling thread gives chunks to the GPU in order; the pool's threads copy pieces of them,
//! and so does the calling one if they are few.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::driver::{Code, Driver, NOT_READY, Stream};
use super::job::{Cut, Job, does_caller_fill};
use super::pool::Pool;
use super::process::Process;
use super::request::{Direction, Pageable};
use super::ring::Slot;
use super::touch::{is_new, prefer_huge};

/// How long the calling thread looks for a full slot, or for the last pieces, before it sleeps: others fill one in less.
const AWAKE: Duration = Duration::from_micros(100);
/// How long it sleeps at once: the GPU has chunks to read meanwhile.
const NAP: Duration = Duration::from_micros(20);

/// What the driver would have returned; `None` if the driver has to do it.
pub(super) fn carry(process: &Process, driver: &Driver, copy: Pageable) -> Option<Code> {
    let state = &process.state;
    let context = process.contexts.current(state, driver, copy.stream)?;
    let pool = context.pool.as_deref()?;
    let is_new = copy.direction == Direction::Out && is_new(copy.host, copy.bytes);
    let cut = Cut::of(copy.direction, copy.bytes, is_new, pool.threads);
    let chunks = cut.count(copy.bytes);
    let _beside = driver.beside_captures();
    let slots = context.ring.lock().ok()?.take(state, driver, chunks.min(cut.slots));
    if slots.len() < chunks.min(2) {
        context.ring.lock().ok()?.give_back(slots);
        return None;
    }
    // As the driver: a call that waits begins when the stream is done.
    if copy.waits {
        let code = driver.synchronize(copy.stream);
        if code != 0 {
            context.ring.lock().ok()?.give_back(slots);
            return Some(code);
        }
    }
    if is_new {
        prefer_huge(copy.host, copy.bytes);
    }
    let job = Arc::new(Job::new(copy.direction, copy.host, copy.bytes, cut, slots));
    let carrier = Carrier { driver, pool, copy, job: &job };
    pool.add(&job);
    let (code, in_flight) = match copy.direction {
        Direction::In => carrier.run_in(),
        Direction::Out => carrier.run_out(),
    };
    carrier.finish();
    let (busy, idle) = job.slots.split_at(in_flight.min(job.slots.len()));
    let mut ring = context.ring.lock().ok()?;
    ring.drain(busy.iter().copied());
    ring.give_back(idle.iter().copied());
    Some(code)
}

struct Carrier<'a> {
    driver: &'a Driver,
    pool: &'a Pool,
    copy: Pageable,
    job: &'a Arc<Job>,
}

impl Carrier<'_> {
    /// Host to GPU: a chunk is filled, then the GPU reads it. Returns when everything is read from the program's
    /// memory, and how many slots the GPU may still use.
    fn run_in(&self) -> (Code, usize) {
        let (job, slots) = (self.job, self.job.slots.len());
        let (mut opened, mut issued) = (slots.min(job.chunks), 0);
        let fills = does_caller_fill(self.pool.threads);
        self.open(opened);
        while issued < job.chunks {
            // A chunk that reuses a slot may be filled when the GPU has read the previous one.
            while opened < job.chunks && opened < issued + slots && self.is_ready(job.slot(opened)) {
                opened += 1;
                self.open(opened);
            }
            if job.is_done(issued) {
                let code = self.issue(issued);
                issued += 1;
                if code != 0 {
                    return (code, issued);
                }
            } else if !fills || !job.work() {
                if issued == opened {
                    let code = self.driver.wait(job.slot(opened).event);
                    if code != 0 {
                        return (code, issued);
                    }
                } else {
                    self.wait_for(issued);
                }
            }
        }
        let code = if self.copy.waits { self.driver.wait(job.slot(job.chunks - 1).event) } else { 0 };
        (code, issued)
    }

    /// GPU to host: the GPU writes a chunk, then it is copied out. Returns when everything is in the program's memory.
    fn run_out(&self) -> (Code, usize) {
        let (job, slots) = (self.job, self.job.slots.len());
        let (mut issued, mut arrived, mut done) = (0, 0, 0);
        while done < job.chunks {
            while done < arrived && job.is_done(done) {
                done += 1;
            }
            while issued < job.chunks && issued < done + slots {
                let code = self.issue(issued);
                issued += 1;
                if code != 0 {
                    return (code, issued);
                }
            }
            while arrived < issued {
                match self.driver.query(job.slot(arrived).event) {
                    0 => arrived += 1,
                    NOT_READY => break,
                    code => return (code, issued),
                }
                self.open(arrived);
            }
            if done == job.chunks || job.work() {
                continue;
            }
            if arrived < issued && (done == arrived || !job.has_work()) {
                let code = self.driver.wait(job.slot(arrived).event);
                if code != 0 {
                    return (code, issued);
                }
            } else if done < arrived {
                self.wait_for(done);
            }
        }
        // Everything has arrived, and so has the last event.
        (0, 0)
    }

    fn open(&self, chunks: usize) {
        self.job.open(chunks);
        self.pool.wake();
    }

    /// True if the GPU is done with it; also after an error, which the next call returns.
    fn is_ready(&self, slot: Slot) -> bool {
        self.driver.query(slot.event) != NOT_READY
    }

    /// Gives one chunk to the GPU, and marks when it is done with it.
    fn issue(&self, chunk: usize) -> Code {
        let ((at, length), slot) = (self.job.part(chunk), self.job.slot(chunk));
        let (device, stream): (u64, Stream) = (self.copy.device + at as u64, self.copy.stream);
        // SAFETY: the slot is pinned memory of this job; the range was found to be the GPU's.
        let code = unsafe {
            match self.copy.direction {
                Direction::In => (self.driver.copy_in)(device, slot.memory.cast(), length, stream),
                Direction::Out => (self.driver.copy_out)(slot.memory.cast(), device, length, stream),
            }
        };
        if code != 0 {
            return code;
        }
        let code = self.driver.record(slot.event, stream);
        if code != 0 {
            // Nothing says when the GPU is done with the slot.
            self.driver.synchronize(stream);
        }
        code
    }

    /// Sleeps until a chunk is done, after looking for it for a while.
    fn wait_for(&self, chunk: usize) {
        let began = Instant::now();
        while !self.job.is_done(chunk) {
            if began.elapsed() < AWAKE {
                std::hint::spin_loop();
            } else {
                // Not parked: a thread that is ending has no handle to wake it by.
                std::thread::sleep(NAP);
            }
        }
    }

    /// Returns when no thread uses the slots or the program's memory.
    fn finish(&self) {
        self.job.close();
        self.pool.remove(self.job);
        while !self.job.is_quiet() {
            std::hint::spin_loop();
        }
    }
}
