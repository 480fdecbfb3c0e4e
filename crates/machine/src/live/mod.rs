//! What is the bus doing now? Snapshots of GPUs while they work, and what follows from a row of them.
//!
//! No GPU, file or clock is touched here: the `gpu` crate takes [`Snapshot`]s, whoever tails logs feeds [`LineReader`]s.

mod counter;
mod heartbeat;
mod history;
mod log;
mod peak;
mod sign;
mod signs;
mod snapshot;

pub use counter::{CounterWidth, Traffic, TrafficMeter};
pub use heartbeat::{Beat, BeatKeys, BeatKeysError, LineReader, Training};
pub use history::{GpuHistory, History};
pub use log::{Log, LogError};
pub use sign::{Sign, SignKind};
pub use signs::{Limits, Watch};
pub use snapshot::{
    Bus, BusPeak, BusSource, GpuNow, MemoryNow, NvLinksNow, PeakSource, ProcessNow, Snapshot, TOP_SCHEMA,
    ToWhere,
};
