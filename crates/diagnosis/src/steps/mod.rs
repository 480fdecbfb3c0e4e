//! Which parts of the trace are steps, and which of the steps are analyzed?

pub(crate) mod basis;
pub(crate) mod phases;
pub(crate) mod steady;
pub(crate) mod window;
