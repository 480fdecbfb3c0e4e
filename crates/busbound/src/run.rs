//! One run: a trace that has been read, and the questions it can answer.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use busbound_diagnosis::{
    Detail, Diagnosis, Drawn, JobMember, NoReplay, Options, Source, Survey, WhatIf, diagnose,
    diagnose_and_draw, diagnose_and_predict, job_member, rank_of, survey, what_if,
};
use busbound_machine::Machine;
use busbound_trace::{ReadOptions, Trace, is_nsight_report, open_with_progress, read_with_progress};
use busbound_whatif::replay::Change;

use crate::error::Error;
use crate::inputs::Input;
use crate::nsys::Exported;
use crate::stage::Stage;

/// A trace that has been read. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Run {
    trace: Arc<Trace>,
    source: Source,
}

/// Reads a trace: `.json` and `.json.gz` from torch.profiler, `.sqlite` from Nsight Systems, `.bbt` from
/// `busbound record`. Exports a `.nsys-rep` first, if nsys is installed.
///
/// Partial data is not an error: [`Run::survey`] shows what was lost.
///
/// # Errors
/// If nothing can be read.
pub fn open(path: impl AsRef<Path>) -> Result<Run, Error> {
    let input = Input::File(path.as_ref().to_owned());
    open_input(&input, &ReadOptions::default(), &mut |_| ControlFlow::Continue(()))
}

/// Like [`open`], with options, and also from standard input. `watch` receives the progress and may stop it.
///
/// # Errors
/// Like [`open`], and [`Error::Interrupted`] if `watch` stopped it.
pub fn open_input(
    input: &Input,
    options: &ReadOptions,
    watch: &mut dyn FnMut(Stage<'_>) -> ControlFlow<()>,
) -> Result<Run, Error> {
    let exported = match input {
        Input::File(path) if is_nsight_report(path) => Exported::from_report(path, watch)?,
        Input::File(_) | Input::Stdin => None,
    };
    let mut progress = |progress| watch(Stage::Reading(progress));
    let trace = match (&exported, input) {
        (Some(exported), _) => open_with_progress(&exported.database(), options, &mut progress),
        (None, Input::File(path)) => open_with_progress(path, options, &mut progress),
        (None, Input::Stdin) => read_with_progress(io::stdin(), input.label(), options, &mut progress),
    };
    Ok(Run::of(trace?, input.source()))
}

impl Run {
    pub(crate) fn of(trace: Trace, source: Source) -> Self {
        Self { trace: Arc::new(trace), source }
    }

    /// The same run with another name, for example for a copy of a file at another location.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.source = Source::named(name.into());
        self
    }

    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    pub fn source(&self) -> &Source {
        &self.source
    }

    /// When it was recorded, in milliseconds since 1970, if the trace says so.
    pub fn recorded_ms(&self) -> Option<i64> {
        let start = self.survey().span?.start_ns.as_nanos();
        let at = self.trace.origin().base_time_ns?.checked_add(start)? / 1_000_000;
        (at > 0).then_some(at)
    }

    /// The rank, from the trace or its file name.
    pub fn rank(&self) -> Option<u32> {
        rank_of(&self.trace, &self.source).map(|ranked| ranked.rank)
    }

    /// What is in this trace, and what is missing from it?
    pub fn survey(&self) -> Survey {
        survey(&self.trace, &self.source)
    }

    /// Is the GPU waiting for the bus, where, why, and how much would a change gain?
    pub fn diagnose(&self, machine: &Machine, options: &Options) -> Diagnosis {
        diagnose(&self.trace, &self.source, machine, options)
    }

    /// The answers of [`diagnose`](Self::diagnose) and [`what_if`](Self::what_if) from one analysis.
    pub fn diagnose_and_predict(
        &self,
        machine: &Machine,
        options: &Options,
        scenarios: &[Vec<Change>],
    ) -> (Diagnosis, Result<WhatIf, NoReplay>) {
        diagnose_and_predict(&self.trace, &self.source, machine, options, scenarios)
    }

    /// The diagnosis, and what a page or a trace viewer draws. Also predicts `scenarios`, or those worth trying.
    pub fn draw(
        &self,
        machine: &Machine,
        options: &Options,
        scenarios: &[Vec<Change>],
        detail: Detail,
    ) -> Drawn {
        diagnose_and_draw(&self.trace, &self.source, machine, options, scenarios, detail)
    }

    /// How long would the run take with these changes? Without any, tries those that suit the trace, best first.
    ///
    /// # Errors
    /// If the trace cannot be replayed, with the reason.
    pub fn what_if(
        &self,
        machine: &Machine,
        options: &Options,
        scenarios: &[Vec<Change>],
    ) -> Result<WhatIf, NoReplay> {
        what_if(&self.trace, &self.source.path, machine, options, scenarios)
    }

    /// This run as one rank of a job, to predict what a change of one rank does to the step of all: see
    /// [`job_what_if`](busbound_diagnosis::job_what_if).
    ///
    /// # Errors
    /// If the trace cannot be replayed, with the reason.
    pub fn job_member(
        &self,
        machine: &Machine,
        options: &Options,
        scenarios: &[Vec<Change>],
    ) -> Result<JobMember, NoReplay> {
        job_member(&self.trace, &self.source, machine, options, scenarios)
    }

    /// The trace as tables, and the diagnosis they belong to. No column depends on the machine.
    #[cfg(feature = "tables")]
    pub fn tables(
        &self,
        machine: &Machine,
        options: &Options,
    ) -> (Diagnosis, busbound_tables::Tables<Arc<Trace>>) {
        let (diagnosis, items) =
            busbound_diagnosis::diagnose_and_itemize(&self.trace, &self.source, machine, options);
        (diagnosis, busbound_tables::Tables::of(Arc::clone(&self.trace), items))
    }
}
