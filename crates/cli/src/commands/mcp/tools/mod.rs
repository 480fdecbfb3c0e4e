//! The tools, and what they share. Each tool is one file with a `TOOL`; this file is their registry.

mod compare;
mod diagnose;
mod explain;
mod plan;
mod runs;
mod survey;
mod whatif;

use std::panic::{AssertUnwindSafe, catch_unwind};

use busbound::{Report, Style};
use serde_json::Value;

use super::fields::{Arguments, Field};
use super::roots::Roots;
use super::stop::Stop;

/// In the order in which an agent needs them.
pub(super) const TOOLS: [&Tool; 6] =
    [&survey::TOOL, &diagnose::TOOL, &whatif::TOOL, &compare::TOOL, &explain::TOOL, &plan::TOOL];

/// A tool. All of them only read.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    pub(super) fields: fn() -> Vec<Field>,
    pub(super) call: fn(&Asked<'_>) -> Result<ToolAnswer, String>,
}

/// One call.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) roots: &'a Roots,
    pub(super) stop: &'a Stop,
    pub(super) arguments: Arguments,
}

/// What a tool answers.
#[derive(Debug)]
pub(super) struct ToolAnswer {
    /// What the command prints.
    pub(super) text: String,
    /// The members of the structured result, the most important first.
    pub(super) parts: Vec<(&'static str, Value)>,
}

/// Runs a tool; a bug in the analysis is an error of this call, and not the end of the server.
pub(super) fn guarded(call: impl FnOnce() -> Result<ToolAnswer, String>) -> Result<ToolAnswer, String> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let why = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no reason given");
        Err(format!("this is a bug in busbound, please report it: {why}"))
    })
}

/// What the command prints for this answer.
fn text_of(report: &dyn Report) -> Result<String, String> {
    let style = Style { width: 100, color: false, verbose: false };
    report.render(busbound::Format::Terminal, &style).map_err(|error| error.to_string())
}

/// The answer as in the command's JSON.
fn json_of(report: &dyn Report) -> Result<Value, String> {
    let text = report.render(busbound::Format::Json, &Style::default()).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Takes these members of an object, in this order; without those that it does not have.
fn members(object: &mut Value, names: &[&'static str]) -> Vec<(&'static str, Value)> {
    let take = |name: &&'static str| Some((*name, object.get_mut(*name)?.take()));
    names.iter().filter_map(take).filter(|(_, value)| !is_empty(value)).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(object) => object.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_of_the_call() {
        let why = guarded(|| panic!("index 3 of 2")).unwrap_err();
        assert_eq!(why, "this is a bug in busbound, please report it: index 3 of 2");
    }

    #[test]
    fn every_tool_is_named_once_and_says_what_it_does() {
        let mut names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TOOLS.len());
        for tool in TOOLS {
            assert!(tool.about.ends_with('.') && !tool.title.ends_with('.'), "{}", tool.name);
            for field in (tool.fields)() {
                assert!(!field.about.is_empty(), "{}: {}", tool.name, field.name);
            }
        }
    }
}
