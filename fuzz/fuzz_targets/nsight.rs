//! Any bytes as a database: no panic, no hang, and the same trace twice.

#![no_main]

mod same;

use std::fs;

use busbound_trace::{ReadOptions, open};
use libfuzzer_sys::fuzz_target;
use same::assert_same;

const MAGIC: &[u8] = b"SQLite format 3\0";

fuzz_target!(|bytes: &[u8]| {
    // A database is read from a file. Other inputs are for the other target.
    let path = std::env::temp_dir().join(format!("busbound-fuzz-{}.sqlite", std::process::id()));
    let body = bytes.get(MAGIC.len()..).unwrap_or_default();
    if fs::write(&path, [MAGIC, body].concat()).is_err() {
        return;
    }
    let read = || open(&path, &ReadOptions::default().memory_bound(64 << 20)).ok();
    assert_same(read(), read());
    let _ = fs::remove_file(&path);
});
