//! Recommended settings as a file for the next run: environment, YAML or shell here, and one file per tool.
//!
//! Every format writes the same [`Advice`].

pub(crate) mod accelerate;
mod common;
pub(crate) mod deepspeed;
pub(crate) mod diffusers;
pub(crate) mod fsdp;
pub(crate) mod sglang;
pub(crate) mod vllm;

use std::fmt::Write;

use busbound_diagnosis::{Advice, Setting, Target};

use common::{advice, one_line, reason};

use crate::Format;
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
        format!("export {}='{}'", setting.key, setting.value.to_string().replace('\'', "'\\''"))
    });
    out
}

fn body(out: &mut String, advice: &Advice, line: impl Fn(&Setting) -> String) {
    let mut before: Option<&Setting> = None;
    for setting in &advice.settings {
        reason(out, setting, before, "#");
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
        reason(&mut out, setting, before, "  #");
        let _ = writeln!(out, "  {}: {}", setting.key, setting.value.as_yaml());
        before = Some(setting);
    }
    if advice.settings.is_empty() {
        out.push_str("{}\n");
    }
    nothing(&mut out, advice);
    out
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

fn nothing(out: &mut String, advice: &Advice) {
    if advice.settings.is_empty() {
        out.push_str("# No settings to recommend.\n");
    }
}
