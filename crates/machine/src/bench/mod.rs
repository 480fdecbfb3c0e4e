//! Measuring a machine: what is to be run, what came back, and what it comes to.
//!
//! No GPU is touched here. [`tasks`] says what to measure, the `gpu` crate runs it and hands back [`Samples`],
//! and [`Samples::profile`] is what everything else trusts.

mod plan;
mod samples;
mod statistics;
mod to_profile;

pub use plan::{Limits, Mode, Suite, limits, tasks};
pub use samples::{
    AllReduceTask, Case, CopyTask, Direction, DoubleBufferTask, Engine, Identity, KernelKind, LatencyKind,
    LinkSeen, Memory, OffloadTask, Order, OverlapTask, Pace, PowerSample, SAMPLES_SCHEMA, Samples,
    SamplesError, Skipped, Task,
};
pub use statistics::{Patience, Spread};
