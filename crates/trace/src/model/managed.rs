//! Why did managed memory move, and who stumbled over a page that was elsewhere?

use serde::Serialize;

/// One migration of managed memory; its bytes and direction are those of the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// Where the pages begin, as the program sees them.
    pub address: Option<u64>,
    pub cause: MigrationCause,
}

/// What made the driver move pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MigrationCause {
    /// The program asked for it with `cudaMemPrefetchAsync`.
    Prefetch,
    /// Somebody touched them from the other side.
    Fault,
    /// The driver guessed that they would be needed, beside a fault.
    Speculation,
    /// The device's memory was full.
    Eviction,
    /// They were used from afar so often that moving them paid.
    AccessCounters,
    Unknown,
}

/// Page faults recorded together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faults {
    /// The page.
    pub address: Option<u64>,
    pub count: u64,
}
