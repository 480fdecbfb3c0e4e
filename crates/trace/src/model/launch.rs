//! How was a kernel launched? Grid, block, registers, shared memory.

/// The launch geometry of one kernel, as far as it is recorded (AMD traces often lack it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Launch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers_per_thread: u32,
    /// Static and dynamic shared memory per block, in bytes.
    pub shared_memory: u32,
}
