//! `import busbound`: the native part of the Python package. The public API is in python/busbound.

mod answer;
mod arguments;
mod attend;
mod exchange;
mod failure;
mod history;
mod lane;
mod schedule;
mod stream;
mod table;
mod trace;

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs the command as the standalone program does; `args` begin with its name. Returns the exit code.
#[pyfunction]
fn run_command(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| busbound_cli::run(args))
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::answer::{Answer, combine, compare, merge, summarize};
    #[pymodule_export]
    use super::exchange::Swap;
    #[pymodule_export]
    use super::failure::BusboundError;
    #[pymodule_export]
    use super::history::history;
    #[pymodule_export]
    use super::lane::{CudaRuntime, Fill, Lane};
    #[pymodule_export]
    use super::run_command;
    #[pymodule_export]
    use super::schedule::PySchedule;
    #[pymodule_export]
    use super::stream::{plan_stream, plan_together};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::trace::{Trace, check, memory_for, open, suffixes, traces_in};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::failure::add_to(module)
    }

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
