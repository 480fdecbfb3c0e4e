//! Template filters. Templates escape on their own; these also add markup.

#![expect(unreachable_pub, reason = "the macro generates public items")]

use askama::{Result, Values, filter_fn};

use super::escape::escaped;

/// Escaped text with backtick spans as code.
#[filter_fn]
pub(super) fn coded(text: impl std::fmt::Display, _: &dyn Values) -> Result<String> {
    Ok(code_between_backticks(&text.to_string()))
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
    use super::code_between_backticks as coded;

    #[test]
    fn paired_backticks_are_code_and_everything_is_escaped() {
        assert_eq!(coded("under `step`, `a<b>`"), "under <code>step</code>, <code>a&lt;b&gt;</code>");
        assert_eq!(coded("a ` b"), "a ` b");
        assert_eq!(coded("`x` and `</code><script>"), "<code>x</code> and `&lt;/code&gt;&lt;script&gt;");
    }
}
