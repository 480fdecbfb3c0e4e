//! How long are functions and files? rustfmt has formatted the sources, so a function ends at the first closing brace
//! with the same indentation.

use super::Source;

const FUNCTION: usize = 100;
const FILE: usize = 500;
/// A longer file gives the reason in one of its first lines, after these words.
const REASON: &str = "Long because ";
const HEAD: usize = 20;
/// Generated files, by their first line, are exempt.
const GENERATED: [&str; 2] = ["Generated from ", "Written by generate.py"];

pub(super) fn violations(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    let says = |words: &str| lines.iter().take(HEAD).any(|line| line.contains(words));
    if lines.len() > FILE && !says(REASON) && !GENERATED.into_iter().any(says) {
        found.push(format!("file {}", source.path));
    }
    if source.path.ends_with(".rs") {
        let long = functions(&lines).into_iter().filter(|(_, length)| *length > FUNCTION);
        found.extend(long.map(|(name, _)| format!("function {} {name}", source.path)));
    }
    found
}

/// The name and number of lines of each function.
fn functions(lines: &[&str]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_end = |line: &&str| line.strip_prefix(indent).is_some_and(|rest| rest == "}" || rest == ";");
        // A body on the line of the signature, or no body.
        let is_short = |line: &str| line.ends_with('}') || line.ends_with(';');
        let length =
            if is_short(line) { Some(1) } else { lines[at..].iter().position(is_end).map(|n| n + 1) };
        found.extend(length.map(|length| (name.to_owned(), length)));
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    loop {
        if let Some(named) = rest.strip_prefix("fn ") {
            return named.split(['(', '<']).next();
        }
        let (word, after) = rest.split_once(' ')?;
        let is_qualifier = word.starts_with("pub")
            || word.ends_with(')')
            || matches!(word, "const" | "async" | "unsafe" | "extern" | "\"C\"");
        rest = if is_qualifier { after } else { return None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_from_signature_to_brace() {
        let text = "impl A {\n    pub(in super::super) const fn one(\n        x: u32,\n    ) -> u32 {\n        x\n    }\n\n    fn two() {}\n}\n\nasync fn three<T>()\nwhere\n    T: A,\n{\n    if true {\n    }\n}\n";
        let lines: Vec<&str> = text.lines().collect();
        let found = functions(&lines);
        let expected = [("one", 5), ("two", 1), ("three", 7)].map(|(name, length)| (name.to_owned(), length));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_long_file_is_allowed_with_its_reason() {
        let source = |head: &str| Source {
            path: "a.py".to_owned(),
            text: format!("{head}\n{}", "x = 1\n".repeat(600)),
        };
        assert_eq!(violations(&source("# A file.")), ["file a.py"]);
        assert!(violations(&source("# Long because each kernel is a line.")).is_empty());
    }
}
