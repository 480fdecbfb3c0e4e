//! The file format of a recording: chunks, each with its length and checksum, appended during the run.
//!
//! A file begins with [`MAGIC`]. A chunk is the word `CHNK`, the length of its payload, the CRC-32 of the payload
//! (both u32, little-endian), and the payload: [`Record`]s one after another. A chunk is written in one call, so a
//! process that dies leaves complete chunks and at most one partial chunk. Names are defined once per file, before
//! their first use. Times are nanoseconds of CUPTI's clock, relative to the first one in each chunk.

mod checksum;
mod chunks;
mod number;
mod record;

pub use checksum::crc32;
pub use chunks::{Chunk, ChunkReader, ChunkWriter, Damage};
pub use record::{
    CLOCK_LIMIT_OF_GPU, CONFIDENTIAL, CPU_NODES, CPUS, DISTANCES_OF_NODE, FileCounts, HOST_MEMORY, Launch,
    NODE_OF_GPU, NODES, NODES_REFUSED, PINNED, PINNED_INCOMPLETE, POWER_LIMIT_OF_GPU, Record, Records,
    SEVERAL_NODES, SHARED_GPU, Stream, UNKNOWN_STREAM, VARIABLE, VERSION, streams,
};

pub const MAGIC: &[u8; 8] = b"BUSBND1\n";

/// Max payload length: anything longer is damage.
pub const LONGEST: usize = 16 << 20;
