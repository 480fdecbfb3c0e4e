//! The figures that no chart shows, as tables.

use askama::Template;

use super::{Context, SectionSpec};
use crate::error::RenderError;
use crate::html::filters;
use crate::html::grid::Grid;
use crate::text::{attribution, diagnosis as text, path};

pub(super) const SECTION: SectionSpec =
    SectionSpec { id: "tables", heading: "Figures", link: "Figures", needs_script: false, body };

#[derive(Template)]
#[template(path = "figures.html")]
struct FiguresView {
    number: usize,
    sentences: Vec<String>,
    tables: Vec<Grid>,
}

fn body(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let diagnosis = context.diagnosis();
    let sentences = [
        attribution::caution(diagnosis).map(str::to_owned),
        path::compiled(diagnosis).map(str::to_owned),
        path::about_kernels(diagnosis),
        text::contention(diagnosis),
    ];
    let sentences: Vec<String> = sentences.into_iter().flatten().collect();
    let tables: Vec<Grid> =
        text::tables(diagnosis, text::Charted::Separately).into_iter().map(Grid::from).collect();
    if sentences.is_empty() && tables.is_empty() {
        return Ok(None);
    }
    Ok(Some(FiguresView { number: context.number, sentences, tables }.render()?))
}
