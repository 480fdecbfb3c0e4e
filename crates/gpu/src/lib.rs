//! Access to the GPU. The only crate that calls the driver, through libraries loaded at run time: a machine without
//! them is a normal case.

#[cfg(target_os = "linux")]
mod affinity;
pub mod bench;
mod driver;
mod host;
pub mod live;
mod nccl;
mod python_packages;
pub mod ranks;
mod telemetry;
mod wiring;

pub use driver::CudaError;
pub use wiring::{Wiring, wiring};
