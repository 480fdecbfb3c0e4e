//! The answers that users ask for, one module each: typed results for renderers.

pub(crate) mod advice;
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod diagnosis;
pub(crate) mod gate;
pub(crate) mod job;
pub(crate) mod plans;
pub(crate) mod several;
pub(crate) mod survey;
pub(crate) mod trial;
pub(crate) mod watch;
pub(crate) mod whatif;
