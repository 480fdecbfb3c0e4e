//! Recording. [`mod@format`] is the file that is written and read; `inject` is what runs inside the recorded process, loaded by
//! the CUDA driver through `CUDA_INJECTION64_PATH`.
//!
//! This crate stands alone and has no dependencies: `busbound` compiles it a second time into a shared library and carries
//! that inside itself.

pub mod format;
#[cfg(target_os = "linux")]
pub mod inject;
