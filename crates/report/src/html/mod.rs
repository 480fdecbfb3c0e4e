//! Pages for a browser: one file each, nothing fetched, everything from a trace or a machine escaped.
//!
//! Text, cards and tables are in the HTML, so they are readable without JavaScript. The script under `web/` draws the
//! charts (timeline, roofline, throughput, steps) from data that is embedded in the page. Bars need no script.

mod bar;
pub(crate) mod card;
mod colors;
mod compare;
mod curves;
mod data;
mod escape;
mod filters;
mod grid;
mod lanes;
mod overview;
mod prose;
mod ranks;
pub(crate) mod run;
pub(crate) mod section;
mod sections;
mod topology;

use askama::Template;
use busbound_diagnosis::Diagnosis;

use crate::Format;
use crate::answer::{Answer, DrawnComparison, Predictions};
use crate::error::RenderError;
use crate::format::{FormatSpec, Render, Scope};
use crate::markdown::document;
use crate::runs::Runs;
use crate::text::diagnosis as text;
use compare::comparison_as_html;
use curves::bench_as_html;
use prose::markdown_as_html;
use run::Lead;
use section::RunSection;
use topology::topology_as_html;

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "html",
    suffixes: &["html", "htm"],
    about: "",
    scope: Scope::General,
    render: Render::Text(|answer, _| html(answer)),
};

/// A page with charts if there is something to draw, otherwise one of text and tables.
fn html(answer: &Answer<'_>) -> Result<String, RenderError> {
    match answer {
        Answer::Drawn(drawn) => page_of_runs(&[&RunSection::of(drawn, 0, Lead::Verdict)?]),
        Answer::Runs(runs) if !runs.sections.is_empty() => page_of_several(runs),
        Answer::Comparison(DrawnComparison { comparison, runs }) if !runs.is_empty() => {
            comparison_as_html(comparison, runs)
        }
        Answer::Predictions(Predictions { sections, .. }) if !sections.is_empty() => {
            page_of_runs(&sections.iter().collect::<Vec<_>>())
        }
        Answer::Benchmark(bench) => bench_as_html(bench),
        Answer::Topology(topology) => topology_as_html(topology),
        Answer::Fleet(fleet) => page(&fleet.statement, &overview::fleet_article(fleet)?, true),
        Answer::Advice(_) | Answer::Timeline(_) => Err(answer.not_available(Format::Html)),
        words => markdown_as_html(&title(words), &document(words)?),
    }
}

/// The title of a page without charts.
fn title(answer: &Answer<'_>) -> String {
    match answer {
        Answer::Surveys(_) => "What is in the trace".to_owned(),
        Answer::Diagnoses([one]) => titled(&one.source.path, &one.verdict.statement),
        Answer::Diagnoses(all) => text::overview(all),
        Answer::Drawn(drawn) => titled(&drawn.diagnosis.source.path, &drawn.diagnosis.verdict.statement),
        Answer::Runs(runs) => title_of_several(runs),
        Answer::Comparison(drawn) => drawn.comparison.statement.clone(),
        Answer::Predictions(_) => "Predicted step times".to_owned(),
        Answer::Gate(_) => "Does the run pass the gate?".to_owned(),
        Answer::Fleet(fleet) => fleet.statement.clone(),
        Answer::Rank(summary) => summary.path.clone(),
        Answer::History(history) => crate::text::history::statement(history),
        Answer::Benchmark(bench) => bench.statement.clone(),
        Answer::Topology(_) => "How are the GPUs connected?".to_owned(),
        Answer::NcclLog(_) => "How did NCCL connect the ranks?".to_owned(),
        Answer::CompileLog(_) => "Where does torch.compile break graphs and recompile?".to_owned(),
        Answer::FlightRecorder(_) => "Which collectives did not finish?".to_owned(),
        Answer::Trial(trial) => crate::text::trial::statement(trial),
        Answer::Snapshot(_) => "What is the bus doing?".to_owned(),
        Answer::Plan(_) => "Estimate".to_owned(),
        Answer::Reference(_) => "Links and GPUs".to_owned(),
        Answer::Explanations([one, ..]) => one.title.clone(),
        Answer::Explanations([]) => String::new(),
        Answer::Advice(_) | Answer::Timeline(_) => String::new(),
    }
}

/// The title of a page about one file.
fn titled(path: &str, statement: &str) -> String {
    format!("{}: {statement}", run::file_name(path))
}

const CSS: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
/// The digest that the page's content security policy allows.
const SCRIPT_DIGEST: &str = include_str!("../../assets/report.js.sha256");

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    title: &'a str,
    version: &'static str,
    css: &'static str,
    script: &'static str,
    script_digest: &'static str,
    has_script: bool,
    /// HTML, already escaped by the caller.
    body: &'a str,
}

fn page(title: &str, body: &str, has_script: bool) -> Result<String, RenderError> {
    let version = env!("CARGO_PKG_VERSION");
    let script_digest = if has_script { SCRIPT_DIGEST.trim() } else { "none" };
    let page = Page { title, version, css: CSS, script: SCRIPT, script_digest, has_script, body };
    Ok(page.render()? + "\n")
}

/// The page of these runs; several are shown one at a time.
fn page_of_runs(sections: &[&RunSection]) -> Result<String, RenderError> {
    let body: String = sections.iter().map(|section| section.html.as_str()).collect();
    if let [one] = sections {
        return page(&one.title, &body, true);
    }
    let runs: Vec<Diagnosis> = sections.iter().map(|section| section.diagnosis.clone()).collect();
    let links = links(sections);
    let list = RunList { overview: text::overview(&runs), has_summary: false, links }.render()?;
    page(&format!("{} runs", sections.len()), &(list + &body), true)
}

/// The page of several runs or ranks, with their summary first.
fn page_of_several(about: &Runs<'_>) -> Result<String, RenderError> {
    // By index into the list: section numbers count all files, and some may be unreadable.
    let shown = about.sections.iter().enumerate().filter(|(index, _)| about.is_detailed(*index));
    let shown: Vec<&RunSection> = shown.map(|(_, section)| section).collect();
    if about.is_one() {
        return page_of_runs(&shown);
    }
    let title = title_of_several(about);
    let overview = overview::overview(about, &shown)?;
    if shown.is_empty() {
        return page(&title, &overview, true);
    }
    let links = links(&shown);
    let list = RunList { overview: String::new(), has_summary: true, links }.render()?;
    let body: String = shown.iter().map(|section| section.html.as_str()).collect();
    page(&title, &(list + &overview + &body), true)
}

/// The number and the short name of each run.
fn links(sections: &[&RunSection]) -> Vec<(usize, String)> {
    let paths: Vec<&str> = sections.iter().map(|section| section.diagnosis.source.path.as_str()).collect();
    sections.iter().map(|section| section.number).zip(overview::short_names(&paths)).collect()
}

fn title_of_several(about: &Runs<'_>) -> String {
    about.fleet.map_or_else(|| text::overview(about.all), |fleet| fleet.statement.clone())
}

#[derive(Template)]
#[template(path = "runs.html")]
struct RunList {
    overview: String,
    /// Whether the page begins with a summary of all runs.
    has_summary: bool,
    /// Number and short name of each.
    links: Vec<(usize, String)>,
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    /// A value whose `Display` always fails.
    struct Unwritable;

    impl fmt::Display for Unwritable {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            Err(fmt::Error)
        }
    }

    #[derive(Template)]
    #[template(source = "{{ what }}", ext = "html")]
    struct Failing {
        what: Unwritable,
    }

    /// Such a failure used to produce an empty page.
    #[test]
    fn a_failing_template_is_an_error_not_an_empty_page() {
        let result: Result<String, RenderError> = Failing { what: Unwritable }.render().map_err(Into::into);
        assert!(matches!(result, Err(RenderError::Template(_))), "{result:?}");
    }
}
