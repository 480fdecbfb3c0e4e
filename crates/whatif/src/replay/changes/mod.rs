//! What can be changed? One file a change; [`changes!`] is the registry.
//!
//! A change declares how `--apply` spells it, what it does, what has to be written and what has to hold, and edits
//! the graph. Parser, error texts and `--help` are made from these declarations.

mod asynchronous;
mod coalesce;
mod edit;
mod link;
mod no_sync;
mod pin;
mod prefetch;
mod resident;
mod spelling;

use std::fmt;
use std::str::FromStr;

use busbound_cause::Model;
use busbound_machine::LinkFacts;

use super::assumed::Assumed;

pub use asynchronous::Async;
pub use coalesce::Coalesce;
pub use link::OtherLink;
pub use no_sync::NoSync;
pub use pin::Pin;
pub use prefetch::Prefetch;
pub use resident::Resident;

/// What a change says of itself. [`fmt::Display`] writes it as `--apply` takes it.
trait Declared: Sized + fmt::Display {
    const ABOUT: About;

    /// From what follows the `=`.
    ///
    /// # Errors
    /// What a value has to be.
    fn parse(value: Option<&str>) -> Result<Self, &'static str>;

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made;
}

/// The words of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct About {
    /// Before the `=`.
    pub name: &'static str,
    /// With a placeholder for its value.
    pub spelling: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// What is done, to follow "by": `pinning host buffers`.
    pub doing: &'static str,
    /// What has to be written.
    pub effort: &'static str,
    /// What has to be so.
    pub precondition: &'static str,
    /// Whether its effect depends on which work made which data, which no trace tells.
    pub depends_on_data: bool,
}

/// What a change is made under.
struct Terms<'a> {
    link: &'a LinkFacts,
    assumed: Assumed,
}

/// What a change came to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Made {
    pub(super) changed: usize,
    pub(super) extra_bytes: u64,
}

/// The reason given for a name that no change has, or for a value where none is taken or one is missing.
const NO_SUCH_CHANGE: &str = "no such change";

/// A change of this name from what follows the `=`; the reason where there is none.
type Parse = fn(Option<&str>) -> Result<Change, &'static str>;

/// Makes the enum of changes and what is dispatched over it from one list.
macro_rules! changes {
    ($($change:ident($declared:ident),)*) => {
        /// A change to a run, before anyone writes it.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Change {
            $($change($declared),)*
        }

        /// Every change's words and parser.
        const ALL: &[(About, Parse)] =
            &[$((<$declared as Declared>::ABOUT, |value| $declared::parse(value).map(Change::$change)),)*];

        impl Change {
            pub fn about(&self) -> About {
                match self {
                    $(Self::$change(_) => <$declared as Declared>::ABOUT,)*
                }
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

// The registry, in the order in which changes are listed for people.
changes! {
    Pin(Pin),
    Prefetch(Prefetch),
    Async(Async),
    Coalesce(Coalesce),
    NoSync(NoSync),
    Link(OtherLink),
    Resident(Resident),
}

/// The words of every change there is, in the order in which they are listed.
pub fn all_changes() -> impl Iterator<Item = About> {
    ALL.iter().map(|(about, _)| *about)
}

/// Makes a change to a graph.
pub(super) fn apply(graph: &mut Model, change: &Change, link: &LinkFacts, assumed: Assumed) -> Made {
    change.apply(graph, &Terms { link, assumed })
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown change {given:?}: {why}{}; there are {}", did_you_mean(.near), spellings())]
pub struct UnknownChange {
    given: String,
    why: &'static str,
    /// The spelling of the change whose name is nearest.
    near: Option<&'static str>,
}

fn did_you_mean(near: &Option<&'static str>) -> String {
    near.map_or(String::new(), |near| format!(", did you mean {near}?"))
}

/// All of them in one enumeration.
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
                let nearest = spelling::nearest(name, all_changes().map(|about| about.name));
                let near = all_changes().find(|about| Some(about.name) == nearest);
                Err(wrong(NO_SUCH_CHANGE, near.map(|about| about.spelling)))
            }
        }
    }
}

/// Of changes that take no value.
fn without_value<T>(change: T, value: Option<&str>) -> Result<T, &'static str> {
    if value.is_none() { Ok(change) } else { Err(NO_SUCH_CHANGE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_they_are_written() {
        for text in ["pin", "prefetch=2", "async", "coalesce", "nosync", "link=pcie4x16", "resident=50%"] {
            assert_eq!(text.parse::<Change>().unwrap().to_string(), text);
        }
        assert_eq!("prefetch".parse::<Change>().unwrap(), Prefetch(1).into());
        assert_eq!("resident=25".parse::<Change>().unwrap(), Resident(0.25).into());
        for wrong in ["", "pinned", "prefetch=0", "prefetch=x", "link=h999", "resident=120%", "pin=2", "link"]
        {
            let error = wrong.parse::<Change>().unwrap_err().to_string();
            assert!(error.contains("there are pin, prefetch=N"), "{error}");
        }
    }

    #[test]
    fn a_misspelled_change_is_answered_with_the_nearest_one() {
        let error = |text: &str| text.parse::<Change>().unwrap_err().to_string();
        let all = "there are pin, prefetch=N, async, coalesce, nosync, link=NAME and resident=N%";
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

    /// What a new change must declare for the answers that are made from it.
    #[test]
    fn every_change_says_what_it_does_what_it_takes_and_when_it_holds() {
        for about in all_changes() {
            assert!(about.spelling.starts_with(about.name), "{about:?}");
            assert!(![about.help, about.effort, about.precondition].contains(&""), "{about:?}");
            assert_eq!(all_changes().filter(|other| other.name == about.name).count(), 1);
        }
    }
}
