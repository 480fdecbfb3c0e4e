//! A result of busbound and its output formats.

use std::path::PathBuf;
use std::sync::Arc;

use busbound::diagnosis::Labels;
use busbound::fleet::{Fleet, FleetAnswer, History, RankSummary, SavedError, Unread};
use busbound::report::card;
use busbound::{Comparison, Diagnosis, Format, Report, Style, Survey, WhatIf};
use pyo3::prelude::*;

use crate::arguments::wiring_of;
use crate::attend::attend;
use crate::failure::{Family, bad_option, failed};

#[derive(Debug)]
pub(crate) enum Content {
    /// Boxed, as `Rank` is, because they are the largest.
    Diagnosis(Box<Diagnosis>),
    Survey(Survey),
    Comparison(Comparison),
    WhatIf(WhatIf),
    Rank(Box<RankSummary>),
    Fleet(FleetAnswer),
    History(History),
}

/// A diagnosis, a survey, a comparison, a prediction, the summary of a rank, merged ranks or their history.
#[pyclass(frozen, module = "busbound._native")]
#[derive(Debug)]
pub(crate) struct Answer {
    content: Arc<Content>,
}

impl Answer {
    pub(crate) fn of(content: Content) -> Self {
        Self { content: Arc::new(content) }
    }
}

impl Content {
    fn report(&self) -> &dyn Report {
        match self {
            Self::Diagnosis(diagnosis) => &**diagnosis,
            Self::Survey(survey) => survey,
            Self::Comparison(comparison) => comparison,
            Self::WhatIf(whatif) => whatif,
            Self::Rank(summary) => &**summary,
            Self::Fleet(answer) => answer,
            Self::History(history) => history,
        }
    }
}

#[pymethods]
impl Answer {
    /// The output of the command with --format json.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        let content = Arc::clone(&self.content);
        let text = attend(py, move |_| content.report().render(Format::Json, &Style::default()))?;
        text.map_err(failed)
    }

    /// The output of the command on a terminal with this many columns, without colors.
    fn text(&self, width: u16) -> PyResult<String> {
        let style = Style { width, color: false, verbose: false };
        self.content.report().render(Format::Terminal, &style).map_err(failed)
    }

    /// The same as Markdown.
    fn markdown(&self) -> PyResult<String> {
        self.content.report().render(Format::Markdown, &Style::default()).map_err(failed)
    }

    /// The same as a page of text and tables; `Trace.page` also draws the timeline.
    fn html(&self) -> PyResult<String> {
        self.content.report().render(Format::Html, &Style::default()).map_err(failed)
    }

    /// A diagnosis as a card for notebooks; `None` for other answers.
    fn card(&self) -> PyResult<Option<String>> {
        match &*self.content {
            Content::Diagnosis(diagnosis) => card(diagnosis).map(Some).map_err(failed),
            _ => Ok(None),
        }
    }
}

/// The summary of a diagnosis, as input for `merge`.
#[pyfunction]
#[pyo3(signature = (run, host = None))]
pub(crate) fn summarize(run: &Bound<'_, Answer>, host: Option<String>) -> PyResult<Answer> {
    let Content::Diagnosis(diagnosis) = &*run.get().content else {
        return Err(bad_option("summarize needs a diagnosis"));
    };
    let mut summary = RankSummary::of(diagnosis);
    summary.host = host.or(summary.host);
    Ok(Answer::of(Content::Rank(Box::new(summary))))
}

/// How ranks differ, from the JSON of their summaries.
#[pyfunction]
#[pyo3(signature = (saved, topology = None))]
pub(crate) fn merge(py: Python<'_>, saved: Vec<String>, topology: Option<PathBuf>) -> PyResult<Answer> {
    if saved.is_empty() {
        return Err(bad_option("merge needs one summary or more"));
    }
    let wiring = wiring_of(topology)?;
    let answer = attend(py, move |_| parsed(&saved).map(|fleet| fleet.answer(wiring.as_deref())))?;
    Ok(Answer::of(Content::Fleet(
        answer.map_err(|error| Family::Unreadable.error(format!("a summary {error}")))?,
    )))
}

/// Combines summaries into one text for `merge`, with the paths of unreadable files and the reasons.
#[pyfunction]
pub(crate) fn combine(saved: Vec<String>, unread: Vec<(String, String)>) -> PyResult<String> {
    let fleet = parsed(&saved).map_err(|error| Family::Unreadable.error(format!("a summary {error}")))?;
    let unread = unread.into_iter().map(|(path, why)| Unread::new(path, why));
    fleet.with_unread(unread).save().map_err(failed)
}

fn parsed(saved: &[String]) -> Result<Fleet, SavedError> {
    saved.iter().map(|text| Fleet::parse(text)).collect()
}

/// Compares two or more diagnoses; with a label, as a sweep over its values.
#[pyfunction]
pub(crate) fn compare(runs: Vec<Bound<'_, Answer>>, label: Option<(String, Vec<f64>)>) -> PyResult<Answer> {
    let diagnosis = |run: &Bound<'_, Answer>| match &*run.get().content {
        Content::Diagnosis(diagnosis) => Ok(Diagnosis::clone(diagnosis)),
        _ => Err(bad_option("compare needs diagnoses")),
    };
    let runs = runs.iter().map(diagnosis).collect::<PyResult<Vec<_>>>()?;
    let labels = label.map(|(key, values)| Labels::new(key, values));
    if let Some(labels) = &labels
        && (labels.values.len() != runs.len() || !labels.values.iter().all(|value| *value > 0.0))
    {
        return Err(bad_option(format!(
            "label needs one number above zero for each of the {} runs",
            runs.len()
        )));
    }
    Ok(Answer::of(Content::Comparison(busbound::compare(&runs, labels.as_ref()))))
}
