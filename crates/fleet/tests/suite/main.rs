//! Everything that this crate's tests check from the outside, as one program: linking one takes a fraction of linking one per file.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue should panic")]

mod alignment;
mod common;
mod live;
mod merge;
mod peers;
mod pipeline;
mod stragglers;
mod thousand;
mod uplinks;
