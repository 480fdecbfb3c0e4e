//! How do the ranks differ? Each rank's diagnosis becomes a small summary. Summaries merge in any order and grouping with
//! the same result. Conclusions compare durations within a rank; timestamps of two ranks only after their clocks are aligned by the
//! collectives that they share, with the error of that.
//!
//! ```
//! use busbound_diagnosis::{Options, Source, diagnose};
//! use busbound_fleet::{Fleet, RankSummary};
//! use busbound_machine::Machine;
//! use busbound_trace::TraceBuilder;
//!
//! let summary = |path: &str| {
//!     let mut trace = TraceBuilder::default();
//!     let stream = trace.stream(0, 7);
//!     trace.kernel(stream, "gemm", 1_000..201_000);
//!     let source = Source::named(path);
//!     RankSummary::of(&diagnose(&trace.finish(), &source, &Machine::default(), &Options::default()))
//! };
//! let (one, other) = (Fleet::of([summary("rank-0.json")]), Fleet::of([summary("rank-1.json")]));
//! let both = one.clone().merge(other.clone());
//! assert_eq!(both, other.merge(one));
//! assert!(both.answer(None).statement.starts_with("2 ranks: compute-bound on all"));
//! ```

mod absent;
mod align;
mod aligned;
mod answer;
mod arrivals;
mod at_once;
mod conclude;
mod diagnoses;
mod fleet;
mod history;
mod host;
mod job;
mod list;
mod live;
mod name;
mod one_run;
mod parts;
mod pipeline;
mod sketch;
mod spread;
mod statement;
mod stragglers;
mod summary;
mod uplinks;
mod windows;

pub use align::{Alignment, RankClock};
pub use aligned::{AlignedLanes, AlignedRank};
pub use answer::{FleetAnswer, FleetSteps, SharedFinding, VerdictCount};
pub use arrivals::{Arrivals, CollectiveArrival, LateRank, Meantime, MeantimePart, RankArrival};
pub use at_once::{AtOnce, Meeting};
pub use diagnoses::{DIAGNOSES_SCHEMA, Diagnoses};
pub use fleet::{FLEET_SCHEMA, Fleet, SavedError, Unread};
pub use history::{HISTORY_SCHEMA, History, HistoryChange, Job, JobHistory, PartShift};
pub use job::{JobBasis, JobScenario};
pub use live::{LIVE_MS, LiveRanks, Undated};
pub use name::{FindingName, RankName};
pub use one_run::{NotOneRun, OneRun, one_run};
pub use parts::{IdlePart, Parts};
pub use pipeline::{Pipeline, PipelineStage};
pub use sketch::StepSketch;
pub use spread::{Outlier, Spread};
pub use stragglers::{Difference, Reason, Straggler};
pub use summary::{RANK_SCHEMA, RankCopies, RankFinding, RankGpu, RankKernels, RankSteps, RankSummary};
pub use uplinks::{Demand, SharedUplink};
