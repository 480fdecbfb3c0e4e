//! What bounds the run? One word, its share and one sentence.

mod clauses;
mod decide;
mod in_kernels;

use serde::{Deserialize, Serialize};

pub(crate) use decide::{unknown_share, verdict};
pub(crate) use in_kernels::kernel_waits_ms;

use crate::limits::id::LimitationId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Bound {
    Transfer,
    Communication,
    Compute,
    Launch,
    Host,
    Sync,
    Input,
    Mixed,
    Unknown,
}

impl Bound {
    /// Every verdict.
    pub const ALL: &'static [Self] = &[
        Self::Transfer,
        Self::Communication,
        Self::Compute,
        Self::Launch,
        Self::Host,
        Self::Sync,
        Self::Input,
        Self::Mixed,
        Self::Unknown,
    ];

    /// The name in JSON and in `busbound explain`.
    pub fn id(self) -> &'static str {
        match self {
            Self::Transfer => "transfer",
            Self::Communication => "communication",
            Self::Compute => "compute",
            Self::Launch => "launch",
            Self::Host => "host",
            Self::Sync => "sync",
            Self::Input => "input",
            Self::Mixed => "mixed",
            Self::Unknown => "unknown",
        }
    }

    /// How the answer begins: `Transfer-bound`.
    pub fn title(self) -> &'static str {
        match self {
            Self::Transfer => "Transfer-bound",
            Self::Communication => "Communication-bound",
            Self::Compute => "Compute-bound",
            Self::Launch => "Launch-bound",
            Self::Host => "Host-bound",
            Self::Sync => "Synchronization-bound",
            Self::Input => "Input-bound",
            Self::Mixed => "Mixed",
            Self::Unknown => "Inconclusive",
        }
    }

    /// What bounds a step, as a noun.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Transfer => "copies",
            Self::Communication => "collectives",
            Self::Compute => "compute",
            Self::Launch => "launches",
            Self::Host => "host work",
            Self::Sync => "host syncs",
            Self::Input => "input",
            Self::Mixed | Self::Unknown => "several things",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict {
    pub bound: Bound,
    /// The two that a mixed verdict consists of, the larger one first; empty for every other verdict.
    #[serde(default)]
    pub between: Vec<Bound>,
    /// Share of a step that goes away if what bounds it is free, 0 to 1.
    pub share: f64,
    pub statement: String,
    /// The statement without the name of the verdict, as a sentence of its own.
    #[serde(default)]
    pub because: String,
    /// What the step would take then; `null` if that is not known.
    #[serde(default)]
    pub headroom: Option<Headroom>,
    /// The limitation because of which there is no verdict; `null` if there is one, or its cause is in the run.
    #[serde(default)]
    pub withheld: Option<LimitationId>,
}

/// Why there is no verdict: much GPU work is missing, or records contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Withheld {
    pub(crate) id: LimitationId,
    pub(crate) why: String,
    /// What to do about it; empty if nothing helps.
    pub(crate) remedy: &'static str,
}

/// What a step would take if what bounds it took no time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Headroom {
    /// What is free.
    pub resource: Bound,
    pub step_if_free_ms: f64,
    /// What bounds the step then; `null` if nothing stands out.
    pub next_bound: Option<Bound>,
}

/// Below this share of the step, copies are hidden behind what else runs at the same time, which matters as much.
const OVERLAPPED: f64 = 0.05;

impl Verdict {
    /// Whether copies bound the run and are hidden behind kernels at the same time.
    pub fn is_overlapped(&self) -> bool {
        self.bound == Bound::Transfer && self.share < OVERLAPPED
    }

    /// How the answer begins: `Transfer-bound`, `Mixed (compute and copies)`.
    pub fn title(&self) -> String {
        match self.between.as_slice() {
            [first, second] => format!("{} ({} and {})", self.bound.title(), first.noun(), second.noun()),
            _ => self.bound.title().to_owned(),
        }
    }

    /// No single thing bounds the step. `because` as in [`Self::of`].
    fn mixed(between: [Bound; 2], share: f64, because: &str) -> Self {
        let mut verdict = Self::of(Bound::Mixed, share, because);
        verdict.between = between.to_vec();
        verdict.statement = format!("{}: {because}.", verdict.title());
        verdict
    }

    /// `because` is a sentence without its capital letter and its period.
    pub(crate) fn of(bound: Bound, share: f64, because: &str) -> Self {
        let statement = format!("{}: {because}.", bound.title());
        Self {
            bound,
            between: Vec::new(),
            share,
            statement,
            because: format!("{}.", capitalized(because)),
            headroom: None,
            withheld: None,
        }
    }

    /// The verdict when figures mislead.
    pub(crate) fn inconclusive(withheld: &Withheld, has_gpu: bool) -> Self {
        let why = &withheld.why;
        let because = match has_gpu {
            true if withheld.id.is_contradiction() => format!("{why}; no figure can be trusted"),
            true if withheld.id == LimitationId::CallRecords => {
                format!("{why}; what the GPU waited for is unknown")
            }
            true if withheld.id == LimitationId::StartUp => why.clone(),
            true => format!("{why}; figures cover only the rest"),
            false => format!("the GPU events could not be read: {why}"),
        };
        let because = match withheld.remedy {
            "" => because,
            remedy => format!("{because}. For a verdict: {remedy}"),
        };
        Self { withheld: Some(withheld.id), ..Self::of(Bound::Unknown, 0.0, &because) }
    }
}

/// With a capital letter at its start.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
