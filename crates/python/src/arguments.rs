//! Converts the arguments of calls from Python.

use std::path::PathBuf;

use busbound::machine::topology::GpuPlace;
use busbound::{Machine, Options};
use pyo3::prelude::*;
use regex_lite::Regex;

use crate::failure::{bad_option, failure_of};

/// The regular expression for step annotations, and the number of warm-up steps.
pub(crate) type StepChoice = (Option<String>, Option<usize>);

pub(crate) fn machine_of(name: Option<String>) -> PyResult<Machine> {
    busbound::resolve_machine(name.as_deref()).map_err(failure_of)
}

pub(crate) fn wiring_of(topology: Option<PathBuf>) -> PyResult<Option<Vec<GpuPlace>>> {
    let read = topology.as_deref().map(busbound::read_topology).transpose().map_err(failure_of)?;
    Ok(read.map(|topology| topology.gpus))
}

pub(crate) fn options_of((steps, warmup): &StepChoice) -> PyResult<Options> {
    let mut options = Options::default();
    let steps = steps.as_deref().map(Regex::new).transpose();
    options.steps = steps.map_err(|error| bad_option(format!("steps: {error}")))?;
    options.warmup = *warmup;
    Ok(options)
}

/// With the milliseconds of a step without the profiler, if the caller timed it.
pub(crate) fn timed_options_of(choice: &StepChoice, wall_ms: Option<f64>) -> PyResult<Options> {
    if wall_ms.is_some_and(|ms| !ms.is_finite() || ms <= 0.0) {
        return Err(bad_option("wall_ms must be a time above zero, in milliseconds"));
    }
    let mut options = options_of(choice)?;
    options.wall_ms = wall_ms;
    Ok(options)
}
