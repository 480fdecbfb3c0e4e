//! What it means: passes over a [`Trace`](busbound_trace::Trace). No IO and no clock: the same
//! trace gives the same answer to the byte.
//!
//! ```
//! use std::path::Path;
//! use busbound_diagnosis::{Source, survey};
//! use busbound_trace::{ReadOptions, read};
//!
//! let json = br#"[{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1,"dur":2}]"#;
//! let trace = read(&json[..], Path::new("run.json"), &ReadOptions::default())?;
//! let survey = survey(&trace, &Source::named("run.json"));
//! assert_eq!(survey.devices[0].streams[0].kernels, 1);
//! # Ok::<(), busbound_trace::OpenError>(())
//! ```

pub mod quantity;
mod survey;

pub use survey::missing::Missing;
pub use survey::steps::StepPattern;
pub use survey::{
    CopyClass, Device, KindTotal, LostPart, Process, RankOrigin, RankedAs, Recorded, SURVEY_SCHEMA, Source,
    SourceFacts, Span, Stream, Survey, Thread, survey,
};
