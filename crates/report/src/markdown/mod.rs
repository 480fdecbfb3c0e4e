//! For tickets and pull requests.

pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod compile_log;
pub(crate) mod diagnosis;
mod escape;
mod explain;
pub(crate) mod fleet;
pub(crate) mod flight_recorder;
pub(crate) mod gate;
mod history;
pub(crate) mod nccl_log;
pub(crate) mod plan;
pub(crate) mod survey;
pub(crate) mod top;
pub(crate) mod topology;
pub(crate) mod trial;
pub(crate) mod whatif;

use std::fmt::Write;

use self::escape::{cell, code, inline};
use crate::answer::Answer;
use crate::error::RenderError;
use crate::format::{FormatSpec, Render, Scope};
use crate::json::rank_as_json;
use crate::text::{self, Table, capitalized, is_numeric};
use crate::{Format, Predictions};

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "markdown",
    suffixes: &["md", "markdown"],
    about: "",
    scope: Scope::General,
    render: Render::Text(|answer, _| document(answer)),
};

/// The answer as one document; pages without charts are made from it too.
pub(crate) fn document(answer: &Answer<'_>) -> Result<String, RenderError> {
    Ok(match answer {
        Answer::Surveys(all) => survey::surveys_as_markdown(all),
        Answer::Diagnoses(all) => diagnosis::diagnoses_as_markdown(all),
        Answer::Drawn(drawn) => diagnosis::diagnoses_as_markdown(std::slice::from_ref(&drawn.diagnosis)),
        Answer::Runs(runs) => fleet::runs_as_markdown(runs),
        Answer::Comparison(drawn) => compare::comparison_as_markdown(drawn.comparison),
        Answer::Predictions(Predictions { answers, .. }) => whatif::whatif_as_markdown(answers),
        Answer::Gate(gate) => gate::gate_as_markdown(gate),
        Answer::Fleet(answer) => fleet::fleet_as_markdown(answer),
        Answer::History(history) => history::history_as_markdown(history),
        Answer::Rank(summary) => format!("```json\n{}```\n", rank_as_json(summary)?),
        Answer::Benchmark(bench) => bench::bench_as_markdown(bench),
        Answer::Topology(topology) => topology::topology_as_markdown(topology),
        Answer::NcclLog(log) => nccl_log::nccl_log_as_markdown(log),
        Answer::CompileLog(log) => compile_log::compile_log_as_markdown(log),
        Answer::FlightRecorder(read) => flight_recorder::flight_recorder_as_markdown(read),
        Answer::Trial(trial) => trial::trial_as_markdown(trial),
        Answer::Snapshot(snapshot) => top::top_as_markdown(snapshot),
        Answer::Plan(answer) => plan::plan_as_markdown(&text::plan::plan(answer)),
        Answer::Reference(list) => plan::plan_as_markdown(&text::reference::text(list)),
        Answer::Explanations(all) => explain::explanations_as_markdown(all),
        Answer::Advice(_) | Answer::Timeline(_) => {
            return Err(answer.not_available(Format::Markdown));
        }
    })
}

/// The main statement.
fn headline(out: &mut String, text: &str) {
    let _ = writeln!(out, "**{}**\n", inline(text));
}

/// One item of a list.
fn item(out: &mut String, text: &str) {
    let _ = writeln!(out, "- {}", inline(text));
}

/// A paragraph, with an empty line before it.
fn paragraph(out: &mut String, text: &str) {
    let _ = writeln!(out, "\n{}", inline(text));
}

/// A table, with an empty line before it so that it is not part of the paragraph above.
fn grid(out: &mut String, table: &Table) {
    rows(out, &table.titles, &table.rows);
}

fn rows(out: &mut String, titles: &[impl AsRef<str>], rows: &[Vec<String>]) {
    let titles: Vec<String> = titles.iter().map(|title| cell(title.as_ref())).collect();
    let sides = (0..titles.len()).map(|i| if i > 0 && is_numeric(rows, i) { "---:|" } else { "---|" });
    let _ = writeln!(out, "\n| {} |", titles.join(" | "));
    let _ = writeln!(out, "|{}", sides.collect::<String>());
    for row in rows {
        // Leading spaces are the depth of a block in a tree, but Markdown drops them in a cell.
        let name = |text: &String| {
            let depth = (text.len() - text.trim_start().len()) / 2;
            format!("{}{}", "&emsp;".repeat(depth), cell(text.trim_start()))
        };
        let mut cells: Vec<String> = row.iter().map(name).collect();
        // Some readers need as many cells as titles in every row.
        cells.resize(titles.len(), String::new());
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}
