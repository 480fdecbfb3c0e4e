//! Pages for a browser: one file each, nothing fetched, everything from a trace or a machine escaped.
//!
//! Words, cards and tables are in the HTML itself, so that they can be read without a script; what is drawn (timeline,
//! roofline, throughput, steps) the script under `web/` draws from the data that stands beside them.

mod compare;
pub(crate) mod curves;
mod encode;
mod evidence;
mod filters;
mod prose;
mod run;

use askama::Template;
use busbound_diagnosis::Drawn;

pub use compare::comparison_as_html;
pub use prose::markdown_as_html;

use crate::text::{Table, diagnosis as text};
use run::{Lead, RunView};

const CSS: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    title: &'a str,
    version: &'static str,
    css: &'static str,
    script: &'static str,
    has_script: bool,
    /// HTML; whoever makes it has escaped what is in it.
    body: &'a str,
}

fn page(title: &str, body: &str, has_script: bool) -> String {
    let version = env!("CARGO_PKG_VERSION");
    rendered(&Page { title, version, css: CSS, script: SCRIPT, has_script, body }) + "\n"
}

/// Templates render into memory, which does not fail.
fn rendered(template: &impl Template) -> String {
    template.render().unwrap_or_default()
}

/// The diagnoses as one page; of several runs one is shown at a time.
pub fn diagnoses_as_html(all: &[Drawn]) -> String {
    runs_as_html(all, Lead::Verdict)
}

/// As [`diagnoses_as_html`], with what is predicted first.
pub fn predictions_as_html(all: &[Drawn]) -> String {
    runs_as_html(all, Lead::Prediction)
}

fn runs_as_html(all: &[Drawn], lead: Lead) -> String {
    let mut body = String::new();
    if all.len() > 1 {
        let diagnoses: Vec<_> = all.iter().map(|drawn| drawn.diagnosis.clone()).collect();
        body.push_str(&rendered(&Runs {
            overview: text::overview(&diagnoses),
            paths: diagnoses.iter().map(|diagnosis| diagnosis.source.path.clone()).collect(),
        }));
    }
    for (number, drawn) in all.iter().enumerate() {
        body.push_str(&rendered(&RunView::of(drawn, number, lead)));
    }
    let title = match all {
        [one] => run::statement(one, lead).to_owned(),
        several => format!("{} runs", several.len()),
    };
    page(&title, &body, true)
}

#[derive(Template)]
#[template(path = "runs.html")]
struct Runs {
    overview: String,
    paths: Vec<String>,
}

/// Rows under titles, as `table.html` lays them out.
struct Grid {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl From<Table> for Grid {
    fn from(table: Table) -> Self {
        Self { titles: table.titles.into_iter().map(str::to_owned).collect(), rows: table.rows }
    }
}

/// Text as it may stand in HTML and SVG.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Colours that stay apart for colour-blind readers (Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#7f7f7f", "#f0e442"];
