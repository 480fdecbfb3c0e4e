//! What can be changed? One file per change; [`changes!`] is the registry.
//!
//! A change declares its `--apply` spelling, its effect, its effort and its assumptions, and edits the graph. The
//! parser, error messages and `--help` are generated from these declarations.

mod asynchronous;
mod coalesce;
mod cold;
mod copied;
mod edit;
mod graph;
mod keep;
mod link;
mod loader;
mod no_sync;
mod optimizer;
mod pin;
mod prefetch;
mod resident;
mod spread;
mod stage;
mod stream;
mod workers;

use std::fmt;
use std::str::FromStr;

use busbound_cause::Model;
use busbound_machine::LinkFacts;
use busbound_machine::spelling::closest;

use super::assumed::Assumed;

pub use asynchronous::Async;
pub use coalesce::Coalesce;
pub use copied::Copied;
pub use graph::CudaGraph;
pub use keep::Keep;
pub use link::OtherLink;
pub use loader::LoaderPin;
pub use no_sync::NoSync;
pub use optimizer::Optimizer;
pub use pin::Pin;
pub use prefetch::Prefetch;
pub use resident::Resident;
pub use spread::Spread;
pub use stage::{Stage, staged_from};
pub use stream::Stream;
pub use workers::Workers;

/// The declaration of a change. [`fmt::Display`] writes it as `--apply` accepts it.
trait Declared: Sized + fmt::Display {
    const ABOUT: About;

    /// Parses the value after the `=`.
    ///
    /// # Errors
    /// What is wrong with the value.
    fn parse(value: Option<&str>) -> Result<Self, &'static str>;

    /// [`ABOUT`](Self::ABOUT), in the words of its value.
    fn about(&self) -> About {
        Self::ABOUT
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made;
}

/// The description of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct About {
    /// The part before the `=`.
    pub name: &'static str,
    /// The name with a placeholder for the value.
    pub spelling: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// What is done, to follow "by": `pinning host buffers`.
    pub doing: &'static str,
    /// What the user has to implement.
    pub effort: &'static str,
    /// What the prediction assumes.
    pub precondition: &'static str,
    /// Whether its effect depends on data dependencies, which are not visible in a trace.
    pub depends_on_data: bool,
}

/// The conditions of a replay.
struct Terms<'a> {
    link: &'a LinkFacts,
    assumed: Assumed,
}

/// The result of applying a change.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Made {
    pub(super) changed: usize,
    pub(super) extra_bytes: u64,
}

/// The reason for an unknown name, an unexpected value, or a missing value.
const NO_SUCH_CHANGE: &str = "no such change";

/// Parses a change from the value after the `=`; returns the reason on failure.
type Parse = fn(Option<&str>) -> Result<Change, &'static str>;

/// Generates the enum of changes and its dispatch from one list.
macro_rules! changes {
    ($($change:ident($declared:ident),)*) => {
        /// A change to a run, before it is implemented.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Change {
            $($change($declared),)*
        }

        /// The description and parser of every change.
        const ALL: &[(About, Parse)] =
            &[$((<$declared as Declared>::ABOUT, |value| $declared::parse(value).map(Change::$change)),)*];

        impl Change {
            pub fn about(&self) -> About {
                match self {
                    $(Self::$change(change) => change.about(),)*
                }
            }

            /// Whether it pins host memory.
            pub fn pins(&self) -> bool {
                matches!(self, Self::Pin(_) | Self::Loader(_))
            }

            /// Whether it changes copies, their calls and the waits for them, and nothing else.
            pub fn is_of_copies(&self) -> bool {
                matches!(self, Self::Pin(_) | Self::Stage(_) | Self::Prefetch(_) | Self::Async(_))
            }

            /// Whether it is a setting of the data loader, and no change of the code.
            pub fn is_loader_setting(&self) -> bool {
                matches!(self, Self::Loader(_) | Self::Workers(_))
            }

            /// Whether it starts copies earlier, or lets them end later, beside other work.
            pub fn overlaps_copies(&self) -> bool {
                matches!(self, Self::Prefetch(_) | Self::Async(_) | Self::Stream(_))
            }

            fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
                match self {
                    $(Self::$change(change) => change.apply(graph, terms),)*
                }
            }
        }

        impl fmt::Display for Change {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$change(change) => change.fmt(f),)*
                }
            }
        }

        $(
            impl From<$declared> for Change {
                fn from(change: $declared) -> Self {
                    Self::$change(change)
                }
            }
        )*
    };
}

// The registry, in display order.
changes! {
    Pin(Pin),
    Stage(Stage),
    Prefetch(Prefetch),
    Async(Async),
    Stream(Stream),
    Copied(Copied),
    Coalesce(Coalesce),
    NoSync(NoSync),
    Graph(CudaGraph),
    Keep(Keep),
    Resident(Resident),
    Loader(LoaderPin),
    Workers(Workers),
    Optimizer(Optimizer),
    Spread(Spread),
    Link(OtherLink),
}

/// The description of every change, in display order.
pub fn all_changes() -> impl Iterator<Item = About> {
    ALL.iter().map(|(about, _)| *about)
}

/// Applies a change to a graph.
pub(super) fn apply(graph: &mut Model, change: &Change, link: &LinkFacts, assumed: Assumed) -> Made {
    change.apply(graph, &Terms { link, assumed })
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown change {given:?}: {}; valid changes: {}", self.why(), spellings())]
pub struct UnknownChange {
    given: String,
    why: &'static str,
    /// The spelling of the change with the most similar name.
    near: Option<&'static str>,
}

impl UnknownChange {
    /// What is wrong with it, for a message that already has it.
    pub fn why(&self) -> String {
        let meant = self.near.map_or(String::new(), |near| format!(", did you mean {near}?"));
        format!("{}{meant}", self.why)
    }
}

/// All spellings in one list.
fn spellings() -> String {
    let all: Vec<&str> = all_changes().map(|about| about.spelling).collect();
    all.split_last().map_or(String::new(), |(last, rest)| format!("{} and {last}", rest.join(", ")))
}

impl FromStr for Change {
    type Err = UnknownChange;

    fn from_str(text: &str) -> Result<Self, UnknownChange> {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let wrong = |why, near| UnknownChange { given: text.to_owned(), why, near };
        match ALL.iter().find(|(about, _)| about.name == name) {
            Some((about, parse)) => {
                parse(value).map_err(|why| wrong(why, (why == NO_SUCH_CHANGE).then_some(about.spelling)))
            }
            None => {
                let closest = closest(name, all_changes().map(|about| about.name), 1);
                let near = all_changes().find(|about| closest.contains(&about.name));
                Err(wrong(NO_SUCH_CHANGE, near.map(|about| about.spelling)))
            }
        }
    }
}

/// Parses changes that take no value.
fn without_value<T>(change: T, value: Option<&str>) -> Result<T, &'static str> {
    if value.is_none() { Ok(change) } else { Err(NO_SUCH_CHANGE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_survive_a_round_trip() {
        for text in ["pin", "prefetch=2", "async", "coalesce", "nosync", "link=pcie4x16", "resident=50%"] {
            assert_eq!(text.parse::<Change>().unwrap().to_string(), text);
        }
        assert_eq!("prefetch".parse::<Change>().unwrap(), Prefetch(1).into());
        assert_eq!("resident=25".parse::<Change>().unwrap(), Resident(0.25).into());
        for wrong in ["", "pinned", "prefetch=0", "prefetch=x", "link=h999", "resident=120%", "pin=2", "link"]
        {
            let error = wrong.parse::<Change>().unwrap_err().to_string();
            assert!(error.contains("valid changes: pin, stage, prefetch=N"), "{error}");
        }
    }

    #[test]
    fn a_misspelled_change_gets_a_suggestion() {
        let error = |text: &str| text.parse::<Change>().unwrap_err().to_string();
        let all = "valid changes: pin, stage, prefetch=N, async, stream, copied, coalesce, nosync, graph, keep, resident=N%, loader=pin, workers=N, \
             optimizer=overlap|gpu, spread and link=NAME";
        assert_eq!(
            error("prefech=2"),
            format!(r#"unknown change "prefech=2": no such change, did you mean prefetch=N?; {all}"#)
        );
        assert_eq!(
            error("pin=2"),
            format!(r#"unknown change "pin=2": no such change, did you mean pin?; {all}"#)
        );
        assert_eq!(error("faster"), format!(r#"unknown change "faster": no such change; {all}"#));
        assert_eq!(
            error("prefetch=0"),
            format!(r#"unknown change "prefetch=0": prefetch takes a depth from 1 to 64; {all}"#)
        );
    }

    /// Every new change must fill in its description.
    #[test]
    fn every_change_declares_its_effect_effort_and_assumptions() {
        for about in all_changes() {
            assert!(about.spelling.starts_with(about.name), "{about:?}");
            assert!(![about.help, about.effort, about.precondition].contains(&""), "{about:?}");
            assert_eq!(all_changes().filter(|other| other.name == about.name).count(), 1);
        }
    }
}
