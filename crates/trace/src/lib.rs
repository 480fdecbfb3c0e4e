//! What happened? Reads any profiler trace, complete or damaged, into columns.
//!
//! ```no_run
//! use std::path::Path;
//! use busbound_trace::{ReadOptions, open};
//!
//! let trace = open(Path::new("run.json.gz"), &ReadOptions::default())?;
//! for stream in trace.streams() {
//!     for event in stream.events().filter(|event| event.kind().is_gpu_work()) {
//!         println!("{:?} {} for {} ns", stream.place(), event.name(), event.duration().get());
//!     }
//! }
//! for loss in &trace.stats().losses {
//!     eprintln!("{} at byte {}", loss.what.describe(), loss.first_offset);
//! }
//! # Ok::<(), busbound_trace::OpenError>(())
//! ```
//!
//! Reading never fails on partial data: every complete event before and after damage is kept, and [`ImportStats`]
//! says what was lost and where.

mod capture;
mod error;
pub mod hash;
mod interval;
mod kineto;
mod model;
mod ncu;
mod nsight;
mod read;
mod reader;
mod registry;
mod stage_log;
mod symbols;
mod xplane;

pub use error::OpenError;
pub use interval::{Interval, IntervalCursor, IntervalSet};
pub use model::access::{Access, StreamKind};
pub use model::builder::{AddedEvent, EventName, TraceBuilder};
pub use model::call::Call;
pub use model::collective::Collective;
pub use model::copy_operator::CopyOperator;
pub use model::environment::Environment;
pub use model::events::EventId;
pub use model::files::FileReads;
pub use model::format::{Format, Recordable};
pub use model::kind::EventKind;
pub use model::launch::Launch;
pub use model::link::{Link, LinkEnd, LinkTraffic};
pub use model::managed::{Faults, Migration, MigrationCause};
pub use model::memory::{MemoryOwner, MemorySample};
pub use model::names::{NameId, Names};
pub use model::numa::{HostNode, Numa};
pub use model::origin::{Distributed, Gpu, GpuLimits, Origin, ProfilerFlags, RecordedLink};
pub use model::os_call::OsCall;
pub use model::size::Bytes;
pub use model::stats::{ImportStats, Loss, LossKind, LostRows, Repair};
pub use model::sync::{SyncKind, Synchronization};
pub use model::time::{Nanos, Timestamp};
pub use model::trace::{Event, Trace, Track};
pub use model::track::{Label, Place, TrackId};
pub use model::transfer::{Direction, MemoryKind, Transfer};
pub use ncu::{MeasuredKernel, NcuError, Operations, read_ncu};
pub use read::{
    by_rank, discover, is_nsight_report, open, open_with_progress, rank_in_name, read, read_with_progress,
    unpacked_size,
};
pub use reader::{Confidence, Progress, ReadOptions, Reader, SNIFFED, Source, SourceKind, Watch};
pub use registry::{format, readers, suffixes};
