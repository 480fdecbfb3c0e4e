//! Making the change. [`mod@inject`] runs inside somebody's program, loaded before it through `LD_PRELOAD`: copies of
//! pageable memory go through a ring of pinned memory that several threads fill. [`settings`] and [`tally`] are what the
//! command and the library say to each other.
//!
//! This crate has no dependencies: `busbound` compiles it a second time into a shared library, which it embeds.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod inject;
pub mod settings;
pub mod tally;
