//! `busbound explain`.

use busbound::diagnosis::{Explanation, explain, explanations};

use crate::args::explain::ExplainArgs;
use crate::failure::Failure;
use crate::io::output::{show, write_answer};
use crate::request::resolve_output;

pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    // Titles consist of several words.
    let id = args.id.join(" ");
    if id.is_empty() {
        return write_answer(&list(&explanations()));
    }
    let found = explain(&id).map_err(|unknown| {
        let unknown = unknown.to_string();
        let end = if unknown.ends_with('?') { "" } else { "." };
        Failure::usage(format!("{unknown}{end} `busbound explain` without an id lists everything"))
    })?;
    show(&found, &resolve_output(&args.output)?, format!("{id}.html"))
}

/// Every id by its topic.
fn list(all: &[Explanation]) -> String {
    let width = all.iter().map(|one| one.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    let mut topic = None;
    for one in all {
        if topic != Some(one.topic) {
            topic = Some(one.topic);
            text.push_str(&format!("{}{}s\n", if text.is_empty() { "" } else { "\n" }, one.topic.describe()));
        }
        text.push_str(&format!("  {:<width$}  {}\n", one.id, one.title));
    }
    text
}
