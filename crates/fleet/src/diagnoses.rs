//! What does a program get of several inputs? Each run's diagnosis, and what they come to together.

use busbound_diagnosis::Diagnosis;
use serde::Serialize;

use crate::answer::FleetAnswer;
use crate::fleet::Unread;

pub const DIAGNOSES_SCHEMA: &str = "busbound.diagnoses/2";

/// Several inputs of one call.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnoses<'a> {
    pub schema: &'static str,
    /// Those that could be read, in order; each as if it had been the only one.
    pub runs: &'a [Diagnosis],
    /// What they come to together; only where they are ranks of one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<&'a FleetAnswer>,
    /// Those that could not be read; only where there are any.
    #[serde(default, skip_serializing_if = "<[Unread]>::is_empty")]
    pub unread: &'a [Unread],
}
