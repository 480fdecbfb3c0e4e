//! Any bytes: no panic, no hang, and the same trace on one thread and on two.

#![no_main]

mod same;

use std::path::Path;

use busbound_trace::{ReadOptions, read};
use libfuzzer_sys::fuzz_target;
use same::assert_same;

fuzz_target!(|bytes: &[u8]| {
    let on = |threads| {
        let options = ReadOptions::default().threads(threads).memory_bound(64 << 20);
        read(bytes, Path::new("fuzz"), &options).ok()
    };
    assert_same(on(1), on(2));
});
