//! A trace in memory and its analyses.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use busbound::diagnosis::Detail;
use busbound::tables::Tables;
use busbound::trace::LossKind;
use busbound::whatif::replay::Change;
use busbound::{Format, Input, Machine, ReadOptions, Report, Run, Style};
use pyo3::prelude::*;

use crate::answer::{Answer, Content};
use crate::arguments::{StepChoice, machine_of, options_of, timed_options_of, wiring_of};
use crate::attend::attend;
use crate::failure::{bad_option, failed, failure_of};
use crate::table::Table;

type SharedTables = Arc<Tables<Arc<busbound::Trace>>>;

/// A trace in memory. busbound.open returns one.
#[pyclass(frozen, module = "busbound._native")]
#[derive(Debug)]
pub(crate) struct Trace {
    run: Run,
    /// The last tables built, because callers usually request all four in a row.
    tables: Mutex<Option<(StepChoice, SharedTables)>>,
}

/// Reads a trace. `name` replaces the file name: a temporary copy keeps the name of its original.
#[pyfunction]
#[pyo3(signature = (path, name = None, threads = None))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    name: Option<String>,
    threads: Option<usize>,
) -> PyResult<Trace> {
    let mut options = ReadOptions::default();
    if let Some(threads) = threads {
        options = options.threads(threads.max(1));
    }
    let read = attend(py, move |stop| {
        busbound::open_input(&Input::File(path), &options, &mut |_| match stop.is_wanted() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    })?;
    let run = read.map_err(failure_of)?;
    Ok(Trace { run: named(run, name), tables: Mutex::new(None) })
}

fn named(run: Run, name: Option<String>) -> Run {
    match name {
        Some(name) => run.named(name),
        None => run,
    }
}

/// The trace files of paths, directories and patterns.
#[pyfunction]
pub(crate) fn traces_in(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Vec<PathBuf>> {
    py.detach(|| busbound::traces_in(&paths)).map_err(failure_of)
}

/// The file extensions of supported traces.
#[pyfunction]
pub(crate) fn suffixes() -> Vec<&'static str> {
    busbound::trace::suffixes().collect()
}

/// Checks the options, before thousands of traces are read.
#[pyfunction]
pub(crate) fn check(
    machine: Option<String>,
    steps: Option<String>,
    topology: Option<PathBuf>,
) -> PyResult<()> {
    machine_of(machine)?;
    options_of(&(steps, None))?;
    wiring_of(topology).map(drop)
}

/// The approximate memory needed to read and diagnose a trace of this many uncompressed bytes.
#[pyfunction]
pub(crate) fn memory_for(unpacked: u64) -> u64 {
    busbound::memory_for(unpacked)
}

#[pymethods]
impl Trace {
    #[pyo3(signature = (machine = None, steps = None, warmup = None, wall_ms = None))]
    fn diagnose(
        &self,
        py: Python<'_>,
        machine: Option<String>,
        steps: Option<String>,
        warmup: Option<usize>,
        wall_ms: Option<f64>,
    ) -> PyResult<Answer> {
        let (machine, options) = (machine_of(machine)?, timed_options_of(&(steps, warmup), wall_ms)?);
        let run = self.run.clone();
        let answer = attend(py, move |_| run.diagnose(&machine, &options))?;
        Ok(Answer::of(Content::Diagnosis(Box::new(answer))))
    }

    /// The page of the diagnosis with these options, as the command writes it.
    #[pyo3(signature = (machine = None, steps = None, warmup = None, wall_ms = None))]
    fn page(
        &self,
        py: Python<'_>,
        machine: Option<String>,
        steps: Option<String>,
        warmup: Option<usize>,
        wall_ms: Option<f64>,
    ) -> PyResult<String> {
        let (machine, options) = (machine_of(machine)?, timed_options_of(&(steps, warmup), wall_ms)?);
        let run = self.run.clone();
        let page = attend(py, move |_| {
            let drawn = run.draw(&machine, &options, &[], Detail::Page { runs: 1 });
            drawn.render(Format::Html, &Style::default())
        })?;
        page.map_err(failed)
    }

    fn survey(&self, py: Python<'_>) -> PyResult<Answer> {
        let run = self.run.clone();
        Ok(Answer::of(Content::Survey(attend(py, move |_| run.survey())?)))
    }

    /// Predicts one scenario with all changes, in order; without changes, tries those worth it.
    #[pyo3(signature = (apply, machine = None, steps = None, warmup = None, wall_ms = None))]
    fn whatif(
        &self,
        py: Python<'_>,
        apply: Vec<String>,
        machine: Option<String>,
        steps: Option<String>,
        warmup: Option<usize>,
        wall_ms: Option<f64>,
    ) -> PyResult<Answer> {
        let (machine, options) = (machine_of(machine)?, timed_options_of(&(steps, warmup), wall_ms)?);
        let changes = apply.iter().map(|change| change.parse::<Change>());
        let changes = changes.collect::<Result<Vec<_>, _>>().map_err(bad_option)?;
        let wanted = if changes.is_empty() { Vec::new() } else { vec![changes] };
        let run = self.run.clone();
        let answer = attend(py, move |_| run.what_if(&machine, &options, &wanted))?;
        let answer = answer.map_err(|why| failed(format!("{}: {why}", self.run.source().path)))?;
        Ok(Answer::of(Content::WhatIf(answer)))
    }

    /// One of the tables, by its name.
    #[pyo3(signature = (name, steps = None, warmup = None))]
    fn table(
        &self,
        py: Python<'_>,
        name: &str,
        steps: Option<String>,
        warmup: Option<usize>,
    ) -> PyResult<Table> {
        let table = busbound::tables::Table::ALL.into_iter().find(|table| table.name() == name);
        let table = table.ok_or_else(|| bad_option(format!("unknown table: {name}")))?;
        Ok(Table { tables: self.tables(py, (steps, warmup))?, table })
    }

    #[getter]
    fn path(&self) -> &str {
        &self.run.source().path
    }

    /// Whether the storage failed while reading, so that a retry may read more.
    #[getter]
    fn lost_to_storage(&self) -> bool {
        self.run.trace().stats().losses.iter().any(|loss| loss.what == LossKind::ReadError)
    }

    /// Number of events that were read.
    fn __len__(&self) -> usize {
        self.run.trace().len()
    }
}

impl Trace {
    fn tables(&self, py: Python<'_>, choice: StepChoice) -> PyResult<SharedTables> {
        // The lock is never held while waiting for the GIL.
        let known = || self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, tables)) = &*known()
            && *of == choice
        {
            return Ok(Arc::clone(tables));
        }
        let options = options_of(&choice)?;
        let run = self.run.clone();
        // No column depends on the machine.
        let tables = attend(py, move |_| Arc::new(run.tables(&Machine::default(), &options).1))?;
        *known() = Some((choice, Arc::clone(&tables)));
        Ok(tables)
    }
}
