//! Text for the terminal, styled unless [`Style::color`] is off.

mod answer;
mod bar;
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod compile_log;
#[cfg(feature = "dashboard")]
pub(crate) mod dashboard;
pub(crate) mod diagnosis;
mod explain;
pub(crate) mod fleet;
pub(crate) mod flight_recorder;
pub(crate) mod gate;
mod history;
pub(crate) mod nccl_log;
#[cfg(feature = "dashboard")]
pub(crate) mod overlay;
pub(crate) mod plan;
pub(crate) mod survey;
mod table;
pub(crate) mod top;
pub(crate) mod topology;
pub(crate) mod trial;
pub(crate) mod watch;
pub(crate) mod whatif;
mod wrap;

use self::table::rows;
use self::wrap::hanging;
use crate::answer::Answer;
use crate::error::RenderError;
use crate::format::{FormatSpec, Render, Scope, Style};
use crate::json::rank_as_json;
use crate::text::{Table, capitalized};
use crate::{Format, Predictions};

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "terminal",
    suffixes: &["txt"],
    about: "",
    scope: Scope::General,
    render: Render::Text(text),
};

const STRONG: anstyle::Style = anstyle::Style::new().bold();
const FAINT: anstyle::Style = anstyle::Style::new().dimmed();

fn text(answer: &Answer<'_>, style: &Style) -> Result<String, RenderError> {
    let width = style.width;
    let text = match answer {
        Answer::Surveys(all) => survey::surveys_as_terminal(all, width),
        Answer::Diagnoses(all) => diagnosis::diagnoses_as_terminal(all, style),
        Answer::Drawn(drawn) => {
            diagnosis::diagnoses_as_terminal(std::slice::from_ref(&drawn.diagnosis), style)
        }
        Answer::Runs(runs) => fleet::runs_as_terminal(runs, style),
        Answer::Comparison(drawn) => compare::comparison_as_terminal(drawn.comparison, style),
        Answer::Predictions(Predictions { answers, .. }) => whatif::whatif_as_terminal(answers, width),
        Answer::Gate(gate) => gate::gate_as_terminal(gate, width),
        Answer::Fleet(answer) => fleet::fleet_as_terminal(answer, style),
        // A summary is input for a later merge, not for reading.
        Answer::Rank(summary) => rank_as_json(summary)?,
        Answer::History(history) => history::history_as_terminal(history, width),
        Answer::Benchmark(bench) => bench::bench_as_terminal(bench, width),
        Answer::Topology(topology) => topology::topology_as_terminal(topology, width),
        Answer::NcclLog(log) => nccl_log::nccl_log_as_terminal(log, width),
        Answer::CompileLog(log) => compile_log::compile_log_as_terminal(log, width),
        Answer::FlightRecorder(read) => flight_recorder::flight_recorder_as_terminal(read, width),
        Answer::Trial(trial) => trial::trial_as_terminal(trial, width),
        Answer::Snapshot(snapshot) => top::top_as_terminal(snapshot, width),
        Answer::Plan(answer) => plan::plan_as_terminal(&crate::text::plan::plan(answer), width),
        Answer::Reference(list) => plan::plan_as_terminal(&crate::text::reference::text(list), width),
        Answer::Explanations(all) => explain::explanations_as_terminal(all, width),
        Answer::Advice(_) | Answer::Timeline(_) => {
            return Err(answer.not_available(Format::Terminal));
        }
    };
    Ok(if style.color { text } else { without_styles(&text) })
}

/// The text without its styles. It contains no other escape sequences: names from a trace are already stripped.
fn without_styles(styled: &str) -> String {
    let mut plain = String::with_capacity(styled.len());
    let mut rest = styled;
    while let Some((before, escape)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = escape.split_once('m').map_or("", |(_, after)| after);
    }
    plain + rest
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// The main statement: bold, followed by an empty line.
fn headline(out: &mut String, text: &str, width: u16) {
    let mut lines = String::new();
    hanging(&mut lines, "", text, width);
    line(out, &format!("{STRONG}{}{STRONG:#}\n", lines.trim_end()));
}

fn columns(out: &mut String, table: &Table, width: u16) {
    rows(out, &table.titles, &table.rows, width);
}
