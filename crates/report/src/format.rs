//! What is an output format? The registry is in lib.rs: one line per format.

use std::fmt;
use std::io::Write;
use std::path::Path;

use crate::answer::Answer;
use crate::error::RenderError;
use crate::kind::AnswerKind;

/// Layout options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal. Other formats ignore it.
    pub width: u16,
    /// Whether terminal text has bold and dim escape sequences.
    pub color: bool,
    /// Whether a diagnosis at a terminal has all of its figures, and not the answer alone.
    pub verbose: bool,
}

impl Style {
    /// The width without a terminal: 80 columns fit into tickets and terminals.
    pub const USUAL_WIDTH: u16 = 80;
}

impl Default for Style {
    fn default() -> Self {
        Self { width: Self::USUAL_WIDTH, color: false, verbose: false }
    }
}

/// Which answers a format supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every answer meant for people.
    General,
    /// Only this kind.
    Only(AnswerKind),
}

/// One output format, declared by the file that writes it and registered in lib.rs.
#[derive(Debug)]
pub(crate) struct FormatSpec {
    pub(crate) name: &'static str,
    /// File extensions without the leading dot; the default first.
    pub(crate) suffixes: &'static [&'static str],
    /// A short description for lists of choices; empty if the name is enough.
    pub(crate) about: &'static str,
    pub(crate) scope: Scope,
    pub(crate) render: Render,
}

/// How a format renders an answer. Both fail if the format does not support that answer.
#[derive(Debug)]
pub(crate) enum Render {
    /// All of it in one string.
    Text(fn(&Answer<'_>, &Style) -> Result<String, RenderError>),
    /// Streamed, because it may be as large as a trace.
    Stream(fn(&Answer<'_>, &mut dyn Write) -> Result<(), RenderError>),
}

/// Generates the enum of formats from the registry.
macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident = $spec:path,)*) => {
        /// An output format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$doc])* $format,)*
        }

        impl Format {
            /// Every format, in the order of the registry.
            pub const ALL: &'static [Self] = &[$(Self::$format,)*];

            fn spec(self) -> &'static $crate::format::FormatSpec {
                match self {
                    $(Self::$format => &$spec,)*
                }
            }
        }
    };
}
pub(crate) use formats;

use crate::Format;

impl Format {
    /// The name on the command line: `markdown`.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// A short description; empty if the name is enough.
    pub fn about(self) -> &'static str {
        self.spec().about
    }

    /// File extensions without the leading dot; the default first.
    pub fn suffixes(self) -> &'static [&'static str] {
        self.spec().suffixes
    }

    /// Whether it supports every answer meant for people.
    pub fn is_general(self) -> bool {
        self.spec().scope == Scope::General
    }

    /// The formats that support only this kind of answer.
    pub fn only_for(kind: AnswerKind) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |format| format.spec().scope == Scope::Only(kind))
    }

    /// The format of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// The general format that matches the extension of this file name.
    ///
    /// ```
    /// use std::path::Path;
    /// use busbound_report::Format;
    /// assert_eq!(Format::of_path(Path::new("runs/a.html")), Some(Format::Html));
    /// assert_eq!(Format::of_path(Path::new("a.json.gz")), Some(Format::Json));
    /// assert_eq!(Format::of_path(Path::new("a.xlsx")), None);
    /// ```
    pub fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let ends = |suffix: &&str| name.strip_suffix(*suffix).is_some_and(|stem| stem.ends_with('.'));
        Self::ALL.iter().copied().find(|format| format.is_general() && format.suffixes().iter().any(ends))
    }

    pub(crate) fn write(
        self,
        answer: &Answer<'_>,
        style: &Style,
        out: &mut dyn Write,
    ) -> Result<(), RenderError> {
        match self.spec().render {
            Render::Text(render) => Ok(out.write_all(render(answer, style)?.as_bytes())?),
            Render::Stream(write) => write(answer, out),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for &format in Format::ALL {
            assert_eq!(Format::named(format.name()), Some(format));
        }
    }

    #[test]
    fn a_suffix_means_one_general_format() {
        let general: Vec<&str> =
            Format::ALL.iter().filter(|f| f.is_general()).flat_map(|f| f.suffixes()).copied().collect();
        for suffix in &general {
            assert_eq!(general.iter().filter(|other| *other == suffix).count(), 1, "{suffix}");
        }
    }
}
