//! What do findings share? The types of rules and findings, the code that runs rules, and helpers for checks.

pub(super) mod copies;
mod cost;
mod draft;
mod evidence;
pub(super) mod find;
mod finding;
pub(super) mod frameworks;
pub(super) mod host_idle;
pub(super) mod kernels;
pub(super) mod pageable;
pub(super) mod pinning;
pub(super) mod prefetch;
pub(super) mod prize;
mod rule;

pub use cost::{Cost, Effort};
pub(super) use draft::{Draft, Fix};
pub use evidence::EvidenceUnit;
pub use finding::{Finding, Severity, WithoutCode};
pub(crate) use rule::Rule;
pub use rule::{Candidate, Document};
