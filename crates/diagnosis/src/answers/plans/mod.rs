//! Plans that combine what `whatif` plans with what the host's link reaches.

pub(crate) mod handoff;
pub(crate) mod memory;
