//! `cargo xtask words`: no word of the old dialect and no British spelling in sources, documentation and snapshots.
//!
//! The list is xtask/words.txt.

use std::fs;

use anyhow::{Context, ensure};

use crate::shell::{files, root, say};

/// One entry of the list.
struct Rule {
    /// Lowercase words, each between single spaces.
    phrase: String,
    /// Whether other letters may follow: spelling rules name the beginning of a word.
    is_stem: bool,
    instead: String,
}

/// What is not ours to word: recorded data, licenses, generated locks, and the history of renamed things.
const SKIPPED: &[&str] = &[
    "fixtures/",
    "fuzz/seeds/",
    "LICENSE",
    "Cargo.lock",
    "package-lock.json",
    "CHANGELOG.md",
    "xtask/words.txt",
    "xtask/src/words.rs",
];

/// Texts inside skipped folders that people read.
const READ: &[&str] = &["fixtures/README.md", "fixtures/record.py", "fixtures/pairs.py"];

pub(crate) fn run() -> anyhow::Result<()> {
    let rules = rules(&fs::read_to_string(root().join("xtask/words.txt")).context("xtask/words.txt")?)?;
    let (mut read, mut found) = (0, Vec::new());
    for path in files()?.iter().filter(|path| is_ours(path)) {
        // Binary files are not text.
        let Ok(text) = fs::read_to_string(root().join(path)) else { continue };
        read += 1;
        for (number, line) in text.lines().enumerate() {
            let words = words_of(line);
            for rule in rules.iter().filter(|rule| rule.matches(&words)) {
                found.push(format!(
                    "{path}:{}: \"{}\": write {}",
                    number + 1,
                    rule.phrase.trim(),
                    rule.instead
                ));
            }
        }
    }
    for line in &found {
        say(line);
    }
    ensure!(found.is_empty(), "{} words to replace: see xtask/words.txt", found.len());
    say(&format!("words: {read} files, nothing to replace"));
    Ok(())
}

fn is_ours(path: &str) -> bool {
    let is_skipped = SKIPPED.iter().any(|skipped| path.starts_with(skipped) || path.ends_with(skipped));
    // The page's bundled script and style are built from web/src.
    READ.contains(&path) || (!is_skipped && !path.contains("/assets/"))
}

fn rules(list: &str) -> anyhow::Result<Vec<Rule>> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (phrase, instead) = line.split_once(" = ").with_context(|| format!("{line}: no ` = `"))?;
            let is_stem = instead.ends_with("(US spelling)");
            Ok(Rule { phrase: words_of(phrase).trim_end().to_owned(), is_stem, instead: instead.to_owned() })
        })
        .collect()
}

impl Rule {
    fn matches(&self, words: &str) -> bool {
        let ends = |at: usize| self.is_stem || words[at + self.phrase.len()..].starts_with(' ');
        words.match_indices(&self.phrase).any(|(at, _)| ends(at))
    }
}

/// The words of a line, lowercase, each between single spaces: `NotTold::lay_to` is ` not told lay to `.
fn words_of(line: &str) -> String {
    let mut words = String::from(" ");
    let mut before = ' ';
    for c in line.chars() {
        let begins = c.is_uppercase() && before.is_lowercase();
        if (begins || !c.is_alphanumeric()) && !words.ends_with(' ') {
            words.push(' ');
        }
        if c.is_alphanumeric() {
            words.extend(c.to_lowercase());
        }
        before = c;
    }
    if !words.ends_with(' ') {
        words.push(' ');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_in_text_and_in_identifiers() {
        let rules = rules("not told = unknown\ncolour = color (US spelling)\nits most = max").unwrap();
        let found = |line: &str| rules.iter().any(|rule| rule.matches(&words_of(line)));
        for line in ["Not told: x", "fn not_told()", "enum NotTold", "curveColours", "PCIe 5 (its most)"] {
            assert!(found(line), "{line}");
        }
        for line in ["cannot tolde", "color", "it is mostly", "not toldx"] {
            assert!(!found(line), "{line}");
        }
    }
}
