//! Is the GPU waiting for the bus, where, and how much does a change gain? Open a profiler trace, diagnose it, report it:
//!
//! ```
//! use busbound::{Bound, Format, Machine, Options, Report, Style};
//!
//! let run = busbound::open("demo/off_block_pageable_c4.json.gz")?;
//! let diagnosis = run.diagnose(&Machine::default(), &Options::default());
//! assert_eq!(diagnosis.verdict.bound, Bound::Transfer);
//! for finding in &diagnosis.findings {
//!     println!("{}: {}", finding.title, finding.fix);
//! }
//! println!("{}", diagnosis.render(Format::Markdown, &Style::default())?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! 1. **Open.** [`open`] reads any supported trace, complete or damaged; [`traces_in`] finds the traces in folders and
//!    patterns; [`open_many`] reads many in parallel within a memory limit.
//! 2. **Diagnose.** A [`Run`] answers questions: [`Run::survey`], [`Run::diagnose`], [`Run::what_if`]. [`compare`] and
//!    [`gate`] take diagnoses, [`RunGroup`] checks whether they are ranks of one job. Copies are compared with the link of
//!    a [`Machine`]; [`resolve_machine`] creates one from a name or a measured profile.
//! 3. **Report.** Every answer implements [`Report`]: [`Report::render`] returns it as text in any [`Format`], [`save`]
//!    writes it to a file.
//!
//! The underlying crates are re-exported as modules: [`trace`], [`machine`], [`whatif`], [`diagnosis`], [`fleet`],
//! [`report`] and `tables`.

mod admission;
mod baseline;
mod demo;
mod error;
mod inputs;
mod kept;
mod machines;
mod many;
mod nsys;
mod offload;
mod run;
mod save;
mod stage;
mod summaries;
mod together;

pub use busbound_diagnosis as diagnosis;
pub use busbound_fleet as fleet;
pub use busbound_machine as machine;
pub use busbound_report as report;
#[cfg(feature = "tables")]
pub use busbound_tables as tables;
pub use busbound_trace as trace;
pub use busbound_whatif as whatif;

pub use admission::memory_for;
pub use baseline::saved_baseline;
pub use demo::demo;
pub use error::{Error, io_in_words};
pub use inputs::{Input, Inputs, resolve_inputs, summaries_below, summaries_in, traces_in};
pub use kept::find_recordings;
pub use machines::{read_root, read_topology, resolve_machine};
pub use many::{ManyOptions, open_many};
pub use nsys::end_exports;
pub use offload::SeenLayers;
pub use run::{Run, open, open_input};
pub use save::save;
pub use stage::Stage;
pub use summaries::{Merged, job_of, jobs_in, keep_summary, merge_files, stem_of};
pub use together::{RunGroup, Show, share_pipeline};

pub use busbound_diagnosis::{
    Bound, Comparison, Diagnosis, Drawn, Finding, Gate, Options, Survey, Verdict, WhatIf, compare, gate,
};
pub use busbound_machine::Machine;
pub use busbound_report::{Format, RenderError, Report, Style};
pub use busbound_trace::{ReadOptions, Trace};
