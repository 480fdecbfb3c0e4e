//! What could not be checked: a line and a summary for developers, a failure in CI.

use std::fmt::Write;

use anyhow::bail;

use crate::shell::say;

/// What can be skipped on purpose (`cargo xtask test --without peers`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Third-party traces, which are too large for the repository
    Peers,
    /// The pages in a real browser
    Browser,
    /// The Python wheel and its tests
    Wheel,
}

#[derive(Debug)]
pub(crate) struct Skipped {
    in_ci: bool,
    without: Vec<Part>,
    lines: Vec<String>,
}

impl Skipped {
    /// Every CI service sets `CI=true`.
    pub(crate) fn new(without: Vec<Part>) -> Self {
        let in_ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        Self { in_ci, without, lines: Vec::new() }
    }

    /// The same rules, for checks that run at the same time.
    pub(crate) fn beside(&self) -> Self {
        Self { in_ci: self.in_ci, without: self.without.clone(), lines: Vec::new() }
    }

    /// Adds what was skipped by checks that ran at the same time.
    pub(crate) fn join(&mut self, other: Self) {
        other.lines.into_iter().for_each(|line| self.list(line));
    }

    /// Once: several checks may skip the same part.
    fn list(&mut self, line: String) {
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    /// Whether a part is skipped on purpose, which is never a failure but is listed in the summary.
    pub(crate) fn leaves_out(&mut self, part: Part) -> bool {
        let is_out = self.without.contains(&part);
        if is_out {
            self.list(format!("{part:?}: skipped on purpose"));
        }
        is_out
    }

    /// A check that cannot run here, and why.
    pub(crate) fn add(&mut self, what: &str, why: &str) -> anyhow::Result<()> {
        if self.in_ci {
            bail!(
                "{what} cannot be checked: {why}. This is a failure in CI; `cargo xtask setup` installs what is missing"
            );
        }
        say(&format!("\nskipped: {what}: {why}"));
        self.lines.push(format!("{what}: {why}"));
        Ok(())
    }

    /// The summary for the end.
    pub(crate) fn summary(&self) -> String {
        if self.lines.is_empty() {
            return "everything was checked".to_owned();
        }
        let mut text = format!("passed, but {} not checked:", self.lines.len());
        for line in &self.lines {
            let _ = write!(text, "\n  - {line}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(in_ci: bool) -> Skipped {
        Skipped { in_ci, without: vec![Part::Peers], lines: Vec::new() }
    }

    #[test]
    fn a_skipped_check_is_a_failure_in_ci_and_a_line_elsewhere() {
        assert!(skipped(true).add("lints", "clippy is not installed").is_err());
        let mut here = skipped(false);
        here.add("lints", "clippy is not installed").unwrap();
        assert_eq!(here.summary(), "passed, but 1 not checked:\n  - lints: clippy is not installed");
    }

    #[test]
    fn parts_skipped_on_purpose_are_listed() {
        let mut skipped = skipped(true);
        assert!(skipped.leaves_out(Part::Peers) && !skipped.leaves_out(Part::Wheel));
        assert_eq!(skipped.summary(), "passed, but 1 not checked:\n  - Peers: skipped on purpose");
    }
}
