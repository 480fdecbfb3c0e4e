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

/// A least size, rounded up so that what is written is enough: `336 MB`, `1.31 GB`.
pub(crate) fn at_least(bytes: u64) -> String {
    format!("at least {}", rounded(bytes, f64::ceil))
}

/// A given size, rounded down so that it is never written as enough.
pub(crate) fn at_most(bytes: u64) -> String {
    rounded(bytes, f64::floor)
}

/// In hundredths of a GB, in MB or in kB.
fn rounded(bytes: u64, round: fn(f64) -> f64) -> String {
    let b = bytes as f64;
    match bytes {
        1_000_000_000.. => format!("{:.2} GB", round(b / 1e7) / 100.0),
        1_000_000.. => format!("{} MB", round(b / 1e6)),
        1_000.. => format!("{} kB", round(b / 1e3)),
        _ => format!("{bytes} bytes"),
    }
}

pub(crate) fn ensure(
    is_valid: bool,
    what: &'static str,
    valid: impl Into<String>,
    given: impl ToString,
) -> Result<(), BadInput> {
    if is_valid { Ok(()) } else { Err(BadInput { what, valid: valid.into(), given: given.to_string() }) }
}
