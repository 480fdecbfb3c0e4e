//! What it means: passes over a [`Trace`](busbound_trace::Trace). No IO and no clock: the same
//! trace gives the same answer to the byte.
//!
//! ```
//! use std::path::Path;
//! use busbound_diagnosis::{Bound, Options, Source, diagnose};
//! use busbound_machine::Machine;
//! use busbound_trace::{ReadOptions, read};
//!
//! let json = br#"[{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":200}]"#;
//! let trace = read(&json[..], Path::new("run.json"), &ReadOptions::default())?;
//! let diagnosis = diagnose(&trace, &Source::named("run.json"), &Machine::default(), &Options::default());
//! assert_eq!(diagnosis.verdict.bound, Bound::Compute);
//! assert!(diagnosis.findings.is_empty());
//! # Ok::<(), busbound_trace::OpenError>(())
//! ```

mod advice;
mod attribution;
mod bench;
mod blocks;
mod communication;
mod compare;
mod compare_stages;
mod compiled;
mod contention;
mod copies;
mod cpu_copies;
mod cpu_only;
mod critical;
mod diagnosis;
mod facts;
mod findings;
mod gaps;
mod gate;
mod host;
mod incomplete;
mod items;
mod kernels;
mod launches;
mod limitations;
mod managed;
mod options;
mod parallel;
mod picture;
pub mod quantity;
mod queue;
mod several;
mod stages;
mod steady;
mod survey;
mod syncs;
mod timeline;
mod unseen;
mod verdict;
mod whatif;
mod window;

pub use advice::{
    Advice, Setting, Target, advice_of_ddp, advice_of_diagnosis, advice_of_offload, advice_of_topology,
};
pub use attribution::{Attribution, BlockChoice, BlockTime};
pub use bench::{
    BENCH_SCHEMA, Benchmark, Cause, DoubleBuffered, Judgement, MeasuredFigure, Offloaded, PlanErrors,
    judge_bench,
};
pub use compare::{COMPARISON_SCHEMA, ComparedRun, Comparison, Figure, Growth, Labels, Sweep, compare};
pub use compare_stages::StageChange;
pub use compiled::Compiled;
pub use contention::Contention;
pub use copies::{Blocking, CopyGroup, CopyStream, HistogramBin, Rates, SizeClass};
pub use cpu_copies::{CpuCopies, CpuCopyClass, CpuCopyThresholds};
pub use critical::{CriticalPath, PathClass, PathEdges, PathPiece, PathShare};
pub use diagnosis::{
    DIAGNOSIS_SCHEMA, DeviceFacts, Diagnosis, Drawn, GpuLink, MachineFacts, WindowFacts, diagnose,
    diagnose_and_draw, diagnose_and_itemise,
};
pub use findings::{Finding, Saving, Severity};
pub use gaps::{GapCause, IdleCause, IdlePlace};
pub use gate::{
    Baseline, BaselineError, Check, FIGURES, FigureName, GATE_SCHEMA, Gate, GatedRun, Requirement,
    RequirementError, gate,
};
pub use items::{CopyItem, GapItem, Items, StepItem};
pub use kernels::{Geometry, KernelBound, KernelTime, Kernels, Matched, Roofline};
pub use launches::{Launches, LaunchingOperator};
pub use limitations::Limitation;
pub use options::Options;
pub use picture::{
    Detail, Dot, DotKind, GroupOf, Lane, LaneGroup, LaneSort, Picture, Piece, RateCurve, Row,
    Span as PictureSpan, StepSpan,
};
pub use queue::LaunchQueue;
pub use several::{SURVEYS_SCHEMA, Surveys, WHATIFS_SCHEMA, WhatIfs};
pub use stages::{Item, PipelineShape, StageChoice, StageTime, Stages};
pub use survey::missing::Missing;
pub use survey::steps::StepPattern;
pub use survey::{
    CopyClass, Device, KindTotal, LostPart, Process, RankOrigin, RankedAs, Recorded, SURVEY_SCHEMA, Source,
    SourceFacts, Span, Stream, Survey, Thread, survey,
};
pub use syncs::{SyncReason, SyncTotal};
pub use timeline::{Overlaps, Times};
pub use verdict::{Bound, Verdict};
pub use whatif::{NoReplay, Scenario, WHATIF_SCHEMA, WhatIf, what_if};
pub use window::{Difference, OutlierStep, StepQuantity, StepTimes, StepsFound};
