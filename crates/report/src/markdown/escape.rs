//! How does text stay text in Markdown? Names in a trace can be anything: `kernel<float*, 3>`, `a|b`, `<script>`.

/// Text on a line. Code between single backticks stays code; everything else is literal.
pub(super) fn inline(text: &str) -> String {
    escaped(&one_line(text), false)
}

/// The same in a table cell, which a bar would end, even within code.
pub(super) fn cell(text: &str) -> String {
    escaped(&one_line(text), true)
}

fn escaped(text: &str, in_table: bool) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let (mut rest, mut before) = (text, ' ');
    while let Some(c) = rest.chars().next() {
        if let Some(code) = code_span(rest) {
            rest = &rest[code.len()..];
            before = '`';
            // Escaped bars in code fail after a backslash and in some readers.
            if in_table && code.contains('|') {
                out.push_str(&escaped(code.trim_matches('`'), in_table));
            } else {
                out.push_str(code);
            }
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '|' if in_table => out.push_str("&#124;"),
            _ => {
                if is_markup(before, c, rest.chars().next()) {
                    out.push('\\');
                }
                out.push(c);
            }
        }
        before = c;
    }
    out
}

/// Text to copy, such as a path, as code, whatever it contains.
pub(super) fn code(text: &str) -> String {
    let text = one_line(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    // A backtick at either end would join the fence.
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    if text.is_empty() { String::new() } else { format!("{fence}{pad}{text}{pad}{fence}") }
}

/// The code span at the start of a text, between single backticks.
fn code_span(text: &str) -> Option<&str> {
    let alone = |at: usize| !text[at + 1..].starts_with('`') && !text[..at].ends_with('`');
    let mut ticks = text.match_indices('`').map(|(at, _)| at).filter(|at| alone(*at));
    let begin = ticks.next().filter(|at| *at == 0)?;
    ticks.next().map(|end| &text[begin..=end])
}

/// Whether a character would be read as markup in this position.
fn is_markup(before: char, c: char, after: Option<char>) -> bool {
    match c {
        '<' | '>' | '`' | '[' | ']' | '~' | '$' => true,
        // As in `1.05 * baseline`.
        '*' => before != ' ' || after != Some(' '),
        // Only an opening underscore starts emphasis, and never within a word.
        '_' => !before.is_alphanumeric() && after.is_some_and(|after| after != ' '),
        '\\' => after.is_none_or(|after| after.is_ascii_punctuation()),
        '&' => after.is_some_and(|after| after.is_alphanumeric() || after == '#'),
        _ => false,
    }
}

/// Text from a trace must not end a line: what follows would be a new block.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || ['\u{2028}', '\u{2029}'].contains(&c) { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_literal_and_code_stays_code() {
        assert_eq!(inline("k<float*, 3>(int)"), "k\\<float\\*, 3\\>(int)");
        assert_eq!(
            inline("aten::_to_copy of copy_ under `a<b>|c`"),
            "aten::\\_to_copy of copy_ under `a<b>|c`"
        );
        assert_eq!(inline("`a`b<i>`"), "`a`b\\<i\\>\\`");
        assert_eq!(inline("1.05 * baseline"), "1.05 * baseline");
        assert_eq!(inline("a\n# b &lt; \\* c"), "a # b \\&lt; \\\\\\* c");
    }

    #[test]
    fn a_bar_does_not_end_a_cell() {
        assert_eq!(cell(r"a|b\|c"), r"a&#124;b\\&#124;c");
        assert_eq!(cell(r"under `x|<y>`"), r"under x&#124;\<y\>");
    }

    #[test]
    fn code_is_fenced_by_more_backticks_than_it_holds() {
        assert_eq!(code("a_b.json"), "`a_b.json`");
        assert_eq!(code("a``b`"), "``` a``b` ```");
    }
}
