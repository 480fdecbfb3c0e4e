//! Recording. [`mod@format`] is the file format, for writing and reading; `inject` runs inside the recorded process,
//! loaded by the CUDA driver through `CUDA_INJECTION64_PATH`.
//!
//! This crate has no dependencies: `busbound` compiles it a second time into a shared library, which it embeds.

pub mod format;
#[cfg(target_os = "linux")]
pub mod inject;
