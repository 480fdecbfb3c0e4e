//! What is the JSON for several inputs? Each answer is the same as for that input alone.

use serde::Serialize;

use crate::answers::survey::Survey;
use crate::answers::whatif::WhatIf;

pub const SURVEYS_SCHEMA: &str = "busbound.surveys/2";
pub const WHATIFS_SCHEMA: &str = "busbound.whatifs/2";

/// The output of `busbound survey` for several inputs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Surveys<'a> {
    pub schema: &'static str,
    /// The inputs that could be read, in order.
    pub runs: &'a [Survey],
}

/// The output of `busbound whatif` for several inputs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatIfs<'a> {
    pub schema: &'static str,
    /// The inputs that could be replayed, in order.
    pub runs: &'a [WhatIf],
}
