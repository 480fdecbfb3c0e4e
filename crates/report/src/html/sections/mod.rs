//! The sections of a run's page, in order. Adding one is a file with a [`SectionSpec`] and its line in [`SECTIONS`].

mod blocks;
mod bounds;
mod copies;
mod evidence;
mod explanations;
mod figures;
mod findings;
mod limits;
mod stages;
mod steps;
mod timeline;
mod whatif;

use busbound_diagnosis::{Diagnosis, Drawn};

use crate::error::RenderError;

pub(super) use timeline::{LegendEntry, legend};

/// One section, as the registry lists it.
pub(super) struct SectionSpec {
    /// Its class, and the first part of its HTML id.
    pub(super) id: &'static str,
    pub(super) heading: &'static str,
    /// Its name in the navigation.
    pub(super) link: &'static str,
    /// Whether it is empty without the script.
    pub(super) needs_script: bool,
    /// Its content as HTML; `None` if the run has none.
    pub(super) body: fn(&Context<'_>) -> Result<Option<String>, RenderError>,
}

pub(super) const SECTIONS: &[SectionSpec] = &[
    bounds::SECTION,
    findings::SECTION,
    whatif::SECTION,
    timeline::SECTION,
    copies::SECTION,
    steps::SECTION,
    stages::SECTION,
    blocks::SECTION,
    figures::SECTION,
    limits::SECTION,
    explanations::SECTION,
];

/// What a section can show.
pub(super) struct Context<'a> {
    pub(super) drawn: &'a Drawn,
    /// The run's number on the page, for HTML ids.
    pub(super) number: usize,
}

impl Context<'_> {
    fn diagnosis(&self) -> &Diagnosis {
        &self.drawn.diagnosis
    }
}

/// A section, rendered.
pub(super) struct Shown {
    pub(super) spec: &'static SectionSpec,
    pub(super) html: String,
}

/// The sections that have content.
pub(super) fn shown(context: &Context<'_>) -> Result<Vec<Shown>, RenderError> {
    let render = |spec: &'static SectionSpec| {
        let html = (spec.body)(context).transpose()?;
        Some(html.map(|html| Shown { spec, html }))
    };
    SECTIONS.iter().filter_map(render).collect()
}

#[test]
fn ids_are_unique_and_fit_html() {
    for (i, section) in SECTIONS.iter().enumerate() {
        assert!(section.id.bytes().all(|b| b.is_ascii_lowercase()), "{}", section.id);
        assert!(SECTIONS[..i].iter().all(|other| other.id != section.id), "{}", section.id);
        assert!(section.link.len() <= 14, "{} does not fit the navigation", section.link);
    }
}
