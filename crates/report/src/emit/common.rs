//! What do the files of all tools have in common?

use std::fmt::Write;

use busbound_diagnosis::{Advice, Setting, Target};

use crate::Format;
use crate::answer::Answer;
use crate::error::RenderError;

pub(super) fn advice<'a>(answer: &Answer<'a>, format: Format) -> Result<&'a Advice, RenderError> {
    match answer {
        Answer::Advice(advice) => Ok(advice),
        other => Err(other.not_available(format)),
    }
}

/// A tool that has its own file.
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) target: Target,
    /// How the file is used.
    pub(super) usage: &'static str,
    /// What its settings can change: the reason if there is none for what was found.
    pub(super) covers: &'static str,
    /// What must be known about these settings, by key; said where the key is set.
    pub(super) notes: &'static [(&'static str, &'static str)],
}

impl Tool {
    /// The first lines: where the settings come from, how they are used, and what has no setting here.
    pub(super) fn head(&self, advice: &Advice) -> Vec<String> {
        let mut lines = vec![
            format!("Written by busbound from {}.", one_line(&advice.from)),
            one_line(&advice.statement),
            self.usage.to_owned(),
        ];
        let set = |key: &str| advice.of(self.target).any(|setting| setting.key == key);
        lines.extend(self.notes.iter().filter(|(key, _)| set(key)).map(|(_, note)| (*note).to_owned()));
        if advice.of(self.target).next().is_none() {
            lines.push(format!("No setting of {} changes this: {}", self.name, self.covers));
        }
        for remedy in advice.without(self.target) {
            let (title, fix) = (one_line(&remedy.title), one_line(&remedy.fix));
            lines.push(format!("No setting of {} for \"{title}\". The fix: {fix}", self.name));
        }
        lines
    }

    /// The same as comments, and an empty line.
    pub(super) fn commented_head(&self, advice: &Advice) -> String {
        let mut out: String = self.head(advice).iter().map(|line| format!("# {line}\n")).collect();
        out.push('\n');
        out
    }
}

/// Each setting as `line` writes it, after its reason.
pub(super) fn lines<'a>(
    out: &mut String,
    settings: impl Iterator<Item = &'a Setting>,
    comment: &str,
    line: impl Fn(&Setting) -> String,
) {
    let mut before: Option<&Setting> = None;
    for setting in settings {
        reason(out, setting, before, comment);
        let _ = writeln!(out, "{}", line(setting));
        before = Some(setting);
    }
}

/// Written once for consecutive settings with the same reason.
pub(super) fn reason(out: &mut String, setting: &Setting, before: Option<&Setting>, comment: &str) {
    if before.is_some_and(|before| before.why == setting.why && before.when == setting.when) {
        return;
    }
    let _ = writeln!(out, "{comment} why: {}", one_line(&setting.why));
    let _ = writeln!(out, "{comment} if: {}", one_line(&setting.when));
}

/// As a command-line flag: `--offload-group-size`.
pub(super) fn flag(key: &str) -> String {
    format!("--{}", key.replace('_', "-"))
}

/// Text from a trace must not end the comment it is in.
pub(super) fn one_line(text: &str) -> String {
    // YAML also ends a line at Unicode line separators.
    let ends_line = |c: char| c.is_control() || ['\u{2028}', '\u{2029}'].contains(&c);
    text.chars().map(|c| if ends_line(c) { ' ' } else { c }).collect()
}
