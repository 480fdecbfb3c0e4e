//! Explanations at a terminal.

use busbound_diagnosis::Explanation;

use super::{FAINT, STRONG, hanging, line};

pub(crate) fn explanations_as_terminal(all: &[Explanation], width: u16) -> String {
    let mut out = String::new();
    for one in all {
        let topic = one.topic.describe();
        line(&mut out, &format!("{STRONG}{}{STRONG:#}  {FAINT}{topic} {}{FAINT:#}", one.title, one.id));
        for section in &one.sections {
            out.push('\n');
            line(&mut out, &format!("{STRONG}{}{STRONG:#}", section.heading));
            if section.is_code {
                // Code is copied: its lines stay as they are.
                section.text.lines().for_each(|code| line(&mut out, &format!("  {code}")));
            } else {
                hanging(&mut out, "  ", &section.text, width);
            }
        }
        out.push('\n');
    }
    out
}
