//! Showing it: one file per format. What a person reads in one format is in all of them.

mod json;
mod markdown;
mod survey_text;
mod terminal;

pub use json::surveys_as_json;
pub use markdown::surveys_as_markdown;
pub use terminal::surveys_as_terminal;
