//! Pages for a browser: one file each, nothing fetched, everything from a trace or a machine escaped.
//!
//! Words, cards and tables are in the HTML itself, so that they can be read without a script; what is drawn (timeline,
//! roofline, throughput, steps) the script under `web/` draws from the data that stands beside them.

mod compare;
pub(crate) mod curves;
mod data;
mod evidence;
mod filters;
mod prose;
mod run;

use askama::Template;
use busbound_diagnosis::{Diagnosis, Drawn};

pub use compare::comparison_as_html;
pub use prose::markdown_as_html;

use crate::markdown::fleet::together;
use crate::text::{Table, diagnosis as text};
use run::RunView;

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

fn page(title: &str, body: &str, has_script: bool) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let script_digest = if has_script { SCRIPT_DIGEST.trim() } else { "none" };
    rendered(&Page { title, version, css: CSS, script: SCRIPT, script_digest, has_script, body }) + "\n"
}

/// Templates render into memory, which does not fail.
fn rendered(template: &impl Template) -> String {
    template.render().unwrap_or_default()
}

/// What a page is asked for, which comes first on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    Verdict,
    Prediction,
}

/// A page being made: each run is put into it as it is read, so that one picture is held at a time.
#[derive(Debug)]
pub struct RunsPage {
    lead: Lead,
    runs: Vec<Diagnosis>,
    /// The numbers that the runs have in ids.
    numbers: Vec<usize>,
    titles: Vec<String>,
    body: String,
}

/// One run laid out, which may be done on any thread.
#[derive(Debug)]
pub struct RunSection {
    number: usize,
    title: String,
    html: String,
    diagnosis: Diagnosis,
}

impl RunSection {
    /// `number` tells it from the other runs of its page.
    pub fn of(drawn: Drawn, number: usize, lead: Lead) -> Self {
        let html = rendered(&RunView::of(&drawn, number, lead));
        Self { number, title: run::statement(&drawn, lead).to_owned(), html, diagnosis: drawn.diagnosis }
    }

    pub fn diagnosis(&self) -> &Diagnosis {
        &self.diagnosis
    }
}

impl RunsPage {
    pub fn new(lead: Lead) -> Self {
        Self { lead, runs: Vec::new(), numbers: Vec::new(), titles: Vec::new(), body: String::new() }
    }

    pub fn add(&mut self, drawn: Drawn) {
        self.add_section(RunSection::of(drawn, self.runs.len(), self.lead));
    }

    pub fn add_section(&mut self, section: RunSection) {
        self.body.push_str(&section.html);
        self.titles.push(section.title);
        self.numbers.push(section.number);
        self.runs.push(section.diagnosis);
    }

    /// The page of ranks, or of other runs: what there is to say of all of them comes first.
    pub fn finish_with(self, about: &crate::Runs<'_>) -> String {
        if about.is_one() {
            return self.finish();
        }
        let title = &about.fleet.map_or_else(|| text::overview(about.all), |fleet| fleet.statement.clone());
        let words = prose::article("together", &together(about));
        if self.runs.is_empty() {
            return page(title, &words, false);
        }
        let list = rendered(&Runs { overview: String::new(), together: true, links: self.links() });
        page(title, &(list + &words + &self.body), true)
    }

    fn links(&self) -> Vec<(usize, String)> {
        self.numbers.iter().copied().zip(self.runs.iter().map(|run| run.source.path.clone())).collect()
    }

    /// The page; of several runs one is shown at a time.
    pub fn finish(self) -> String {
        match self.titles.as_slice() {
            [one] => page(one, &self.body, true),
            several => {
                let overview = text::overview(&self.runs);
                let list = rendered(&Runs { overview, together: false, links: self.links() });
                page(&format!("{} runs", several.len()), &(list + &self.body), true)
            }
        }
    }
}

#[derive(Template)]
#[template(path = "runs.html")]
struct Runs {
    overview: String,
    /// Whether there is a part about all of them.
    together: bool,
    /// Number and path of each.
    links: Vec<(usize, String)>,
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
