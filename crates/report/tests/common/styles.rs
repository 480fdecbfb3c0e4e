//! What a person sees of what a terminal gets.

/// The terminal's text without its styles.
pub(crate) fn plain(styled: &str) -> String {
    let mut out = String::new();
    let mut escape = false;
    for c in styled.chars() {
        match (escape, c) {
            (false, '\u{1b}') => escape = true,
            (true, 'm') => escape = false,
            (true, _) => {}
            (false, c) => out.push(c),
        }
    }
    out
}
