//! Explanations as Markdown.

use std::fmt::Write;

use busbound_diagnosis::Explanation;

use super::escape::{code, inline};
use crate::text::capitalized;

pub(crate) fn explanations_as_markdown(all: &[Explanation]) -> String {
    let mut out = String::new();
    for one in all {
        let _ = writeln!(out, "# {}\n", inline(&one.title));
        let _ = writeln!(out, "{} {}", capitalized(one.topic.describe()), code(one.id));
        for section in &one.sections {
            let _ = write!(out, "\n## {}\n\n", section.heading);
            let _ = match section.is_code {
                true => writeln!(out, "```python\n{}\n```", section.text.trim_end()),
                false => writeln!(out, "{}", inline(&section.text)),
            };
        }
        out.push('\n');
    }
    out
}
