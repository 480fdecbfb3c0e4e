//! What a trace is once it is read. No I/O and no clock here: same input, same output.

pub(crate) mod access;
pub(crate) mod builder;
pub(crate) mod call;
pub(crate) mod collective;
pub(crate) mod column;
pub(crate) mod copy_operator;
pub(crate) mod environment;
pub(crate) mod events;
pub(crate) mod files;
pub(crate) mod format;
pub(crate) mod kind;
pub(crate) mod launch;
pub(crate) mod link;
pub(crate) mod managed;
pub(crate) mod memory;
pub(crate) mod names;
pub(crate) mod numa;
pub(crate) mod origin;
pub(crate) mod sanity;
pub(crate) mod size;
pub(crate) mod stats;
pub(crate) mod sync;
pub(crate) mod time;
pub(crate) mod trace;
pub(crate) mod track;
pub(crate) mod transfer;
