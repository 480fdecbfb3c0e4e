//! What the library counts in one process. The counters are in a file that is mapped into the process, so that they are
//! there also if the process is killed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The first number of the file: says what it is, and its version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"bbtally1");

/// Where a copy went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Taken over, host to GPU and back.
    StagedIn,
    StagedOut,
    /// Pageable and large enough, but left to the driver.
    PassedIn,
    PassedOut,
}

/// One counter per kind.
pub const KINDS: [Kind; 4] = [Kind::StagedIn, Kind::StagedOut, Kind::PassedIn, Kind::PassedOut];

/// What was counted of one kind.
#[derive(Debug, Default)]
#[repr(C)]
struct Counter {
    copies: AtomicU64,
    bytes: AtomicU64,
    nanoseconds: AtomicU64,
}

/// The file's content.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Tally {
    magic: AtomicU64,
    /// The clock (`CLOCK_MONOTONIC`, nanoseconds) when the first counted copy began.
    began: AtomicU64,
    threads: AtomicU64,
    kinds: [Counter; 4],
}

/// The same, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    pub copies: u64,
    pub bytes: u64,
    pub nanoseconds: u64,
}

/// What a process did, read from its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    pub began: u64,
    pub threads: u64,
    kinds: [Counted; 4],
}

impl Tally {
    /// Marks the file as one that can be read: the library is in the process.
    pub fn begin(&self) {
        self.magic.store(MAGIC, Relaxed);
    }

    pub fn set_threads(&self, threads: usize) {
        self.threads.store(threads as u64, Relaxed);
    }

    /// Adds one copy: when it began, and how long it took in the calling thread.
    pub fn add(&self, kind: Kind, bytes: usize, began: u64, nanoseconds: u64) {
        // The first one counts; later ones find another number.
        let _ = self.began.compare_exchange(0, began, Relaxed, Relaxed);
        let counter = &self.kinds[kind as usize];
        counter.copies.fetch_add(1, Relaxed);
        counter.bytes.fetch_add(bytes as u64, Relaxed);
        counter.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }
}

impl Read {
    /// `None` if the bytes are not a tally.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let mut numbers =
            bytes.chunks_exact(8).map(|chunk| u64::from_le_bytes(chunk.try_into().unwrap_or_default()));
        if numbers.next()? != MAGIC {
            return None;
        }
        let (began, threads) = (numbers.next()?, numbers.next()?);
        let mut kinds = [Counted::default(); 4];
        for kind in &mut kinds {
            *kind = Counted { copies: numbers.next()?, bytes: numbers.next()?, nanoseconds: numbers.next()? };
        }
        Some(Self { began, threads, kinds })
    }

    #[must_use]
    pub fn counted(&self, kind: Kind) -> Counted {
        self.kinds[kind as usize]
    }
}

impl Counted {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            copies: self.copies + other.copies,
            bytes: self.bytes + other.bytes,
            nanoseconds: self.nanoseconds + other.nanoseconds,
        }
    }

    /// Bytes per nanosecond is GB/s.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no 64 bits")]
    pub fn gb_per_s(self) -> Option<f64> {
        (self.nanoseconds > 0).then(|| self.bytes as f64 / self.nanoseconds as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_what_is_read() {
        let tally = Tally::default();
        let bytes = || -> Vec<u8> {
            let counters = tally.kinds.iter().flat_map(|kind| [&kind.copies, &kind.bytes, &kind.nanoseconds]);
            let all = [&tally.magic, &tally.began, &tally.threads].into_iter().chain(counters);
            all.flat_map(|number| number.load(Relaxed).to_le_bytes()).collect()
        };
        assert_eq!(Read::of(&bytes()), None, "not begun");
        tally.begin();
        tally.add(Kind::StagedOut, 1000, 7, 100);
        tally.add(Kind::StagedOut, 3000, 200, 100);
        let read = Read::of(&bytes()).unwrap();
        assert_eq!(read.began, 7);
        assert_eq!(read.counted(Kind::StagedOut), Counted { copies: 2, bytes: 4000, nanoseconds: 200 });
        assert_eq!(read.counted(Kind::StagedOut).gb_per_s(), Some(20.0));
        assert_eq!(read.counted(Kind::PassedIn).gb_per_s(), None);
        assert_eq!(bytes().len(), size_of::<Tally>());
    }
}
