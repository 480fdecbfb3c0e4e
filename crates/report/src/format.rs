//! Which output formats are there? The registry itself is in lib.rs: one line for each.

use std::fmt;
use std::io::Write;
use std::path::Path;

use crate::answer::Answer;
use crate::error::RenderError;
use crate::kind::AnswerKind;

/// How an answer is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of a terminal. Other formats have none.
    pub width: u16,
    /// Whether text for a terminal carries bold and dim escape sequences.
    pub color: bool,
    /// Whether a terminal gets all tables and notes, not only the short answer.
    pub verbose: bool,
}

impl Style {
    /// Without a terminal there is no width to ask for; 80 columns fit into tickets and terminals.
    pub const USUAL_WIDTH: u16 = 80;
}

impl Default for Style {
    fn default() -> Self {
        Self { width: Self::USUAL_WIDTH, color: false, verbose: false }
    }
}

/// Which answers a format is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every answer that people read.
    General,
    /// One kind alone.
    Only(AnswerKind),
}

/// One output format: declared by the file that writes it, registered in lib.rs.
#[derive(Debug)]
pub(crate) struct FormatSpec {
    pub(crate) name: &'static str,
    /// How files of this format end, without the leading dot; the usual one first.
    pub(crate) suffixes: &'static [&'static str],
    /// A few words for a list of choices; empty where the name says it.
    pub(crate) about: &'static str,
    pub(crate) scope: Scope,
    pub(crate) render: Render,
}

/// How a format is made of an answer; either fails where the format is not made for that answer.
#[derive(Debug)]
pub(crate) enum Render {
    /// At once.
    Text(fn(&Answer<'_>, &Style) -> Result<String, RenderError>),
    /// Piece by piece, because it may be as large as a trace.
    Stream(fn(&Answer<'_>, &mut dyn Write) -> Result<(), RenderError>),
}

/// Makes the enum of formats from the registry.
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

    /// A few words about it; empty where the name says it.
    pub fn about(self) -> &'static str {
        self.spec().about
    }

    /// How files of this format end, without the leading dot; the usual one first.
    pub fn suffixes(self) -> &'static [&'static str] {
        self.spec().suffixes
    }

    /// Whether every answer that people read can be written this way.
    pub fn is_general(self) -> bool {
        self.spec().scope == Scope::General
    }

    /// The formats made for one kind of answer alone.
    pub fn only_for(kind: AnswerKind) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |format| format.spec().scope == Scope::Only(kind))
    }

    /// The format of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// The general format that a file of this name has, by its end.
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
