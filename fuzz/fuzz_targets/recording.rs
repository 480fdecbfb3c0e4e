//! Any payload in a chunk with a matching checksum, complete and cut: no panic, no hang; and a cut does not lose
//! chunks before it.

#![no_main]

use std::path::Path;

use busbound_capture::format::{MAGIC, crc32};
use busbound_trace::{ReadOptions, Trace, read};
use libfuzzer_sys::fuzz_target;

fn recording(payloads: &[&[u8]]) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    for payload in payloads {
        file.extend_from_slice(b"CHNK");
        file.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        file.extend_from_slice(&crc32(payload).to_le_bytes());
        file.extend_from_slice(payload);
    }
    file
}

fn read_all(bytes: &[u8]) -> Option<Trace> {
    read(bytes, Path::new("fuzz"), &ReadOptions::default().threads(1).memory_bound(64 << 20)).ok()
}

fuzz_target!(|bytes: &[u8]| {
    // Unchanged: the fuzzer must find magic number, headers and checksums.
    read_all(bytes);
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    let whole = recording(&[first, rest]);
    let trace = read_all(&whole);
    let walked = trace.as_ref().map(|trace| trace.tracks().iter().map(|track| track.events().len()).sum());
    assert_eq!(walked, trace.as_ref().map(Trace::len));
    // Cut inside the second chunk: only the first one is read.
    let cut = read_all(&whole[..whole.len() - rest.len().div_ceil(2)]);
    let alone = read_all(&recording(&[first]));
    assert_eq!(cut.map(|trace| trace.len()), alone.map(|trace| trace.len()));
});
