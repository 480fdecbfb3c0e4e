//! How is a file read on all cores? One thread reads and inflates, others scan, one merges. The result is the same
//! for any number of threads.

use std::collections::BTreeMap;
use std::io::Read;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use crate::kineto::assemble::{Assembler, MAX_EVENTS};
use crate::kineto::batch::Batch;
use crate::kineto::scan::{List, Outcome, Region, scan};
use crate::kineto::segment::{Cutter, Segment};
use crate::model::builder::TraceBuilder;
use crate::model::stats::LossKind;
use crate::reader::{ReadOptions, Watch};

/// A segment that has been scanned.
struct Scanned {
    segment: Segment,
    batch: Batch,
    outcome: Outcome,
}

/// The region that workers assume at first. Correct for all segments except the first and the last few.
const GUESS: Region = Region::Events(List::Member);

fn scan_segment(segment: Segment, region: Region, mut batch: Batch) -> Scanned {
    batch.clear();
    let outcome = scan(region, segment.bytes(), segment.offset, segment.last, &mut batch);
    Scanned { segment, batch, outcome }
}

/// Reads `source` to its end or to the memory limit, on the number of threads in `options`.
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
        while let Some(segment) = cutter.next(std::mem::take(&mut buffer)) {
            let scanned = joiner.scan_next(segment, std::mem::take(&mut batch));
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
    // Buffers circulate, which limits the memory in flight.
    let in_flight = 2 * threads + 2;
    let (work_in, work_out): (Sender<(u64, Segment, Batch)>, _) = bounded(threads);
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
                let Some(segment) = cutter.next(buffer) else { break };
                if work_in.send((number, segment, batch)).is_err() {
                    break;
                }
                number += 1;
            }
            cutter
        });
        for _ in 0..threads {
            let (work, done): (Receiver<(u64, Segment, Batch)>, _) = (work_out.clone(), done_in.clone());
            scope.spawn(move || {
                for (number, segment, batch) in work {
                    let region = if number == 0 { Region::Start } else { GUESS };
                    if done.send((number, scan_segment(segment, region, batch))).is_err() {
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
                // A closed channel means that the reader has finished.
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

/// Merges scanned segments in order.
struct Joiner<'a> {
    assembler: Assembler<'a>,
    /// The region that the next segment really begins in.
    region: Region,
    /// The incomplete value at the end of the previous segment.
    rest: Vec<u8>,
    memory_bound: u64,
    /// Stopped at the memory limit or by the caller.
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

    fn scan_next(&mut self, segment: Segment, batch: Batch) -> Scanned {
        let segment = if self.rest.is_empty() { segment } else { segment.preceded_by(&self.rest) };
        scan_segment(segment, self.region, batch)
    }

    /// Scans again if the assumed region was wrong.
    fn check_guess(&mut self, mut scanned: Scanned) -> Scanned {
        let guessed_right = self.rest.is_empty()
            && match self.region {
                Region::Start => scanned.segment.offset == 0,
                // A list that is not a member ends the document, which the assumed region does not cover.
                Region::Events(list) => list == List::Member || !scanned.outcome.left_list,
                Region::Members { .. } | Region::Finished => false,
            };
        if !guessed_right {
            return self.scan_next(scanned.segment, scanned.batch);
        }
        if let (Region::Events(list), Region::Events(_)) = (self.region, scanned.outcome.region)
            && list != List::Member
        {
            scanned.outcome.region = self.region;
        }
        scanned
    }

    /// Returns the buffers for reuse.
    fn join(&mut self, scanned: Scanned) -> (Vec<u8>, Batch) {
        let Scanned { segment, mut batch, outcome } = scanned;
        self.region = outcome.region;
        self.rest.clear();
        self.rest.extend_from_slice(&segment.bytes()[outcome.consumed..]);
        self.assembler.add(&mut batch, outcome.envelope);
        let held = self.assembler.heap_bytes() as u64;
        if !segment.last && (held > self.memory_bound || self.assembler.event_count() > MAX_EVENTS) {
            let end = segment.offset + outcome.consumed as u64;
            self.assembler.stats_mut().lose(LossKind::MemoryBound, end, 0);
            self.full = true;
        }
        (segment.into_buffer(), batch)
    }
}
