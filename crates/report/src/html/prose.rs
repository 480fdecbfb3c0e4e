//! Answers without charts: their Markdown as a page.

use pulldown_cmark::html::push_html;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::page;
use crate::error::RenderError;

/// A page from a Markdown document. HTML in it is shown as text, and links are removed.
pub(super) fn markdown_as_html(title: &str, markdown: &str) -> Result<String, RenderError> {
    page(title, &article("run-0", markdown), false)
}

/// The same as a section of a page.
pub(super) fn article(id: &str, markdown: &str) -> String {
    article_with(id, markdown, "")
}

/// As [`article`], with a picture (HTML) after the first paragraph.
pub(super) fn article_with(id: &str, markdown: &str, picture: &str) -> String {
    let mut picture = Some(picture.to_owned());
    let parsed = Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        Event::Start(Tag::Link { .. } | Tag::Image { .. }) | Event::End(TagEnd::Link | TagEnd::Image) => None,
        other => Some(other),
    });
    let parsed = parsed.flat_map(|event| match event {
        // A wide table scrolls by itself.
        Event::Start(Tag::Table(_)) => vec![html(WIDE.to_owned()), event],
        Event::End(TagEnd::Table) => vec![event, html("</div>\n".to_owned())],
        Event::End(TagEnd::Paragraph) => std::iter::once(event).chain(picture.take().map(html)).collect(),
        event => vec![event],
    });
    let mut body = format!("<article class=\"run prose\" id=\"{id}\">\n");
    push_html(&mut body, parsed);
    body.push_str("</article>\n");
    body
}

const WIDE: &str = "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Table\">";

fn html(text: String) -> Event<'static> {
    Event::Html(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_in_markdown_is_text() -> Result<(), RenderError> {
        let page = markdown_as_html(
            "a <b>",
            "**x** <script>alert(1)</script>\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n",
        )?;
        assert!(page.contains("<strong>x</strong> &lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
        assert!(
            page.contains("<title>a &#60;b&#62;</title>")
                && page.contains("<td style=\"text-align: right\">2</td>")
        );
        assert!(!page.contains("<script>"));
        let page = markdown_as_html("", "[a](javascript:alert(1)) ![b](https://example.com/c.png)")?;
        assert!(page.contains("<p>a b</p>"), "{page}");
        Ok(())
    }
}
