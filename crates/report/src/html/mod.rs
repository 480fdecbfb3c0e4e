//! Pages for a browser: one file each, nothing fetched, everything from a trace or a machine escaped.
//!
//! Words, cards and tables are in the HTML itself, so that they can be read without a script; what is drawn (timeline,
//! roofline, throughput, steps) the script under `web/` draws from the data that stands beside them.

mod compare;
mod curves;
mod data;
mod escape;
mod evidence;
mod filters;
mod grid;
mod prose;
pub(crate) mod run;
pub(crate) mod section;

use askama::Template;
use busbound_diagnosis::Diagnosis;

use crate::Format;
use crate::answer::{Answer, DrawnComparison, Predictions};
use crate::error::RenderError;
use crate::format::{FormatSpec, Render, Scope};
use crate::markdown::document;
use crate::markdown::fleet::together;
use crate::runs::Runs;
use crate::text::diagnosis as text;
use compare::comparison_as_html;
use curves::bench_as_html;
use prose::markdown_as_html;
use run::Lead;
use section::RunSection;

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "html",
    suffixes: &["html", "htm"],
    about: "",
    scope: Scope::General,
    render: Render::Text(|answer, _| html(answer)),
};

/// A page that is drawn where there is something to draw, else one of words and tables.
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
        Answer::Advice(_) | Answer::Timeline(_) => Err(answer.not_available(Format::Html)),
        words => markdown_as_html(&title(words), &document(words)?),
    }
}

/// The title of a page of words.
fn title(answer: &Answer<'_>) -> String {
    match answer {
        Answer::Surveys(_) => "What is in the trace".to_owned(),
        Answer::Diagnoses([one]) => one.verdict.statement.clone(),
        Answer::Diagnoses(all) => text::overview(all),
        Answer::Drawn(drawn) => drawn.diagnosis.verdict.statement.clone(),
        Answer::Runs(runs) => title_of_several(runs),
        Answer::Comparison(drawn) => drawn.comparison.statement.clone(),
        Answer::Predictions(_) => "What the run would take".to_owned(),
        Answer::Gate(_) => "Does the run meet its bar?".to_owned(),
        Answer::Fleet(fleet) => fleet.statement.clone(),
        Answer::Rank(summary) => summary.path.clone(),
        Answer::Benchmark(bench) => bench.statement.clone(),
        Answer::Topology(_) => "What is this machine?".to_owned(),
        Answer::Snapshot(_) => "What is the bus doing?".to_owned(),
        Answer::Plan(_) => "The plan".to_owned(),
        Answer::Explanations([one, ..]) => one.title.clone(),
        Answer::Explanations([]) => String::new(),
        Answer::Advice(_) | Answer::Timeline(_) => String::new(),
    }
}

const CSS: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
/// What the page's policy knows the script by.
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
    /// HTML; whoever makes it has escaped what is in it.
    body: &'a str,
}

fn page(title: &str, body: &str, has_script: bool) -> Result<String, RenderError> {
    let version = env!("CARGO_PKG_VERSION");
    let script_digest = if has_script { SCRIPT_DIGEST.trim() } else { "none" };
    let page = Page { title, version, css: CSS, script: SCRIPT, script_digest, has_script, body };
    Ok(page.render()? + "\n")
}

/// The page of these runs; of several one is shown at a time.
fn page_of_runs(sections: &[&RunSection]) -> Result<String, RenderError> {
    let body: String = sections.iter().map(|section| section.html.as_str()).collect();
    if let [one] = sections {
        return page(&one.title, &body, true);
    }
    let runs: Vec<Diagnosis> = sections.iter().map(|section| section.diagnosis.clone()).collect();
    let links = sections.iter().map(|section| section.link()).collect();
    let list = RunList { overview: text::overview(&runs), together: false, links }.render()?;
    page(&format!("{} runs", sections.len()), &(list + &body), true)
}

/// The page of ranks, or of other runs: what there is to say of all of them comes first.
fn page_of_several(about: &Runs<'_>) -> Result<String, RenderError> {
    // By their place in the list: their numbers are those of the files, of which some may be unreadable.
    let shown = about.sections.iter().enumerate().filter(|(place, _)| about.tells(*place));
    let shown: Vec<&RunSection> = shown.map(|(_, section)| section).collect();
    if about.is_one() {
        return page_of_runs(&shown);
    }
    let title = title_of_several(about);
    let words = prose::article("together", &together(about));
    if shown.is_empty() {
        return page(&title, &words, false);
    }
    let links = shown.iter().map(|section| section.link()).collect();
    let list = RunList { overview: String::new(), together: true, links }.render()?;
    let body: String = shown.iter().map(|section| section.html.as_str()).collect();
    page(&title, &(list + &words + &body), true)
}

fn title_of_several(about: &Runs<'_>) -> String {
    about.fleet.map_or_else(|| text::overview(about.all), |fleet| fleet.statement.clone())
}

#[derive(Template)]
#[template(path = "runs.html")]
struct RunList {
    overview: String,
    /// Whether there is a part about all of them.
    together: bool,
    /// Number and path of each.
    links: Vec<(usize, String)>,
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    /// What a template shows of it cannot be written.
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

    /// It used to become an empty page.
    #[test]
    fn a_template_that_fails_is_an_error_and_no_empty_page() {
        let result: Result<String, RenderError> = Failing { what: Unwritable }.render().map_err(Into::into);
        assert!(matches!(result, Err(RenderError::Template(_))), "{result:?}");
    }
}
