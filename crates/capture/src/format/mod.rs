//! The file of a recording: chunks, each with its length and checksum, appended as the run goes on.
//!
//! A file begins with [`MAGIC`]. A chunk is the word `CHNK`, the length of its payload and the CRC-32 of it (u32, little-endian),
//! and the payload: [`Record`]s one after another. A chunk is written in one call, so a process that dies leaves whole
//! chunks and at most a piece of one. Names are defined once in a file, before their first use; times are nanoseconds of
//! CUPTI's clock, in each chunk counted from its first.

mod checksum;
mod chunks;
mod number;
mod record;

pub use checksum::crc32;
pub use chunks::{Chunk, ChunkReader, ChunkWriter, Damage};
pub use record::{Launch, Record, Records, Stream};

pub const MAGIC: &[u8; 8] = b"BUSBND1\n";

/// Longer payloads are not written: a length beyond it is damage.
pub const LONGEST: usize = 16 << 20;
