//! How is a file read on all cores? One thread reads and inflates, others scan, one lays together;
//! the result is the same for any number of them.

use std::collections::BTreeMap;
use std::io::Read;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use crate::kineto::assemble::{Assembler, MOST_EVENTS};
use crate::kineto::batch::Batch;
use crate::kineto::scan::{List, Outcome, Region, scan};
use crate::kineto::stretch::{Cutter, Stretch};
use crate::model::builder::TraceBuilder;
use crate::model::stats::LossKind;
use crate::reader::{ReadOptions, Watch};

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

/// Reads `source` to its end, or to the memory bound, on as many threads as `options` say.
pub(super) fn read_all<'a>(
    source: &mut (dyn Read + Send),
    trace: &'a mut TraceBuilder,
    options: &ReadOptions,
    watch: &mut Watch<'_>,
) -> Assembler<'a> {
    let mut cutter = Cutter::new(source);
    let mut joiner = Joiner::new(trace, options.memory_bound);
    if options.threads <= 1 {
        let (mut buffer, mut batch) = (Vec::new(), Batch::default());
        while let Some(stretch) = cutter.next(std::mem::take(&mut buffer)) {
            let scanned = joiner.scan_next(stretch, std::mem::take(&mut batch));
            (buffer, batch) = joiner.join(scanned);
            joiner.full |= watch.tick().is_break();
            if joiner.full {
                break;
            }
        }
    } else {
        cutter = read_on_threads(cutter, options.threads, &mut joiner, watch);
    }
    let stats = std::mem::take(&mut cutter.stats);
    joiner.assembler.stats_mut().absorb(stats);
    joiner.assembler
}

fn read_on_threads<R: Read + Send>(
    mut cutter: Cutter<R>,
    threads: usize,
    joiner: &mut Joiner<'_>,
    watch: &mut Watch<'_>,
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
                joiner.full |= watch.tick().is_break();
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
struct Joiner<'a> {
    assembler: Assembler<'a>,
    /// The region that the next stretch truly begins in.
    region: Region,
    /// The end of the previous stretch that it did not hold whole.
    rest: Vec<u8>,
    memory_bound: u64,
    /// At the memory bound, or told to end.
    full: bool,
}

impl<'a> Joiner<'a> {
    fn new(trace: &'a mut TraceBuilder, memory_bound: u64) -> Self {
        Self {
            assembler: Assembler::new(trace),
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
