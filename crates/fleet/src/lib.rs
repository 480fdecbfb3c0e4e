//! How do the ranks differ? Each rank's diagnosis becomes a small summary; summaries lie together in any order and any
//! grouping with the same result; what is said of them rests on durations within a rank, never on timestamps of two.
//!
//! ```
//! use std::path::Path;
//! use busbound_diagnosis::{Options, Source, diagnose};
//! use busbound_fleet::{Fleet, RankSummary};
//! use busbound_machine::Machine;
//! use busbound_trace::{ReadOptions, read};
//!
//! let json = br#"[{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":200}]"#;
//! let summary = |path: &str| {
//!     let trace = read(&json[..], Path::new(path), &ReadOptions::default())?;
//!     let diagnosis = diagnose(&trace, &Source::named(path), &Machine::default(), &Options::default());
//!     Ok::<_, busbound_trace::OpenError>(RankSummary::of(&diagnosis))
//! };
//! let (one, other) = (Fleet::of([summary("rank-0.json")?]), Fleet::of([summary("rank-1.json")?]));
//! let both = one.clone().merge(other.clone());
//! assert_eq!(both, other.merge(one));
//! assert!(both.answer(None).statement.starts_with("2 ranks: compute-bound on all"));
//! # Ok::<(), busbound_trace::OpenError>(())
//! ```

mod absent;
mod answer;
mod diagnoses;
mod fleet;
mod host;
mod one_run;
mod parts;
mod sketch;
mod spread;
mod statement;
mod stragglers;
mod summary;
mod uplinks;

pub use answer::{FLEET_SCHEMA, FleetAnswer, FleetSteps, SharedFinding, VerdictCount};
pub use diagnoses::{DIAGNOSES_SCHEMA, Diagnoses};
pub use fleet::{Fleet, SavedError, Unread};
pub use one_run::{NotOneRun, OneRun, one_run};
pub use parts::{IdlePart, Parts};
pub use sketch::StepSketch;
pub use spread::{Apart, Spread};
pub use stragglers::{Difference, Straggler};
pub use summary::{RANK_SCHEMA, RankCopies, RankFinding, RankGpu, RankKernels, RankSteps, RankSummary, Unit};
pub use uplinks::{Demand, SharedUplink};
