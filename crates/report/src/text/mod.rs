//! What is said in words and rows, whatever the format: terminal and Markdown share it.

pub(crate) mod attribution;
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod diagnosis;
pub(crate) mod gate;
pub(crate) mod path;
pub(crate) mod plan;
pub(crate) mod survey;
pub(crate) mod topology;
pub(crate) mod whatif;

/// A table: titles, and rows of the same length. The first column is text, the rest are numbers.
pub(crate) struct Table {
    pub(crate) titles: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}
