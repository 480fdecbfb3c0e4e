//! The gate as workflow commands, which GitHub shows as annotations on the run.

use busbound_diagnosis::Gate;

use crate::Format;
use crate::answer::Answer;
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "github",
    suffixes: &["txt"],
    about: "",
    scope: Scope::Only(AnswerKind::Gate),
    render: Render::Text(|answer, _| match answer {
        Answer::Gate(gate) => Ok(gate_as_github(gate)),
        other => Err(other.not_available(Format::Github)),
    }),
};

/// One line per failed requirement; empty if all pass.
fn gate_as_github(gate: &Gate) -> String {
    let mut out = String::new();
    for run in &gate.runs {
        for check in run.checks.iter().filter(|check| !check.passed) {
            let why = check.why.as_deref().unwrap_or_default();
            let message = format!("{}: {}. {}", run.path, why, run.verdict);
            out.push_str(&format!("::error title={}::{}\n", property(&check.require), data(&message)));
        }
    }
    out
}

/// Escapes the characters that would end a command or a property.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
