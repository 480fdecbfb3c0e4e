//! How large are the allocations of host memory that kernels can read? The sizes are in the arguments of the calls that
//! allocate or register it.

use std::collections::BTreeMap;
use std::sync::Mutex;

/// A call that makes host memory accessible to GPUs: its second argument is the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PinCall;

impl PinCall {
    /// A call by its name without prefix and version.
    pub(super) fn named(stem: &str) -> Option<Self> {
        const CALLS: [&str; 9] = [
            "HostAlloc",
            "MallocHost",
            "HostRegister",
            "MallocManaged",
            "MemHostAlloc",
            "MemAllocHost",
            "MemHostRegister",
            "MemAllocManaged",
            "MemCreate",
        ];
        CALLS.contains(&stem).then_some(Self)
    }

    /// After the call.
    pub(super) fn note(self, argument: impl Fn(usize) -> usize) {
        if let Ok(mut sizes) = SIZES.lock() {
            sizes.add(argument(1) as u64);
        }
    }
}

/// More different sizes than this say nothing about a kernel.
const MOST_SIZES: usize = 256;

/// Allocations by size since the process began to use CUDA.
#[derive(Debug)]
struct Sizes {
    /// False if some may not have been seen.
    is_complete: bool,
    counts: BTreeMap<u64, Count>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    now: u32,
    written: u32,
}

impl Sizes {
    const fn unknown() -> Self {
        Self { is_complete: false, counts: BTreeMap::new() }
    }

    fn add(&mut self, size: u64) {
        if !self.is_complete {
            return;
        }
        if self.counts.len() >= MOST_SIZES && !self.counts.contains_key(&size) {
            *self = Self::unknown();
            return;
        }
        let count = self.counts.entry(size).or_default();
        count.now = count.now.saturating_add(1);
    }

    /// Sizes with their counts, if they are new or at least twice as many as last time.
    fn news(&mut self) -> Vec<(u64, u32)> {
        let mut news = Vec::new();
        for (&size, count) in &mut self.counts {
            if count.now >= count.written.saturating_mul(2).max(1) {
                count.written = count.now;
                news.push((size, count.now));
            }
        }
        news
    }
}

static SIZES: Mutex<Sizes> = Mutex::new(Sizes::unknown());

/// All allocations are seen from now on: the process has not used CUDA yet.
pub(super) fn begin() {
    if let Ok(mut sizes) = SIZES.lock() {
        *sizes = Sizes { is_complete: true, counts: BTreeMap::new() };
    }
}

/// Allocations may be made while nothing is observed.
pub(super) fn forget() {
    if let Ok(mut sizes) = SIZES.lock() {
        *sizes = Sizes::unknown();
    }
}

/// What is new, as facts: sizes and counts.
pub(super) fn news() -> Vec<(u64, u32)> {
    SIZES.lock().map(|mut sizes| sizes.news()).unwrap_or_default()
}

/// Whether all allocations since the first use of CUDA have been seen.
pub(super) fn is_complete() -> bool {
    SIZES.lock().is_ok_and(|sizes| sizes.is_complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_when_they_are_new_or_twice_as_many() {
        let mut sizes = Sizes { is_complete: true, counts: BTreeMap::new() };
        sizes.add(64);
        sizes.add(64);
        sizes.add(4096);
        assert_eq!(sizes.news(), [(64, 2), (4096, 1)]);
        sizes.add(64);
        assert_eq!(sizes.news(), []);
        sizes.add(64);
        assert_eq!(sizes.news(), [(64, 4)]);
    }

    #[test]
    fn sizes_are_unknown_if_some_were_not_seen_or_there_are_too_many() {
        let mut sizes = Sizes::unknown();
        sizes.add(64);
        assert_eq!(sizes.news(), []);
        let mut sizes = Sizes { is_complete: true, counts: BTreeMap::new() };
        (0..=MOST_SIZES as u64).for_each(|size| sizes.add(size));
        assert!(!sizes.is_complete && sizes.news().is_empty());
    }

    #[test]
    fn calls_are_recognized_by_name() {
        for stem in ["HostAlloc", "MemAllocHost", "MallocManaged", "MemHostRegister"] {
            assert_eq!(PinCall::named(stem), Some(PinCall), "{stem}");
        }
        for stem in ["Malloc", "FreeHost", "HostUnregister", "MemAlloc"] {
            assert_eq!(PinCall::named(stem), None, "{stem}");
        }
    }
}
