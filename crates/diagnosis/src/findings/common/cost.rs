//! What does a fix cost?

use serde::Serialize;

/// How much has to change for a fix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Effort {
    /// A setting or an environment variable.
    Setting,
    OneLine,
    FewLines,
    /// The order of the program's work changes.
    Restructuring,
    /// The machine, not the program.
    Machine,
}

impl Effort {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Setting => "a setting",
            Self::OneLine => "one line of code",
            Self::FewLines => "a few lines of code",
            Self::Restructuring => "restructuring the code",
            Self::Machine => "a change to the machine, not to the code",
        }
    }
}

/// What a fix costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    pub effort: Effort,
    /// Host memory that the fix pins, at most: all that a step copies. The operating system cannot use it for anything else.
    /// `null` if it pins none.
    pub pinned_bytes: Option<u64>,
    /// The host memory that the process may use; `null` if that is not recorded, or the fix pins none.
    pub host_bytes: Option<u64>,
    /// GPU memory that the fix needs in addition, as the replay counts it. `null` if it needs none.
    pub gpu_bytes: Option<u64>,
    /// What must hold; otherwise the fix gains less, or is wrong.
    pub risk: &'static str,
}
