//! What did the process read from files, and what did its threads do meanwhile? The kernel's counts for the process.

use crate::model::size::Bytes;
use crate::model::time::{Nanos, Timestamp};

/// What the kernel has counted for the process until a moment, from the start of the process on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileReads {
    pub at: Timestamp,
    /// What calls like `read` returned, from disk or from the page cache. Not what is read from mapped files.
    pub read: Bytes,
    /// What came from a disk, also for mapped files. Network file systems may not count here.
    pub disk: Bytes,
    /// Page faults that waited for a disk, and those that did not.
    pub major_faults: u64,
    pub minor_faults: u64,
    /// CPU time of all threads: in the program, and in the kernel on its behalf.
    pub user: Nanos,
    pub system: Nanos,
}
