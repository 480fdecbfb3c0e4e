//! Why does a task have no times?

use crate::driver::CudaError;

#[derive(Debug)]
pub(super) enum Trouble {
    /// It cannot be done here, and the rest can.
    CannotRun(String),
    Driver(CudaError),
}

impl From<CudaError> for Trouble {
    fn from(error: CudaError) -> Self {
        Self::Driver(error)
    }
}
