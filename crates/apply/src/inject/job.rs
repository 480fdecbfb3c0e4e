//! One copy, cut into chunks (one slot each) and these into pieces that threads take.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::request::Direction;
use super::ring::{SLOT, Slot};
use super::stream::stream;
use super::touch::bring_in;

/// How a copy is cut. The numbers are those measured best: see docs/results/try.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// What the GPU gets at once: it pauses for some microseconds after each.
    chunk: usize,
    /// So many chunks at the beginning have [`FIRST`] bytes, so that the GPU begins soon.
    small: usize,
    /// What a thread takes at once: small enough that several share a chunk and the first one is soon full, but large where
    /// memory is new, because threads that bring in pages next to each other wait for each other.
    piece: usize,
    /// Past the caches. Into the ring: where slots are not in the caches, fetching their old content costs up to half of the time.
    /// Out of it: for a copy that does not fit in the caches, fetching what is overwritten costs half; new pages are in the
    /// caches already.
    streams: bool,
    /// Slots that it uses in turn, at most: enough that neither the threads nor the GPU wait for the other, and few enough that they
    /// stay in the caches, where that is faster: what few threads copy out, and what many fill at the speed of the link.
    pub(super) slots: usize,
}

const LARGE: usize = 64 << 20;
const MEDIUM: usize = 16 << 20;
const MIB: usize = 1 << 20;
/// A small chunk.
const FIRST: usize = MIB;
/// Fewer threads than these are slower than the link.
const FEW: usize = 4;
const MANY_SLOTS: usize = 16;
const FEW_SLOTS: usize = 4;
/// With eight threads and an H200, large copies through the caches reach 49 to 51 GB/s with 4 to 16 slots, copies past them 46; with
/// four threads or fewer it is the other way round. Fewer slots are slower in programs, and more are slower after other work
/// (fixtures/try/copying.c, docs/results/try.md).
const CACHED_SLOTS: usize = 10;
/// Smaller ones are over before that pays: the GPU reads the first chunks out of the threads' own caches, which is slow (32 to 64 MiB:
/// 32 GB/s through the caches, 41 past them; 112 MiB: a tenth faster through them).
const CACHED_FROM: usize = 96 << 20;

impl Cut {
    /// For a copy that this many threads share.
    pub(super) fn of(direction: Direction, bytes: usize, is_new: bool, threads: usize) -> Self {
        match direction {
            Direction::In => Self::into_ring(bytes, threads),
            Direction::Out => Self::out_of_ring(bytes, is_new, threads),
        }
    }

    fn into_ring(bytes: usize, threads: usize) -> Self {
        let is_fast = bytes >= 2 * MEDIUM && !does_caller_fill(threads);
        let is_cached = is_fast && bytes >= CACHED_FROM;
        let (chunk, small) = if is_fast { (SLOT, 4) } else { (MIB, 0) };
        let slots = if is_cached { CACHED_SLOTS } else { MANY_SLOTS };
        Self { chunk, small, piece: MIB / 8, streams: !is_cached, slots }
    }

    fn out_of_ring(bytes: usize, is_new: bool, threads: usize) -> Self {
        let streams = !is_new && bytes >= 2 * MEDIUM;
        let chunk = match bytes {
            _ if streams || bytes >= LARGE => SLOT,
            MEDIUM.. => 2 * MIB,
            _ => MIB,
        };
        let piece = match streams {
            _ if is_new => MIB,
            true if threads < FEW => MIB,
            true => MIB / 2,
            false => MIB / 8,
        };
        let slots = if streams && threads < FEW { FEW_SLOTS } else { MANY_SLOTS };
        Self { chunk, small: 0, piece, streams, slots }
    }

    /// Chunks of a copy.
    pub(super) fn count(&self, bytes: usize) -> usize {
        let first = self.small * FIRST;
        match bytes.checked_sub(first) {
            Some(rest) => self.small + rest.div_ceil(self.chunk),
            None => bytes.div_ceil(FIRST),
        }
    }

    /// Where a chunk of a copy begins, and its length.
    fn part(&self, bytes: usize, chunk: usize) -> (usize, usize) {
        let (at, length) = match chunk.checked_sub(self.small) {
            Some(large) => (self.small * FIRST + large * self.chunk, self.chunk),
            None => (chunk * FIRST, FIRST),
        };
        (at, length.min(bytes - at))
    }
}

/// Whether the calling thread fills slots as well. Where others fill them as fast as the GPU empties them, it only gives them to the
/// GPU: a full slot that waits for a thread which is copying costs more than that thread gains.
pub(super) fn does_caller_fill(threads: usize) -> bool {
    threads <= FEW
}

#[derive(Debug)]
pub(super) struct Job {
    direction: Direction,
    host: *mut u8,
    pub(super) bytes: usize,
    cut: Cut,
    pub(super) chunks: usize,
    pub(super) slots: Vec<Slot>,
    /// Chunks that may be worked on: those before this one.
    open: AtomicUsize,
    next_piece: AtomicUsize,
    finished: AtomicUsize,
    /// Pieces left in each chunk.
    left: Vec<AtomicUsize>,
}

// SAFETY: the addresses are used only for pieces, each by one thread, while the calling thread waits for all of them.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    pub(super) fn new(direction: Direction, host: *mut u8, bytes: usize, cut: Cut, slots: Vec<Slot>) -> Self {
        let chunks = cut.count(bytes);
        let pieces = |number: usize| cut.part(bytes, number).1.div_ceil(cut.piece);
        Self {
            direction,
            host,
            bytes,
            cut,
            chunks,
            slots,
            open: AtomicUsize::new(0),
            next_piece: AtomicUsize::new(0),
            finished: AtomicUsize::new(0),
            left: (0..chunks).map(|number| AtomicUsize::new(pieces(number))).collect(),
        }
    }

    /// Where a chunk begins, and its length.
    pub(super) fn part(&self, chunk: usize) -> (usize, usize) {
        self.cut.part(self.bytes, chunk)
    }

    pub(super) fn slot(&self, chunk: usize) -> Slot {
        self.slots[chunk % self.slots.len()]
    }

    /// Chunks before this one may be worked on.
    pub(super) fn open(&self, chunks: usize) {
        self.open.store(chunks, Ordering::Release);
    }

    pub(super) fn is_done(&self, chunk: usize) -> bool {
        self.left[chunk].load(Ordering::Acquire) == 0
    }

    /// No thread works on it, nor will: nothing more is opened after `close`.
    pub(super) fn is_quiet(&self) -> bool {
        self.finished.load(Ordering::Acquire) == self.next_piece.load(Ordering::Acquire)
    }

    /// No further piece is given out.
    pub(super) fn close(&self) {
        self.open.store(0, Ordering::Release);
        // Pieces are taken by raising this number: past the end there is none.
        let all = self.pieces();
        let taken = self.next_piece.swap(all, Ordering::AcqRel);
        self.finished.fetch_add(all - taken, Ordering::AcqRel);
    }

    fn pieces(&self) -> usize {
        self.chunks * self.pieces_per_chunk()
    }

    /// Small chunks and the last one have fewer; the rest of their numbers are empty pieces.
    fn pieces_per_chunk(&self) -> usize {
        self.cut.chunk / self.cut.piece
    }

    /// True if there is something to do.
    pub(super) fn has_work(&self) -> bool {
        let open = self.open.load(Ordering::Acquire) * self.pieces_per_chunk();
        self.next_piece.load(Ordering::Relaxed) < open
    }

    /// Copies one piece; false if there is none to take.
    pub(super) fn work(&self) -> bool {
        let take = |next: usize| {
            let open = self.open.load(Ordering::Acquire) * self.pieces_per_chunk();
            (next < open).then_some(next + 1)
        };
        let Ok(piece) = self.next_piece.fetch_update(Ordering::AcqRel, Ordering::Acquire, take) else {
            return false;
        };
        self.copy(piece);
        self.finished.fetch_add(1, Ordering::AcqRel);
        true
    }

    fn copy(&self, piece: usize) {
        let (chunk, within) =
            (piece / self.pieces_per_chunk(), piece % self.pieces_per_chunk() * self.cut.piece);
        let (at, length) = self.part(chunk);
        let Some(length) =
            length.checked_sub(within).filter(|&length| length > 0).map(|length| length.min(self.cut.piece))
        else {
            return;
        };
        let (host, pinned) =
            (self.host.wrapping_add(at + within), self.slot(chunk).memory.wrapping_add(within));
        let (from, to) = match self.direction {
            Direction::In => (host, pinned),
            Direction::Out => {
                bring_in(host, length);
                (pinned, host)
            }
        };
        // SAFETY: the pinned memory is this job's; the program's memory is what it gave to be copied, and is its own until the
        // call returns; they do not overlap. A bad address ends as in the driver, which copies in the same way.
        unsafe {
            if self.cut.streams {
                stream(from, to, length);
            } else {
                std::ptr::copy_nonoverlapping(from, to, length);
            }
        }
        self.left[chunk].fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inject::driver::Event;

    fn job(from: &[u8], cut: Cut, pinned: &mut Vec<u8>) -> Job {
        let chunks = cut.count(from.len());
        pinned.resize(chunks * SLOT, 0);
        let memory = pinned.as_mut_ptr();
        let slots =
            (0..chunks).map(|slot| Slot { memory: memory.wrapping_add(slot * SLOT), event: Event::none() });
        Job::new(Direction::In, from.as_ptr().cast_mut(), from.len(), cut, slots.collect())
    }

    /// Of a length that no piece is a multiple of.
    const NUMBERS: [u8; 7] = [3, 1, 4, 15, 92, 65, 35];

    /// Every byte is copied once, by whatever threads, for sizes around the cuts.
    #[test]
    fn pieces_cover_a_copy_exactly() {
        for bytes in [1, MIB / 8 - 1, MIB / 8, MIB + 1, MEDIUM - 1, MEDIUM, LARGE - 1, LARGE + 3] {
            let from = NUMBERS.repeat(bytes / NUMBERS.len() + 1)[..bytes].to_vec();
            let (cut, mut pinned) = (Cut::of(Direction::In, bytes, false, 8), Vec::new());
            let job = job(&from, cut, &mut pinned);
            assert!(!job.work(), "nothing is open");
            job.open(job.chunks);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| while job.work() {});
                }
            });
            assert!(job.is_quiet() && (0..job.chunks).all(|chunk| job.is_done(chunk)));
            for chunk in 0..job.chunks {
                let (at, length) = job.part(chunk);
                assert!(pinned[chunk * SLOT..chunk * SLOT + length] == from[at..at + length], "{bytes}");
            }
        }
    }

    #[test]
    fn every_cut_fits_in_a_slot_and_is_cut_evenly() {
        for bytes in [1, MIB, MEDIUM, 2 * MEDIUM - 1, 2 * MEDIUM, LARGE, 16 * LARGE] {
            for (direction, is_new) in
                [(Direction::In, false), (Direction::Out, false), (Direction::Out, true)]
            {
                for threads in 1..=16 {
                    let cut = Cut::of(direction, bytes, is_new, threads);
                    assert!(cut.chunk <= SLOT && cut.chunk.is_multiple_of(cut.piece), "{bytes} {cut:?}");
                }
            }
        }
    }

    /// Threads that are slower than the link find what it has brought in the caches; there, 16 slots made them up to a tenth slower.
    #[test]
    fn a_few_threads_copy_out_of_a_few_slots() {
        let slots = |direction, threads| Cut::of(direction, 4 * LARGE, false, threads).slots;
        assert_eq!((slots(Direction::Out, 2), slots(Direction::Out, 3)), (FEW_SLOTS, FEW_SLOTS));
        assert_eq!((slots(Direction::Out, 4), slots(Direction::In, 2)), (MANY_SLOTS, MANY_SLOTS));
    }

    #[test]
    fn only_large_copies_by_many_threads_go_through_the_caches() {
        let streams = |bytes, threads| Cut::of(Direction::In, bytes, false, threads).streams;
        assert_eq!(
            [streams(CACHED_FROM, 8), streams(CACHED_FROM - 1, 8), streams(4 * LARGE, 4)],
            [false, true, true]
        );
        assert_eq!(Cut::of(Direction::In, 4 * LARGE, false, 8).slots, CACHED_SLOTS);
    }

    #[test]
    fn a_closed_job_gives_out_nothing_and_becomes_quiet() {
        let (from, mut pinned) = (vec![1u8; MIB], Vec::new());
        let job = job(&from, Cut::of(Direction::In, MIB, false, 8), &mut pinned);
        job.open(1);
        assert!(job.work());
        job.close();
        assert!(!job.work() && job.is_quiet());
    }
}
