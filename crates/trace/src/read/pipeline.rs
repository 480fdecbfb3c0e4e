//! How is a file read on all cores? One thread reads and inflates, others scan, one lays together;
//! the result is the same for any number of them.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use crate::kineto::{Assembler, Batch, List, MOST_EVENTS, Outcome, Region, scan};
use crate::model::stats::LossKind;
use crate::read::stretch::{Cutter, Stretch};

/// A stretch that has been scanned.
struct Scanned {
    stretch: Stretch,
    batch: Batch,
    outcome: Outcome,
}

/// The guess that workers start from. True for every stretch but the first and the last few.
const GUESS: Region = Region::Events(List::Member);

fn scan_stretch(stretch: Stretch, region: Region, mut batch: Batch) -> Scanned {
    batch.clear();
    let outcome = scan(region, stretch.bytes(), stretch.offset, stretch.last, &mut batch);
    Scanned { stretch, batch, outcome }
}

/// Called now and then while reading, which it may end.
pub(crate) type Tick<'a> = &'a mut dyn FnMut() -> ControlFlow<()>;

/// Reads `source` to its end, or to the memory bound, on `threads` threads.
pub(crate) fn read_all<R: Read + Send>(
    source: R,
    threads: usize,
    memory_bound: u64,
    tick: Tick<'_>,
) -> Reading<R> {
    let mut cutter = Cutter::new(source);
    let mut joiner = Joiner::new(memory_bound);
    if threads <= 1 {
        let (mut buffer, mut batch) = (Vec::new(), Batch::default());
        while let Some(stretch) = cutter.next(std::mem::take(&mut buffer)) {
            let scanned = joiner.scan_next(stretch, std::mem::take(&mut batch));
            (buffer, batch) = joiner.join(scanned);
            joiner.full |= tick().is_break();
            if joiner.full {
                break;
            }
        }
    } else {
        cutter = read_on_threads(cutter, threads, &mut joiner, tick);
    }
    let stats = std::mem::take(&mut cutter.stats);
    joiner.assembler.stats_mut().absorb(stats);
    Reading { assembler: joiner.assembler, source: cutter.into_source(), stopped_early: joiner.full }
}

/// What reading a source to its end, or to the bound, gave.
pub(crate) struct Reading<R> {
    pub(crate) assembler: Assembler,
    pub(crate) source: R,
    /// At the memory bound: the source was read ahead of what is in the trace.
    pub(crate) stopped_early: bool,
}

fn read_on_threads<R: Read + Send>(
    mut cutter: Cutter<R>,
    threads: usize,
    joiner: &mut Joiner,
    tick: Tick<'_>,
) -> Cutter<R> {
    // Buffers travel in a circle, which bounds the memory in flight.
    let in_flight = 2 * threads + 2;
    let (work_in, work_out): (Sender<(u64, Stretch, Batch)>, _) = bounded(threads);
    let (done_in, done_out) = unbounded::<(u64, Scanned)>();
    let (free_in, free_out) = bounded(in_flight);
    for _ in 0..in_flight {
        // Cannot fail: the channel has room for all of them.
        let _ = free_in.send((Vec::new(), Batch::default()));
    }
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut number = 0;
            while let Ok((buffer, batch)) = free_out.recv() {
                let Some(stretch) = cutter.next(buffer) else { break };
                if work_in.send((number, stretch, batch)).is_err() {
                    break;
                }
                number += 1;
            }
            cutter
        });
        for _ in 0..threads {
            let (work, done): (Receiver<(u64, Stretch, Batch)>, _) = (work_out.clone(), done_in.clone());
            scope.spawn(move || {
                for (number, stretch, batch) in work {
                    let region = if number == 0 { Region::Start } else { GUESS };
                    if done.send((number, scan_stretch(stretch, region, batch))).is_err() {
                        break;
                    }
                }
            });
        }
        drop((work_out, done_in));
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for (number, scanned) in done_out {
            waiting.insert(number, scanned);
            while let Some(scanned) = waiting.remove(&next) {
                next += 1;
                let scanned = joiner.check_guess(scanned);
                // A closed channel means that the reader has come to the end.
                let _ = free_in.send(joiner.join(scanned));
                joiner.full |= tick().is_break();
                if joiner.full {
                    break;
                }
            }
            if joiner.full {
                break;
            }
        }
        drop(free_in);
        match reader.join() {
            Ok(cutter) => cutter,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Lays scanned stretches together in order.
struct Joiner {
    assembler: Assembler,
    /// The region that the next stretch truly begins in.
    region: Region,
    /// The end of the previous stretch that it did not hold whole.
    rest: Vec<u8>,
    memory_bound: u64,
    /// At the memory bound, or told to end.
    full: bool,
}

impl Joiner {
    fn new(memory_bound: u64) -> Self {
        Self {
            assembler: Assembler::default(),
            region: Region::Start,
            rest: Vec::new(),
            memory_bound,
            full: false,
        }
    }

    fn scan_next(&mut self, stretch: Stretch, batch: Batch) -> Scanned {
        let stretch = if self.rest.is_empty() { stretch } else { stretch.preceded_by(&self.rest) };
        scan_stretch(stretch, self.region, batch)
    }

    /// Scans again what was scanned from a wrong guess.
    fn check_guess(&mut self, mut scanned: Scanned) -> Scanned {
        let guessed_right = self.rest.is_empty()
            && match self.region {
                Region::Start => scanned.stretch.offset == 0,
                // Where a list that is no member ends, the document does, which the guess does not know.
                Region::Events(list) => list == List::Member || !scanned.outcome.left_list,
                Region::Members { .. } | Region::Finished => false,
            };
        if !guessed_right {
            return self.scan_next(scanned.stretch, scanned.batch);
        }
        if let (Region::Events(list), Region::Events(_)) = (self.region, scanned.outcome.region)
            && list != List::Member
        {
            scanned.outcome.region = self.region;
        }
        scanned
    }

    /// Returns the buffers for further use.
    fn join(&mut self, scanned: Scanned) -> (Vec<u8>, Batch) {
        let Scanned { stretch, mut batch, outcome } = scanned;
        self.region = outcome.region;
        self.rest.clear();
        self.rest.extend_from_slice(&stretch.bytes()[outcome.consumed..]);
        self.assembler.add(&mut batch, outcome.envelope);
        let held = self.assembler.heap_bytes() as u64;
        if !stretch.last && (held > self.memory_bound || self.assembler.event_count() > MOST_EVENTS) {
            let end = stretch.offset + outcome.consumed as u64;
            self.assembler.stats_mut().lose(LossKind::MemoryBound, end, 0);
            self.full = true;
        }
        (stretch.into_buffer(), batch)
    }
}
