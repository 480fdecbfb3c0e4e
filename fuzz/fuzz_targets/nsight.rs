//! Any bytes as a database: no panic, no hang, and the same trace twice.

#![no_main]

use std::fs;

use busbound_trace::{ReadOptions, open};
use libfuzzer_sys::fuzz_target;

const MAGIC: &[u8] = b"SQLite format 3\0";

fuzz_target!(|bytes: &[u8]| {
    // A database is read from a file. What does not begin like one is the other target's.
    let path = std::env::temp_dir().join(format!("busbound-fuzz-{}.sqlite", std::process::id()));
    let body = bytes.get(MAGIC.len()..).unwrap_or_default();
    if fs::write(&path, [MAGIC, body].concat()).is_err() {
        return;
    }
    let read = || open(&path, &ReadOptions::default().memory_bound(64 << 20)).ok();
    let (one, two) = (read(), read());
    assert_eq!(one.is_some(), two.is_some());
    if let (Some(one), Some(two)) = (one, two) {
        assert_eq!(one.stats(), two.stats());
        assert_eq!(one.origin(), two.origin());
        for (a, b) in one.events().zip(two.events()) {
            assert_eq!((a.name(), a.start(), a.duration(), a.place()), (b.name(), b.start(), b.duration(), b.place()));
        }
        let walked: usize = one.tracks().iter().map(|track| track.events().len()).sum();
        assert_eq!(walked, one.len());
    }
    let _ = fs::remove_file(&path);
});
