//! One run laid out for a page.

use askama::Template;
use busbound_diagnosis::{Diagnosis, Drawn};

use super::run::{Lead, RunView, statement};
use crate::error::RenderError;

/// One run laid out, which may be done on any thread, so that one picture is held at a time.
#[derive(Debug)]
pub struct RunSection {
    pub(super) number: usize,
    pub(super) title: String,
    pub(super) html: String,
    pub(super) diagnosis: Diagnosis,
}

impl RunSection {
    /// `number` tells it from the other runs of its page.
    ///
    /// # Errors
    /// If its template cannot be rendered.
    pub fn of(drawn: &Drawn, number: usize, lead: Lead) -> Result<Self, RenderError> {
        let html = RunView::of(drawn, number, lead).render()?;
        let title = statement(drawn, lead).to_owned();
        Ok(Self { number, title, html, diagnosis: drawn.diagnosis.clone() })
    }

    /// The run's number on its page, and its path.
    pub(super) fn link(&self) -> (usize, String) {
        (self.number, self.diagnosis.source.path.clone())
    }
}
