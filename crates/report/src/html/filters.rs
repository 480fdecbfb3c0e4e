//! Template filters. Templates escape on their own; these also add markup.

#![expect(unreachable_pub, reason = "the macro generates public items")]

use askama::{Result, Values, filter_fn};

use super::escape::escaped;

/// Escaped text with backtick spans as code.
#[filter_fn]
pub(super) fn coded(text: impl std::fmt::Display, _: &dyn Values) -> Result<String> {
    Ok(code_between_backticks(&text.to_string()))
}

/// As [`coded`], with `[explain: ID]` as a link to the explanation on the page of run `number`.
#[filter_fn]
pub(super) fn linked(text: impl std::fmt::Display, _: &dyn Values, number: &usize) -> Result<String> {
    Ok(with_links(&text.to_string(), &number.to_string()))
}

fn with_links(text: &str, number: &str) -> String {
    let mut html = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[explain: ") {
        let is_id = |id: &str| id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        let Some((id, after)) = after.split_once(']').filter(|(id, _)| is_id(id)) else { break };
        html.push_str(&code_between_backticks(before));
        html.push_str(&format!("<a href=\"#explain-{number}-{id}\" aria-label=\"explain {id}\">explain</a>"));
        rest = after;
    }
    html + &code_between_backticks(rest)
}

fn code_between_backticks(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // A backtick without a partner is text.
    let pairs = (parts.len() - 1) / 2 * 2;
    let mut html = String::with_capacity(text.len() + 32);
    for (i, part) in parts.iter().enumerate() {
        match i {
            0 => {}
            i if i > pairs => html.push('`'),
            i if i % 2 == 1 => html.push_str("<code>"),
            _ => html.push_str("</code>"),
        }
        html.push_str(&escaped(part));
    }
    html
}

#[cfg(test)]
mod tests {
    use super::{code_between_backticks as coded, with_links};

    #[test]
    fn paired_backticks_are_code_and_everything_is_escaped() {
        assert_eq!(coded("under `step`, `a<b>`"), "under <code>step</code>, <code>a&lt;b&gt;</code>");
        assert_eq!(coded("a ` b"), "a ` b");
        assert_eq!(coded("`x` and `</code><script>"), "<code>x</code> and `&lt;/code&gt;&lt;script&gt;");
    }
    #[test]
    fn ids_become_links_and_nothing_else_does() {
        assert_eq!(
            with_links("a<b [explain: idle_launch] c", "1"),
            "a&lt;b <a href=\"#explain-1-idle_launch\" aria-label=\"explain idle_launch\">explain</a> c"
        );
        assert_eq!(with_links("[explain: \"><script>]", "1"), "[explain: &quot;&gt;&lt;script&gt;]");
    }
}
