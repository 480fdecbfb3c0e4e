//! Lists under `--help`, whose second column stays a column.

/// Fits a terminal of 80 columns, so that clap does not break the lines again.
const WIDTH: usize = 78;

/// One row per name: the text is wrapped and indented below itself.
pub(super) fn two_columns<N: AsRef<str>>(rows: impl IntoIterator<Item = (N, String)>) -> String {
    let rows: Vec<(N, String)> = rows.into_iter().collect();
    let widest = rows.iter().map(|(name, _)| name.as_ref().len()).max().unwrap_or(0);
    let indent = widest + 4;
    let mut lines = Vec::new();
    for (name, text) in &rows {
        let mut line = format!("  {:<widest$} ", name.as_ref());
        for word in text.split_whitespace() {
            if line.chars().count() + 1 + word.chars().count() > WIDTH {
                lines.push(line);
                line = " ".repeat(indent - 1);
            }
            line.push(' ');
            line.push_str(word);
        }
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}

/// A list in one column.
pub(super) fn wrapped(text: &str) -> String {
    two_columns([("", text.to_owned())])
        .lines()
        .map(|line| format!("  {}", line.trim_start()))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_wrapped_below_themselves() {
        let long =
            "a word and another word, then more words than one line of the terminal can hold, and an end";
        let text = two_columns([("pin", "short".to_owned()), ("prefetch=N", long.to_owned())]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "  pin         short");
        assert!(lines[1].starts_with("  prefetch=N  a word"), "{text}");
        assert!(
            lines.len() == 3 && lines[2].starts_with("              ") && lines[2].ends_with("an end"),
            "{text}"
        );
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
    }
}
