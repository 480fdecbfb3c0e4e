//! Making the change. `inject` runs inside somebody's program, loaded before it through `LD_PRELOAD`: copies of
//! pageable memory go through a ring of pinned memory that several threads fill. [`settings`] and [`tally`] are what the
//! command and the library say to each other.
//!
//! This crate has no dependencies: `busbound` compiles it a second time into a shared library, which it embeds.

/// Only in the library that is injected: programs that link this crate have no use for it.
#[cfg(all(target_os = "linux", target_arch = "x86_64", any(feature = "injected", test)))]
pub mod inject;
pub mod settings;
pub mod tally;
