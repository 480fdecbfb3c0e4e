//! Touching the GPU. The only crate that asks the driver, through libraries loaded at run time: a machine
//! without them is a normal case.

mod wiring;

pub use wiring::{Wiring, wiring};
