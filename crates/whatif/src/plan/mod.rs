//! What will a run take before it is launched? One file per question.

pub mod allreduce;
pub mod budget;
pub mod cluster;
pub mod contention;
pub mod ddp;
pub mod kv;
pub mod offload;
pub mod parallel;
pub mod stream;

/// The schema of `busbound plan --format json`.
pub const PLAN_SCHEMA: &str = "busbound.plan/1";

/// Invalid input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {valid}, not {given}")]
pub struct BadInput {
    pub what: &'static str,
    pub valid: String,
    pub given: String,
}

pub(crate) fn ensure(
    is_valid: bool,
    what: &'static str,
    valid: impl Into<String>,
    given: impl ToString,
) -> Result<(), BadInput> {
    if is_valid { Ok(()) } else { Err(BadInput { what, valid: valid.into(), given: given.to_string() }) }
}
