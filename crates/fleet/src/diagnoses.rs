//! What is the JSON for several inputs? The diagnosis of each run, and the comparison if they are ranks of one run.

use busbound_diagnosis::Diagnosis;
use serde::Serialize;

use crate::answer::FleetAnswer;
use crate::fleet::Unread;

pub const DIAGNOSES_SCHEMA: &str = "busbound.diagnoses/2";

/// The output for several inputs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Diagnoses<'a> {
    pub schema: &'static str,
    /// The inputs that could be read, in order; each as if it were the only one.
    pub runs: &'a [Diagnosis],
    /// The comparison; only if they are ranks of one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<&'a FleetAnswer>,
    /// The inputs that could not be read; omitted if there are none.
    #[serde(default, skip_serializing_if = "<[Unread]>::is_empty")]
    pub unread: &'a [Unread],
}
