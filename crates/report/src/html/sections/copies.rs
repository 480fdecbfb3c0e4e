//! Copies compared with the link: a dot per copy, which the script draws, the time of each size, and how rates scatter.

use askama::Template;
use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_diagnosis::{CopyGroup, SizeClass};

use super::{Context, SectionSpec};
use crate::error::RenderError;
use crate::html::colors;
use crate::html::filters;
use crate::html::grid::Grid;
use crate::text::diagnosis as text;

pub(super) const SECTION: SectionSpec = SectionSpec {
    id: "copies",
    heading: "Copies compared with the link",
    link: "Copies",
    needs_script: false,
    body,
};

#[derive(Template)]
#[template(path = "copies.html")]
struct CopiesView {
    lines: Vec<String>,
    has_dots: bool,
    sizes: Vec<SizeRow>,
    of: &'static str,
    /// How the rates scatter: percentiles and histogram.
    tables: Vec<Grid>,
    number: usize,
}

struct SizeRow {
    what: String,
    class: &'static str,
    time: String,
    /// Of the longest.
    percent: f64,
    moved: String,
    rate: String,
}

fn body(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let diagnosis = context.diagnosis();
    let lines: Vec<String> = text::copies(diagnosis).iter().map(|line| line.joined(" · ")).collect();
    let groups = crate::text::copies::bus_copies(diagnosis);
    let with_copies = || {
        groups
            .iter()
            .flat_map(|group| group.sizes.iter().map(move |class| (*group, class)))
            .filter(|(_, class)| class.count > 0)
    };
    let longest = with_copies().map(|(_, class)| class.ms).fold(f64::MIN_POSITIVE, f64::max);
    let sizes: Vec<SizeRow> = with_copies().map(|(group, class)| size(group, class, longest)).collect();
    let has_dots = !groups.is_empty() && !context.drawn.picture.dots.is_empty();
    if lines.is_empty() && !has_dots {
        return Ok(None);
    }
    let tables = [crate::text::copies::rates(diagnosis), crate::text::copies::histogram(diagnosis)];
    let tables = tables.into_iter().filter(|table| !table.rows.is_empty()).map(Grid::from).collect();
    let (of, number) = (text::analyzed(diagnosis), context.number);
    Ok(Some(CopiesView { lines, has_dots, sizes, of, tables, number }.render()?))
}

fn size(group: &CopyGroup, class: &SizeClass, longest: f64) -> SizeRow {
    let expected =
        class.expected_gbps.map_or(String::new(), |gbps| format!(" of {gbps:.1} expected if pinned"));
    SizeRow {
        what: format!("{}, {}", group.kind(), class.label),
        class: colors::of_copy(group),
        time: milliseconds(class.ms),
        percent: 100.0 * class.ms / longest,
        moved: format!("{} × {}", count(class.count), bytes(class.bytes / class.count.max(1))),
        rate: format!("{:.1} GB/s{expected}", class.gbps),
    }
}
