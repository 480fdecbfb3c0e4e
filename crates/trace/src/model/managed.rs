//! Why did managed memory move, and who accessed pages that were not resident?

use serde::Serialize;

/// One migration of managed memory; its bytes and direction are those of the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// Start address of the pages, as the program sees it.
    pub address: Option<u64>,
    pub cause: MigrationCause,
}

/// Why the driver moved pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MigrationCause {
    /// The program asked for it with `cudaMemPrefetchAsync`.
    Prefetch,
    /// The other side accessed them.
    Fault,
    /// The driver expected that they would be needed, after a fault nearby.
    Speculation,
    /// The device's memory was full.
    Eviction,
    /// The other side accessed them often enough to make the move worth it.
    AccessCounters,
    Unknown,
}

/// Page faults recorded as one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// The address of the page.
    pub address: Option<u64>,
    pub count: u64,
}
