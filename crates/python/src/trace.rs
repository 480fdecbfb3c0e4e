//! A trace that has been read, and the questions it is asked.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use busbound::machine::topology::GpuPlace;
use busbound::tables::Tables;
use busbound::trace::LossKind;
use busbound::whatif::replay::Change;
use busbound::{Error, Input, Machine, Options, ReadOptions, Run};
use pyo3::prelude::*;
use regex_lite::Regex;

use crate::answer::{Answer, Content};
use crate::attend::attend;
use crate::failure::{StorageError, failed};
use crate::table::Table;

type SharedTables = Arc<Tables<Arc<busbound::Trace>>>;

/// What is told of steps: the expression that marks them, and how many are warm-up.
type StepChoice = (Option<String>, Option<usize>);

/// A trace that has been read. busbound.open makes one.
#[pyclass(frozen, module = "busbound._native")]
#[derive(Debug)]
pub(crate) struct Trace {
    run: Run,
    /// Those made last: four tables are asked for one after another.
    tables: Mutex<Option<(StepChoice, SharedTables)>>,
}

/// Reads a trace. Its name is that of the file, where no other is given: a copy goes by what it was copied from.
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

fn failure_of(error: Error) -> PyErr {
    if error.is_storage() { StorageError::new_err(error.to_string()) } else { failed(error) }
}

/// The traces that paths, directories and patterns stand for.
#[pyfunction]
pub(crate) fn traces_in(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Vec<PathBuf>> {
    py.detach(|| busbound::traces_in(&paths)).map_err(failed)
}

/// How the names of files end that are read.
#[pyfunction]
pub(crate) fn suffixes() -> Vec<&'static str> {
    busbound::trace::suffixes().collect()
}

/// Nothing, if these can be asked for; else what is wrong with them, before a thousand traces are asked.
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

/// What reading and diagnosing a trace of so many bytes takes, about.
#[pyfunction]
pub(crate) fn memory_for(unpacked: u64) -> u64 {
    busbound::memory_for(unpacked)
}

#[pymethods]
impl Trace {
    #[pyo3(signature = (machine = None, steps = None, warmup = None))]
    fn diagnose(
        &self,
        py: Python<'_>,
        machine: Option<String>,
        steps: Option<String>,
        warmup: Option<usize>,
    ) -> PyResult<Answer> {
        let (machine, options) = (machine_of(machine)?, options_of(&(steps, warmup))?);
        let run = self.run.clone();
        let answer = attend(py, move |_| run.diagnose(&machine, &options))?;
        Ok(Answer::of(Content::Diagnosis(Box::new(answer))))
    }

    fn survey(&self, py: Python<'_>) -> PyResult<Answer> {
        let run = self.run.clone();
        Ok(Answer::of(Content::Survey(attend(py, move |_| run.survey())?)))
    }

    /// All changes together make one scenario, in order; without any, those worth trying are tried.
    #[pyo3(signature = (apply, machine = None, steps = None, warmup = None))]
    fn whatif(
        &self,
        py: Python<'_>,
        apply: Vec<String>,
        machine: Option<String>,
        steps: Option<String>,
        warmup: Option<usize>,
    ) -> PyResult<Answer> {
        let (machine, options) = (machine_of(machine)?, options_of(&(steps, warmup))?);
        let changes = apply.iter().map(|change| change.parse::<Change>());
        let changes = changes.collect::<Result<Vec<_>, _>>().map_err(failed)?;
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
        let table = table.ok_or_else(|| failed(format!("there is no table {name}")))?;
        Ok(Table { tables: self.tables(py, (steps, warmup))?, table })
    }

    #[getter]
    fn path(&self) -> &str {
        &self.run.source().path
    }

    /// Whether the storage failed in the middle of it, so that another reading may have more.
    #[getter]
    fn lost_to_storage(&self) -> bool {
        self.run.trace().stats().losses.iter().any(|loss| loss.what == LossKind::ReadError)
    }

    /// Events that were read.
    fn __len__(&self) -> usize {
        self.run.trace().len()
    }
}

impl Trace {
    fn tables(&self, py: Python<'_>, choice: StepChoice) -> PyResult<SharedTables> {
        // Never held while waiting for the interpreter.
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

fn machine_of(name: Option<String>) -> PyResult<Machine> {
    busbound::resolve_machine(name.as_deref()).map_err(failed)
}

pub(crate) fn wiring_of(topology: Option<PathBuf>) -> PyResult<Option<Vec<GpuPlace>>> {
    topology.as_deref().map(busbound::read_topology).transpose().map_err(failed)
}

fn options_of((steps, warmup): &StepChoice) -> PyResult<Options> {
    let mut options = Options::default();
    let steps = steps.as_deref().map(Regex::new).transpose();
    options.steps = steps.map_err(|error| failed(format!("steps: {error}")))?;
    options.warmup = *warmup;
    Ok(options)
}
