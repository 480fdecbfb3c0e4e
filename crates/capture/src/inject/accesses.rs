//! Which memory does a copy or memset touch, and does its stream wait for others by itself? Both are in the arguments of the
//! call, or in those of the call that created the stream: nothing is asked.

use std::collections::HashMap;
use std::sync::Mutex;

use super::placement::CopyCall;
use crate::format::{Record, streams};

/// A call that touches memory by address. The first argument is the destination; that of a copy is followed by the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AccessCall {
    /// `None` for a memset.
    pub(super) copy: Option<CopyCall>,
    /// Which argument is the stream; `None` for calls that wait.
    stream: Option<usize>,
    /// Whether the default stream of the call is per thread.
    is_per_thread: bool,
}

impl AccessCall {
    /// A call by its name without prefix and version. Copies of rows (`Memcpy2D`), batches and copies between devices have
    /// other arguments and are not observed.
    pub(super) fn named(stem: &str, is_runtime: bool, is_per_thread: bool) -> Option<Self> {
        let is_asynchronous = stem.ends_with("Async");
        let copy = CopyCall::named(stem, is_runtime);
        let is_memset = match stem.trim_end_matches("Async") {
            "Memset" => is_runtime,
            "MemsetD8" | "MemsetD16" | "MemsetD32" => !is_runtime,
            _ => false,
        };
        if copy.is_none() && !is_memset {
            return None;
        }
        // Only copies of the runtime have a kind before the stream.
        let stream = if copy.is_some() && is_runtime { 4 } else { 3 };
        Some(Self { copy, stream: is_asynchronous.then_some(stream), is_per_thread })
    }

    pub(super) fn record(self, correlation: u32, argument: impl Fn(usize) -> usize) -> Record<'static> {
        let stream = kind_of(self.stream.map_or(0, &argument), self.is_per_thread);
        let from = if self.copy.is_some() { argument(1) } else { 0 };
        Record::Access { correlation, stream, to: argument(0) as u64, from: from as u64 }
    }
}

/// A call that creates or destroys a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamCall {
    /// The address of the new stream is written to the first argument; some have flags in the second.
    Create {
        has_flags: bool,
    },
    Destroy,
}

/// `cudaStreamNonBlocking` and `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;
/// Addresses that stand for a stream: `cudaStreamLegacy` and `cudaStreamPerThread`.
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;
/// Streams that are known at a time.
const MOST_STREAMS: usize = 1 << 16;

/// What is known about streams, by their address.
static STREAMS: Mutex<Option<HashMap<usize, u8>>> = Mutex::new(None);

impl StreamCall {
    /// A call by its name without prefix and version.
    pub(super) fn named(stem: &str, is_runtime: bool) -> Option<Self> {
        Some(match stem {
            // The driver's has flags.
            "StreamCreate" => Self::Create { has_flags: !is_runtime },
            "StreamCreateWithFlags" | "StreamCreateWithPriority" => Self::Create { has_flags: true },
            "StreamDestroy" => Self::Destroy,
            _ => return None,
        })
    }

    /// After the call: `created` reads an address that the call wrote.
    pub(super) fn note(self, argument: impl Fn(usize) -> usize, created: impl Fn(usize) -> usize) {
        let Ok(mut known) = STREAMS.lock() else { return };
        let known = known.get_or_insert_default();
        match self {
            Self::Destroy => _ = known.remove(&argument(0)),
            Self::Create { has_flags } => {
                // Flags have 32 bits.
                let is_free = has_flags && argument(1) as u32 & NON_BLOCKING != 0;
                if known.len() >= MOST_STREAMS {
                    known.clear();
                }
                known.insert(
                    created(argument(0)),
                    if is_free { streams::NON_BLOCKING } else { streams::BLOCKING },
                );
            }
        }
    }
}

/// Whether a stream waits for others by itself.
fn kind_of(stream: usize, is_per_thread: bool) -> u8 {
    match stream {
        0 if is_per_thread => streams::BLOCKING,
        PER_THREAD => streams::BLOCKING,
        0 | LEGACY => streams::LEGACY,
        other => {
            let known = STREAMS.lock().ok();
            known.and_then(|known| known.as_ref()?.get(&other).copied()).unwrap_or(streams::UNKNOWN)
        }
    }
}

/// Forgets all streams: they may be destroyed while nothing is observed.
pub(super) fn forget_streams() {
    if let Ok(mut known) = STREAMS.lock() {
        *known = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_streams_are_read_from_the_arguments_of_each_call() {
        // Destination, source, size, kind, stream.
        let arguments = |index: usize| [0x1000, 0x2000, 64, 1, 2][index];
        let of = |stem, is_runtime| {
            AccessCall::named(stem, is_runtime, false).map(|call| call.record(7, arguments))
        };
        let access = |stream, from| Some(Record::Access { correlation: 7, stream, to: 0x1000, from });
        assert_eq!(of("MemcpyAsync", true), access(streams::BLOCKING, 0x2000), "argument 4");
        assert_eq!(of("MemcpyDtoDAsync", false), access(streams::LEGACY, 0x2000), "argument 3");
        assert_eq!(of("Memcpy", true), access(streams::LEGACY, 0x2000), "no stream");
        assert_eq!(of("MemsetAsync", true), access(streams::LEGACY, 0), "argument 3");
        assert_eq!(of("MemsetD32", false), access(streams::LEGACY, 0));
        for (stem, is_runtime) in [("Memset2DAsync", true), ("MemcpyPeerAsync", true), ("MemsetD8", true)] {
            assert_eq!(of(stem, is_runtime), None, "{stem}");
        }
        let per_thread = AccessCall::named("Memcpy", true, true).unwrap();
        assert_eq!(Some(per_thread.record(7, arguments)), access(streams::BLOCKING, 0x2000));
    }

    #[test]
    fn streams_are_known_from_their_creation_to_their_end() {
        let create = |stem, is_runtime, flags: usize, address: usize| {
            StreamCall::named(stem, is_runtime).unwrap().note(|index| [0, flags][index], |_| address);
        };
        // The upper half is the priority.
        create("StreamCreateWithPriority", true, (5 << 32) | 1, 0xa00);
        create("StreamCreateWithFlags", true, 0, 0xb00);
        create("StreamCreate", true, 1, 0xc00);
        create("StreamCreate", false, 1, 0xd00);
        let kinds = || [0xa00, 0xb00, 0xc00, 0xd00, 0xe00].map(|stream| kind_of(stream, false));
        assert_eq!(
            kinds(),
            [
                streams::NON_BLOCKING,
                streams::BLOCKING,
                streams::BLOCKING,
                streams::NON_BLOCKING,
                streams::UNKNOWN
            ]
        );
        StreamCall::named("StreamDestroy", true).unwrap().note(|_| 0xa00, |_| 0);
        assert_eq!(kinds()[0], streams::UNKNOWN);
        forget_streams();
        assert_eq!(kinds(), [streams::UNKNOWN; 5]);
    }
}
