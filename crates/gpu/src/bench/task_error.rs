//! Why does a task have no times?

use crate::driver::CudaError;

#[derive(Debug)]
pub(super) enum TaskError {
    /// It cannot run here, but other tasks can.
    CannotRun(String),
    Driver(CudaError),
}

impl From<CudaError> for TaskError {
    fn from(error: CudaError) -> Self {
        Self::Driver(error)
    }
}
