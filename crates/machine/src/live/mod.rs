//! What is the bus doing now? Snapshots of GPUs while they work, and the warning signs in a series of them.
//!
//! No GPU, file or clock is used here: the `gpu` crate takes [`Snapshot`]s, and the code that tails logs feeds [`LineReader`]s.

mod counter;
mod heartbeat;
mod history;
mod log;
mod peak;
mod sign;
mod signs;
mod snapshot;
mod window;

pub use counter::{CounterWidth, Traffic, TrafficMeter};
pub use heartbeat::{Beat, BeatKeys, BeatKeysError, LineReader, Training};
pub use history::{GpuHistory, History};
pub use log::{Log, LogError};
pub use sign::{Sign, SignKind};
pub use signs::{Limits, Watch};
pub use snapshot::{
    Bus, BusPeak, BusSource, GpuLost, GpuNow, MemoryNow, NvLinksNow, PeakSource, ProcessNow, Snapshot,
    TOP_SCHEMA, ToWhere,
};
pub use window::{OwnProcess, RankWindow, WindowChange, WindowSteps};
