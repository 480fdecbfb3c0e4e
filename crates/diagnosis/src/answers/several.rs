//! What does a program get of several inputs? Each answer as if its input had been the only one.

use serde::Serialize;

use crate::answers::survey::Survey;
use crate::answers::whatif::WhatIf;

pub const SURVEYS_SCHEMA: &str = "busbound.surveys/2";
pub const WHATIFS_SCHEMA: &str = "busbound.whatifs/2";

/// What `busbound survey` tells of several inputs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Surveys<'a> {
    pub schema: &'static str,
    /// Those that could be read, in order.
    pub runs: &'a [Survey],
}

/// What `busbound whatif` tells of several inputs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatIfs<'a> {
    pub schema: &'static str,
    /// Those that could be run again, in order.
    pub runs: &'a [WhatIf],
}
