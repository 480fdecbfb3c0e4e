//! What is to be copied?

use super::driver::Stream;

/// A copy as the program asked for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) to: u64,
    pub(super) from: u64,
    pub(super) bytes: usize,
    pub(super) stream: Stream,
    /// The call returns when the copy is done, and begins when the stream is.
    pub(super) waits: bool,
}

/// Which way it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Host to GPU.
    In,
    /// GPU to host.
    Out,
}

/// A copy between pageable memory and a GPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pageable {
    pub(super) direction: Direction,
    pub(super) host: *mut u8,
    pub(super) device: u64,
    pub(super) bytes: usize,
    pub(super) stream: Stream,
    pub(super) waits: bool,
}
