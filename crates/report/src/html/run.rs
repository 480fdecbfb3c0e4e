//! One run on a page: the answer, its sections, and chart data in a block for the script.

use askama::Template;
use busbound_diagnosis::{Diagnosis, Drawn};

use super::bar::{self, Bar};
use super::data::{Labels, PredictedStep, encoded};
use super::filters;
use super::sections::{Context, Shown, shown};
use crate::error::RenderError;
use crate::text::{diagnosis as text, path, prize};

/// What a page leads with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    Verdict,
    Prediction,
}

/// Everything the page shows of one run.
#[derive(Template)]
#[template(path = "run.html")]
pub(super) struct RunView {
    /// The run's number on the page, for HTML ids.
    number: usize,
    statement: String,
    /// The id of the verdict's explanation.
    verdict: &'static str,
    path: String,
    facts: Vec<String>,
    bar: Bar,
    sections: Vec<Shown>,
    /// Chart data for the script.
    data: String,
}

impl RunView {
    pub(super) fn of(drawn: &Drawn, number: usize, lead: Lead) -> Result<Self, RenderError> {
        let diagnosis = &drawn.diagnosis;
        let mut facts = Vec::new();
        if lead == Lead::Prediction {
            facts.push(diagnosis.verdict.statement.clone());
        }
        facts.push(text::step(diagnosis));
        facts.extend(text::links(diagnosis));
        facts.extend(path::launching(diagnosis));
        facts.extend(path::path(diagnosis).map(|path| format!("critical path: {path}")));
        Ok(Self {
            number,
            statement: statement(drawn, lead),
            verdict: diagnosis.verdict.bound.id(),
            path: diagnosis.source.path.clone(),
            facts,
            bar: bar::of(diagnosis),
            sections: shown(&Context { drawn, number })?,
            data: encoded(&drawn.picture, &labels(drawn, &diagnosis.source.path)),
        })
    }
}

/// The first sentence.
pub(super) fn statement(drawn: &Drawn, lead: Lead) -> String {
    match (lead, &drawn.whatif) {
        (Lead::Prediction, Ok(answer)) => answer.statement.clone(),
        _ => prize::headline(&drawn.diagnosis),
    }
}

/// The name of the file, without its folders.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// What the script needs in addition to the picture.
pub(super) fn labels<'a>(drawn: &'a Drawn, label: &'a str) -> Labels<'a> {
    let diagnosis: &Diagnosis = &drawn.diagnosis;
    let gpu = diagnosis.machine.gpus.first();
    // The picture shows the first scenario.
    let first = drawn.whatif.as_ref().ok().and_then(|answer| Some((answer, answer.scenarios.first()?)));
    Labels {
        run: label,
        unit: diagnosis.unit().as_str(),
        link: gpu.map_or("", |gpu| gpu.link.name.as_str()),
        peak_gbps: gpu.map_or(0.0, |gpu| gpu.link.peak_gbps),
        findings: diagnosis.findings.iter().map(|finding| finding.title.as_str()).collect(),
        predicted: first.map(|(answer, first)| PredictedStep {
            change: first.apply.join(" + "),
            before_ms: answer.recorded_ms,
            after_ms: first.step_ms,
        }),
    }
}

#[test]
fn a_file_name_is_the_last_part_of_a_path() {
    assert_eq!(file_name("/runs/a/rank0.json.gz"), "rank0.json.gz");
    assert_eq!(file_name("C:\\runs\\rank0.json"), "rank0.json");
    assert_eq!(file_name("runs/"), "runs/");
}
