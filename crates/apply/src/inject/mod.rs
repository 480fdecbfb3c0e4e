//! What runs inside somebody's program. The loader loads the library before the program's own libraries; the program
//! then gets [`entry`]'s functions where it asks for the driver's copies. Whatever fails here, the copy goes to the driver
//! as if the library were not there.
//!
//! The program's own memory is never registered: a range that is freed and mapped again would keep the old pages under
//! the GPU, and copies would carry stale bytes.

#![cfg_attr(
    not(feature = "injected"),
    expect(dead_code, reason = "tests use parts of it; nothing is exported then")
)]
#![expect(unsafe_code, reason = "the driver and the program pass memory by address")]

mod captures;
mod carry;
mod choose;
mod context;
mod driver;
mod entry;
mod job;
mod loader;
mod pool;
mod process;
mod real;
mod request;
mod ring;
mod sizing;
mod state;
mod stream;
mod system;
mod touch;
