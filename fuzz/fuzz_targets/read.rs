//! Any bytes: no panic, no hang, and the same trace on one thread and on two.

#![no_main]

use std::path::Path;

use busbound_trace::{ReadOptions, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let on = |threads| {
        let options = ReadOptions::default().threads(threads).memory_bound(64 << 20);
        read(bytes, Path::new("fuzz"), &options).ok()
    };
    let (one, two) = (on(1), on(2));
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
});
