//! Which names do completions offer for a value that may also be something else?

use std::ffi::OsStr;

use busbound::diagnosis::{FigureId, explanations};
use busbound::machine::catalog;
use busbound::whatif::replay::{Change, UnknownChange, all_changes};
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

use busbound::machine::spelling::did_you_mean;

/// Links that most machines have; others are accepted too.
const LINKS: [&str; 6] = ["pcie3x16", "pcie4x8", "pcie4x16", "pcie5x8", "pcie5x16", "pcie6x16"];

/// Parses any text with `parse`, and offers `names` to the shell.
#[derive(Debug, Clone)]
struct Offering<T> {
    names: fn() -> Vec<&'static str>,
    parse: fn(&str) -> Result<T, String>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Offering<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let parse = self.parse;
        StringValueParser::new().try_map(move |text| parse(&text)).parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

/// GPUs of the catalog and common links; a rate or a file is accepted as well.
pub(crate) fn any_machine() -> impl TypedValueParser<Value = String> {
    Offering { names: machines, parse: |text| Ok(text.to_owned()) }
}

/// GPUs of the catalog.
pub(crate) fn any_gpu() -> impl TypedValueParser<Value = String> {
    Offering { names: gpus, parse: |text| Ok(text.to_owned()) }
}

/// A requirement begins with the name of a figure.
pub(crate) fn any_requirement() -> impl TypedValueParser<Value = String> {
    let names = || FigureId::ALL.iter().map(|figure| figure.name()).collect();
    Offering { names, parse: |text| Ok(text.to_owned()) }
}

/// Everything that can be explained.
pub(crate) fn any_topic() -> impl TypedValueParser<Value = String> {
    let names = || explanations().into_iter().map(|one| one.id).collect();
    Offering { names, parse: |text| Ok(text.to_owned()) }
}

/// A what-if change.
pub(crate) fn any_change() -> impl TypedValueParser<Value = Change> {
    let names = || {
        all_changes().map(|about| about.spelling.split_inclusive('=').next().unwrap_or_default()).collect()
    };
    Offering { names, parse: parse_change }
}

/// An unknown change gets the closest names.
pub(crate) fn parse_change(text: &str) -> Result<Change, String> {
    let name = text.split('=').next().unwrap_or_default();
    let is_known = all_changes().any(|about| about.name == name);
    text.parse().map_err(|error: UnknownChange| {
        let spellings: Vec<&str> = all_changes().map(|about| about.spelling).collect();
        match did_you_mean(name, all_changes().map(|about| about.name), 1) {
            _ if is_known => error.why(),
            Some(meant) => meant,
            None => format!("the changes are {}", spellings.join(", ")),
        }
    })
}

pub(crate) fn machines() -> Vec<&'static str> {
    gpus().into_iter().chain(LINKS).collect()
}

pub(crate) fn gpus() -> Vec<&'static str> {
    catalog().iter().map(|gpu| gpu.key).collect()
}
