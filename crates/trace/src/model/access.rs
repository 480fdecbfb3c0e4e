//! Which memory did a copy or memset touch?

/// The memory of a copy or memset, by address. Its size is that of the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    pub to: u64,
    /// `None` for a memset.
    pub from: Option<u64>,
    pub stream: StreamKind,
}

/// Which other streams does a stream wait for by itself?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamKind {
    /// Created before the recording began.
    Unknown,
    /// The legacy default stream: it waits for all blocking streams, and they for it.
    Legacy,
    /// Waits for the legacy default stream.
    Blocking,
    /// Waits for none.
    NonBlocking,
}

/// What is recorded about the memory of copies and memsets.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    /// By the correlation of their call, sorted.
    of_calls: Vec<(u64, Access)>,
    /// Streams that waited for something else than an event, sorted.
    pub(crate) other_waits: Vec<i64>,
}

impl Accesses {
    pub(crate) fn of(mut of_calls: Vec<(u64, Access)>, mut other_waits: Vec<i64>) -> Self {
        of_calls.sort_by_key(|(correlation, _)| *correlation);
        other_waits.sort_unstable();
        other_waits.dedup();
        Self { of_calls, other_waits }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.of_calls.is_empty()
    }

    pub(crate) fn get(&self, correlation: u64) -> Option<Access> {
        let at = self.of_calls.binary_search_by_key(&correlation, |(correlation, _)| *correlation).ok()?;
        Some(self.of_calls[at].1)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.of_calls.capacity() * size_of::<(u64, Access)>() + self.other_waits.capacity() * size_of::<i64>()
    }
}
