//! For programs: one object, or `runs` for several inputs.

use busbound_diagnosis::{SURVEY_SCHEMA, Survey};
use serde::Serialize;

#[derive(Serialize)]
struct Several<'a> {
    schema: &'static str,
    runs: &'a [Survey],
}

/// The survey of one input as one object; of several as `{"schema": …, "runs": […]}`.
///
/// # Errors
/// None in practice: the structure holds nothing that JSON cannot.
pub fn surveys_as_json(surveys: &[Survey]) -> serde_json::Result<String> {
    let mut text = match surveys {
        [one] => serde_json::to_string_pretty(one)?,
        several => serde_json::to_string_pretty(&Several { schema: SURVEY_SCHEMA, runs: several })?,
    };
    text.push('\n');
    Ok(text)
}
