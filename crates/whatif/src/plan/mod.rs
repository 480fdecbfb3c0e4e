//! Runs not made yet: one file a question.

pub mod allreduce;
pub mod budget;
pub mod ddp;
pub mod offload;
pub mod parallel;

/// The version of what `busbound plan --format json` writes.
pub const PLAN_SCHEMA: &str = "busbound.plan/1";

/// Input that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {valid}, not {given}")]
pub struct BadInput {
    pub what: &'static str,
    pub valid: String,
    pub given: String,
}

pub(crate) fn ensure(
    holds: bool,
    what: &'static str,
    valid: impl Into<String>,
    given: impl ToString,
) -> Result<(), BadInput> {
    if holds { Ok(()) } else { Err(BadInput { what, valid: valid.into(), given: given.to_string() }) }
}
