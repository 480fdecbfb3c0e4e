//! The gate as JUnit XML, which CI servers show as tests: one suite per run, one case per requirement.

use std::fmt::Write;

use busbound_diagnosis::{Check, Gate, GatedRun};
use quick_xml::escape::escape;

use crate::Format;
use crate::answer::Answer;
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "junit",
    suffixes: &["xml"],
    about: "",
    scope: Scope::Only(AnswerKind::Gate),
    render: Render::Text(|answer, _| match answer {
        Answer::Gate(gate) => Ok(gate_as_junit(gate)),
        other => Err(other.not_available(Format::Junit)),
    }),
};

/// A gate as a JUnit report.
fn gate_as_junit(gate: &Gate) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let (all, failed) =
        gate.runs.iter().fold((0, 0), |(all, failed), run| (all + run.checks.len(), failed + failures(run)));
    let _ = writeln!(out, "<testsuites name=\"busbound gate\" tests=\"{all}\" failures=\"{failed}\">");
    for run in &gate.runs {
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">",
            escape(&run.path),
            run.checks.len(),
            failures(run)
        );
        for check in &run.checks {
            case(&mut out, run, check);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn failures(run: &GatedRun) -> usize {
    run.checks.iter().filter(|check| !check.passed).count()
}

fn case(out: &mut String, run: &GatedRun, check: &Check) {
    let name = format!("classname=\"{}\" name=\"{}\"", escape(&run.path), escape(&check.require));
    match &check.why {
        None => {
            let _ = writeln!(out, "    <testcase {name}/>");
        }
        Some(why) => {
            let text = format!("{why}\n{}", run.verdict);
            let _ = writeln!(out, "    <testcase {name}>");
            let _ = writeln!(out, "      <failure message=\"{}\">{}</failure>", escape(why), escape(&text));
            out.push_str("    </testcase>\n");
        }
    }
}
