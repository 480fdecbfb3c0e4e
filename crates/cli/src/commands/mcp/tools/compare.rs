//! What changed between two runs?

use busbound::{Diagnosis, compare};
use serde_json::{Value, json};

use super::super::fields::Field;
use super::runs::{analysis_fields, paths_field};
use super::{Asked, Tool, ToolAnswer, json_of, members, text_of};

pub(super) const TOOL: Tool = Tool {
    name: "compare",
    title: "Show what changed between runs",
    about: "Compares two or more runs: how the step time changed and which parts of the step explain it, which findings are gone \
            and which are new. Use it after a change, with the trace from before first.",
    fields,
    call,
};

/// In the order of importance.
const MEMBERS: [&str; 10] = [
    "statement",
    "change",
    "runs",
    "gone",
    "appeared",
    "stayed",
    "limitations",
    "figures",
    "stages",
    "sweep",
];

fn fields() -> Vec<Field> {
    let about = "Two or more trace files, in order: before, after. No directories: one file is one run.";
    let mut fields = vec![paths_field(2, about)];
    fields.extend(analysis_fields());
    fields
}

fn call(asked: &Asked<'_>) -> Result<ToolAnswer, String> {
    let (machine, options) = (asked.machine()?, asked.options()?);
    let mut runs: Vec<Diagnosis> = Vec::new();
    let unread = asked.each_run(|run| runs.push(run.diagnose(&machine, &options)))?;
    // Without one of the runs, the wrong ones would be compared.
    if let Some(one) = unread.first() {
        return Err(format!("nothing is compared, because not every run could be read: {}", one.why));
    }
    let given = asked.arguments.texts("paths").len();
    if runs.len() != given {
        return Err(format!("compare takes one file per run: {given} paths stand for {} files", runs.len()));
    }
    let comparison = compare(&runs, None);
    let mut parts = members(&mut json_of(&comparison)?, &MEMBERS);
    if comparison.change.is_none() {
        let reasons: Vec<&str> = std::iter::once(comparison.statement.as_str())
            .chain(comparison.limitations.iter().map(String::as_str))
            .collect();
        parts.insert(1, ("inconclusive", json!({ "reasons": reasons })));
    } else {
        parts.insert(1, ("inconclusive", Value::Null));
    }
    Ok(ToolAnswer { text: text_of(&comparison)?, parts })
}
