//! One run, rendered for a page.

use askama::Template;
use busbound_diagnosis::{Diagnosis, Drawn};

use super::run::{Lead, RunView, statement};
use super::titled;
use crate::error::RenderError;

/// One run, rendered. It can be built on any thread, so only one picture is in memory at a time.
#[derive(Debug)]
pub struct RunSection {
    pub(super) number: usize,
    pub(super) title: String,
    pub(super) html: String,
    pub(super) diagnosis: Diagnosis,
}

impl RunSection {
    /// `number` identifies the run on its page.
    ///
    /// # Errors
    /// If its template cannot be rendered.
    pub fn of(drawn: &Drawn, number: usize, lead: Lead) -> Result<Self, RenderError> {
        let html = RunView::of(drawn, number, lead)?.render()?;
        let title = titled(&drawn.diagnosis.source.path, &statement(drawn, lead));
        Ok(Self { number, title, html, diagnosis: drawn.diagnosis.clone() })
    }
}
