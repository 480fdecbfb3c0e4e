//! For a person at a terminal. Styled; whoever prints it strips the styles where they do not belong.

pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod dashboard;
pub(crate) mod diagnosis;
pub(crate) mod fleet;
pub(crate) mod gate;
pub(crate) mod plan;
pub(crate) mod survey;
mod table;
pub(crate) mod top;
pub(crate) mod topology;
pub(crate) mod whatif;
mod wrap;

use anstyle::Style;

use self::table::rows;
use self::wrap::hanging;
use crate::text::{Table, capitalised};

const STRONG: Style = Style::new().bold();
const FAINT: Style = Style::new().dimmed();

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// The answer: strong, with an empty line under it.
fn headline(out: &mut String, text: &str, width: u16) {
    let mut lines = String::new();
    hanging(&mut lines, "", text, width);
    line(out, &format!("{STRONG}{}{STRONG:#}\n", lines.trim_end()));
}

fn columns(out: &mut String, table: &Table, width: u16) {
    rows(out, &table.titles, &table.rows, width);
}
