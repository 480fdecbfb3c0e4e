//! What does a trace mean? Analysis passes over a [`Trace`](busbound_trace::Trace). No I/O and no clock: the
//! same trace always gives byte-identical output.
//!
//! ```
//! use busbound_diagnosis::{Bound, Options, Source, diagnose};
//! use busbound_machine::Machine;
//! use busbound_trace::TraceBuilder;
//!
//! let mut trace = TraceBuilder::default();
//! let stream = trace.stream(0, 7);
//! trace.kernel(stream, "gemm", 1_000..201_000);
//! let trace = trace.finish();
//! let diagnosis = diagnose(&trace, &Source::named("run.json"), &Machine::default(), &Options::default());
//! assert_eq!(diagnosis.verdict.bound, Bound::Compute);
//! assert!(diagnosis.findings.is_empty());
//! ```

#[macro_use]
mod words;

mod activity;
mod analysis;
mod answers;
mod explain;
pub mod figures;
mod findings;
pub mod flight;
mod items;
mod limits;
mod misfits;
mod options;
mod pattern;
mod per_step;
mod picture;
pub mod quantity;
mod saving;
mod settings;
mod steps;
mod unit;
mod verdict;

pub use activity::collectives::CollectiveGroup;
pub use activity::compiled::{Compiled, LoggedCompiles};
pub use activity::contention::Contention;
pub use activity::copies::{Blocking, CopyGroup, CopyStream, combined_gbps};
pub use activity::gaps::{IdleCause, IdlePlace};
pub use activity::launches::{Launches, LaunchingOperator};
pub use activity::queue::LaunchQueue;
pub use activity::rates::{HistogramBin, Rates, SizeClass};
pub use activity::route::CopyRoute;
pub use activity::syncs::{SyncReason, SyncTotal};
pub use activity::timeline::Overlaps;
pub use analysis::arrivals::CollectiveTimes;
pub use analysis::attribution::{Attribution, BlockTime};
pub use analysis::bounds::ResourceBound;
pub use analysis::breakdown::{Part, StepBreakdown};
pub use analysis::copies_around::{CopiesAround, NearCopies};
pub use analysis::cpu_collectives::CpuCollective;
pub use analysis::cpu_copies::{CopyPlace, CpuCopies, CpuCopyClass, HostTimes};
pub use analysis::critical::{CriticalPath, LongSegment, PathEdges, PathShare};
pub use analysis::files::FileActivity;
pub use analysis::host_work::HostWork;
pub use analysis::kernel_totals::KernelTotal;
pub use analysis::kernels::{Geometry, KernelBound, KernelTime, Kernels, Matched, Roofline};
pub use analysis::layer_names::NamedBy;
pub use analysis::layer_waits::{LayerWait, LayerWaits};
pub use analysis::loading::{Loading, LoadingBound};
pub use analysis::phases::RunPhase;
pub use analysis::rank_lanes::{LaneTimes, RankLanes};
pub use analysis::stages::{Item, PipelineShape, RankStage, StageOverlap, StageTime, Stages};
pub use analysis::throughput::Throughput;
pub use analysis::times::Times;
pub use analysis::unprofiled::{Unprofiled, UnprofiledSource};
pub use answers::advice::{
    Advice, Remedy, Setting, advice_of_ddp, advice_of_diagnosis, advice_of_offload, advice_of_topology,
};
pub use answers::bench::{BENCH_SCHEMA, Benchmark, DoubleBuffered, Offloaded, PlanErrors, judge_bench};
pub use answers::compare::{
    COMPARISON_SCHEMA, Change, ComparedRun, Comparison, Figure, FigureGroup, Growth, Labels, Outcome,
    PartChange, Series, SeriesLabel, StageChange, Sweep, compare,
};
pub use answers::diagnosis::{
    DIAGNOSIS_SCHEMA, DeviceFacts, Diagnosis, GpuLink, MachineFacts, WindowFacts, diagnose,
};
pub use answers::gate::{
    Baseline, BaselineError, Check, GATE_SCHEMA, Gate, GatedRun, Requirement, RequirementError, gate,
};
pub use answers::job::{JobMember, NoJobReplay, job_member, job_what_if};
pub use answers::plans::handoff::{Handoff, ParallelAnswer};
pub use answers::plans::memory::{MEMORY_FORMULAS, Measure, MemoryPlan, MemoryQuestion, Relief};
pub use answers::several::{SURVEYS_SCHEMA, Surveys, WHATIFS_SCHEMA, WhatIfs};
pub use answers::survey::missing::Missing;
pub use answers::survey::steps::StepPattern;
pub use answers::survey::{
    CopyClass, Device, KindTotal, LostPart, Process, RankOrigin, RankedAs, Recorded, SURVEY_SCHEMA, Source,
    SourceFacts, Span, Stream, Survey, Thread, rank_of, survey,
};
pub use answers::trial::{TRIAL_SCHEMA, TimeOf, Trial, TrialOutcome, TrialRun, TrialSide, judge_trial};
pub use answers::watch::{CheckedPrediction, SinceLast, WATCH_SCHEMA, Watched, watched};
pub use answers::whatif::{
    NoReplay, Scenario, WHATIF_SCHEMA, WhatIf, diagnose_and_predict, steady_model, what_if,
};
pub use busbound_cause::idle::GapCause;
pub use busbound_cause::path::PathClass;
pub use busbound_cause::{CollectiveOp, HostUse, Resource};
pub use explain::{Explanation, Section, Topic, explain, explain_finding, explanations};
pub use figures::{Better, CopyFigure, FigureId, FigureUnit, Phase};
pub use findings::{
    AppliedFix, Candidate, Cost, Document, Effort, EvidenceUnit, Finding, FindingId, Prize, Severity,
    WithoutCode,
};
pub use items::{CollectiveItem, CopyItem, GapItem, Items, StepItem, diagnose_and_itemize};
pub use limits::Limitation;
pub use limits::id::LimitationId;
pub use misfits::Misfit;
pub use options::{BlockChoice, CpuCopyThresholds, Options, StageChoice};
pub use per_step::{PerStep, PerStepError};
pub use picture::{
    Detail, Dot, DotKind, Drawn, GroupOf, Lane, LaneGroup, LaneKind, PathSpan, Picture, Piece, PieceId,
    PieceMark, RateCurve, Row, Span as PictureSpan, StepSpan, diagnose_and_draw,
};
pub use saving::Saving;
pub use settings::{Proposal, Target, Value as SettingValue};
pub use steps::phases::{PhaseFound, PhaseKind};
pub use steps::window::{Difference, OutlierStep, StepQuantity, StepTimes, StepsFound};
pub use unit::Unit;
pub use verdict::{Bound, Headroom, Verdict};
pub use words::UnknownName;
