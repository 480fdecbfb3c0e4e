//! Which stretches of the trace are steps, and which of them are spoken of.

pub(crate) mod basis;
pub(crate) mod steady;
pub(crate) mod window;
