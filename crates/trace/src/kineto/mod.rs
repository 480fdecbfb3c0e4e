//! The reader of Kineto's JSON, which is what `torch.profiler` writes.

mod assemble;
mod batch;
mod cursor;
mod envelope;
mod event;
mod number;
#[cfg(test)]
mod properties;
mod scan;
mod text;

pub(crate) use assemble::{Assembler, MOST_EVENTS};
pub(crate) use batch::Batch;
pub(crate) use cursor::{begins_event, follows_a_separator};
pub(crate) use scan::{LONGEST_VALUE, List, Outcome, Region, scan};
