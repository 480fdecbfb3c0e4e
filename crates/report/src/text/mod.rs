//! Sentences and tables that all formats share.

pub(crate) mod attribution;
pub(crate) mod bench;
pub(crate) mod bounds;
mod collectives;
pub(crate) mod compare;
pub(crate) mod compile_log;
pub(crate) mod copies;
pub(crate) mod diagnosis;
pub(crate) mod fleet;
pub(crate) mod flight_recorder;
pub(crate) mod gate;
pub(crate) mod history;
mod layers;
pub(crate) mod nccl_log;
pub(crate) mod path;
pub(crate) mod plan;
pub(crate) mod prize;
pub(crate) mod reference;
pub(crate) mod scatter;
pub(crate) mod step_time;
pub(crate) mod survey;
pub(crate) mod top;
pub(crate) mod topology;
pub(crate) mod trial;
pub(crate) mod whatif;
pub(crate) mod windows;

pub(crate) use busbound_diagnosis::quantity::plural;

/// Text with an uppercase first letter, for the start of a sentence.
pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// A table: titles, and rows of the same length. The first column is text, the rest are numbers.
pub(crate) struct Table {
    pub(crate) titles: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// Whether a column holds numbers, which are right-aligned: true unless it has text and no numbers.
pub(crate) fn is_numeric(rows: &[Vec<String>], column: usize) -> bool {
    let first = |cell: &String| cell.trim_start_matches(['+', '-', '×', ' ', '[']).chars().next();
    let firsts: Vec<char> = rows.iter().filter_map(|row| row.get(column)).filter_map(first).collect();
    firsts.iter().any(char::is_ascii_digit) || !firsts.iter().any(|c| c.is_alphabetic())
}
