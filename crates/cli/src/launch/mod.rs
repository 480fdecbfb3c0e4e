//! Starting somebody's program with one of our libraries loaded into it.

pub(crate) mod attach;
pub(crate) mod child;
pub(crate) mod library;
mod preload;
pub(crate) mod program;
pub(crate) mod record;
pub(crate) mod stage;
