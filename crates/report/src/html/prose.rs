//! Answers that are words and tables: their Markdown as a page.

use pulldown_cmark::{Event, Options, Parser, html};

use super::page;

/// A page of a Markdown document; HTML within it is shown, not taken for HTML.
pub fn markdown_as_html(title: &str, markdown: &str) -> String {
    let parsed = Parser::new_ext(markdown, Options::ENABLE_TABLES).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        other => other,
    });
    let mut body = String::from("<article class=\"run prose\">\n");
    html::push_html(&mut body, parsed);
    body.push_str("</article>\n");
    page(title, &body, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_in_markdown_is_text() {
        let page = markdown_as_html(
            "a <b>",
            "**x** <script>alert(1)</script>\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n",
        );
        assert!(page.contains("<strong>x</strong> &lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
        assert!(
            page.contains("<title>a &#60;b&#62;</title>")
                && page.contains("<td style=\"text-align: right\">2</td>")
        );
        assert!(!page.contains("<script>"));
    }
}
