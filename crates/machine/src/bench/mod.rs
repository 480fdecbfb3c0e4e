//! How is a machine measured, and what do the results mean?
//!
//! No GPU is used here. [`tasks`] lists what to measure, the `gpu` crate runs it and returns [`Samples`],
//! [`Samples::profile`] is the profile that all other commands use, and [`Samples::figures`] compares the results with
//! the expected values. Each suite is one file in `suites`.

mod figures;
pub(crate) mod identity;
mod plan;
mod samples;
pub(crate) mod statistics;
mod suites;
pub(crate) mod terms;

pub use crate::profile::Processes;
pub use figures::{Cause, FigureUnit, Judgment, MeasuredFigure};
pub use identity::{Identity, LinkSeen};
pub use plan::{Limits, Mode, NodeSet, limits};
pub use samples::{SAMPLES_SCHEMA, Samples, SamplesError, Skipped};
pub use statistics::{Patience, Spread};
pub use suites::{
    AllReduceCase, AllReduceTask, BenchSuite, Case, ContentionCase, ContentionTask, CopyCase, CopyTask,
    DoubleBufferCase, DoubleBufferTask, DuplexCase, DuplexTask, Evidence, FEWEST_BLOCKS, HbmCase, HbmTask,
    LatencyCase, LatencyTask, MOST_BLOCKS, NumaCase, NumaTask, OffloadCase, OffloadTask, OtherCopies,
    OverlapCase, OverlapTask, PAGEABLE_H2D, PINNED_D2H, PINNED_H2D, PeerToPeerCase, PeerToPeerTask, Phase,
    PowerCase, PowerSample, PowerTask, ProfilerCase, ProfilerTask, RecordedCall, RecordedLoop, Registered,
    ScatterCase, ScatterTask, ScatterTimes, Suite, SuiteCase, Task, Topic, tasks,
};
pub use terms::{
    ContentionLoad, Direction, Engine, KernelKind, LatencyKind, Memory, Order, Pace, ScatterMethod,
};
