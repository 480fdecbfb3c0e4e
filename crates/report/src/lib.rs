//! Showing it: one folder or file per format. What a person reads in one format is in all of them.

mod json;
mod markdown;
mod terminal;
mod text;

pub use json::{comparison_as_json, diagnoses_as_json, surveys_as_json};
pub use markdown::compare::comparison_as_markdown;
pub use markdown::diagnosis::diagnoses_as_markdown;
pub use markdown::survey::surveys_as_markdown;
pub use terminal::compare::comparison_as_terminal;
pub use terminal::diagnosis::diagnoses_as_terminal;
pub use terminal::survey::surveys_as_terminal;
