//! Recommended settings as a file for the next run: environment, YAML or shell.

use std::fmt::Write;

use busbound_diagnosis::{Advice, Setting, Target};

use crate::Format;
use crate::answer::Answer;
use crate::error::RenderError;
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;

pub(crate) const ENV: FormatSpec = FormatSpec {
    name: "env",
    suffixes: &["env"],
    about: "KEY=VALUE lines",
    scope: Scope::Only(AnswerKind::Advice),
    render: Render::Text(|answer, _| Ok(advice_as_env(advice(answer, Format::Env)?))),
};

pub(crate) const YAML: FormatSpec = FormatSpec {
    name: "yaml",
    suffixes: &["yaml", "yml"],
    about: "",
    scope: Scope::Only(AnswerKind::Advice),
    render: Render::Text(|answer, _| Ok(advice_as_yaml(advice(answer, Format::Yaml)?))),
};

pub(crate) const SH: FormatSpec = FormatSpec {
    name: "sh",
    suffixes: &["sh"],
    about: "Shell exports to source",
    scope: Scope::Only(AnswerKind::Advice),
    render: Render::Text(|answer, _| Ok(advice_as_sh(advice(answer, Format::Sh)?))),
};

fn advice<'a>(answer: &Answer<'a>, format: Format) -> Result<&'a Advice, RenderError> {
    match answer {
        Answer::Advice(advice) => Ok(advice),
        other => Err(other.not_available(format)),
    }
}

/// `KEY=VALUE` lines for an env file. Only environment variables are set; other settings become comments.
fn advice_as_env(advice: &Advice) -> String {
    let mut out = head(advice);
    body(&mut out, advice, |setting| format!("{}={}", setting.key, setting.value));
    out
}

/// The same as shell exports, to source before the launch.
fn advice_as_sh(advice: &Advice) -> String {
    let mut out = format!("#!/bin/sh\n{}", head(advice));
    body(&mut out, advice, |setting| {
        format!("export {}='{}'", setting.key, setting.value.replace('\'', "'\\''"))
    });
    out
}

fn body(out: &mut String, advice: &Advice, line: impl Fn(&Setting) -> String) {
    let mut before: Option<&Setting> = None;
    for setting in &advice.settings {
        reason(out, setting, before, "");
        if setting.target == Target::Environment {
            let _ = writeln!(out, "{}", line(setting));
        } else {
            let _ = writeln!(out, "# {}: {}={}", setting.target.key(), setting.key, setting.value);
        }
        before = Some(setting);
    }
    nothing(out, advice);
}

/// Every setting under its section.
fn advice_as_yaml(advice: &Advice) -> String {
    let mut out = head(advice);
    let mut before: Option<&Setting> = None;
    for setting in &advice.settings {
        if before.is_none_or(|before| before.target != setting.target) {
            let _ = writeln!(out, "{}:", setting.target.key());
            before = None;
        }
        reason(&mut out, setting, before, "  ");
        let _ = writeln!(out, "  {}: {}", setting.key, scalar(&setting.value));
        before = Some(setting);
    }
    if advice.settings.is_empty() {
        out.push_str("{}\n");
    }
    nothing(&mut out, advice);
    out
}

/// Numbers and booleans stay unquoted; everything else is quoted.
fn scalar(value: &str) -> String {
    let plain = value.parse::<f64>().is_ok() || ["true", "false"].contains(&value);
    if plain { value.to_owned() } else { format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")) }
}

fn head(advice: &Advice) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# Written by busbound from {}.", one_line(&advice.from));
    let _ = writeln!(out, "# {}", one_line(&advice.statement));
    if advice.settings.iter().any(|setting| setting.target > Target::Compile) {
        out.push_str("# Keep only the settings of the framework you use.\n");
    }
    out.push('\n');
    out
}

/// Written once for consecutive settings with the same reason.
fn reason(out: &mut String, setting: &Setting, before: Option<&Setting>, indent: &str) {
    if before.is_some_and(|before| before.why == setting.why && before.when == setting.when) {
        return;
    }
    let _ = writeln!(out, "{indent}# why: {}", one_line(&setting.why));
    let _ = writeln!(out, "{indent}# if: {}", one_line(&setting.when));
}

fn nothing(out: &mut String, advice: &Advice) {
    if advice.settings.is_empty() {
        out.push_str("# No settings to recommend.\n");
    }
}

/// Text from a trace must not end the comment it is in.
fn one_line(text: &str) -> String {
    // YAML also ends a line at Unicode line separators.
    let ends_line = |c: char| c.is_control() || ['\u{2028}', '\u{2029}'].contains(&c);
    text.chars().map(|c| if ends_line(c) { ' ' } else { c }).collect()
}
