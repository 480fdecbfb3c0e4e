//! Pages for a browser: one file each, nothing fetched, everything from a trace or a machine escaped.

pub(crate) mod curves;
pub(crate) mod lanes;

use std::fmt::Write;

/// Text as it may stand in HTML and SVG.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Colours that stay apart for colour-blind readers (Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#7f7f7f", "#f0e442"];

/// A page around drawings; `paragraphs` stand above them, `listed` below, both text.
fn page(title: &str, paragraphs: &[String], drawings: &str, listed: &[String]) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{}</title><style>{STYLE}</style></head><body>\n",
        escaped(title)
    );
    for (i, paragraph) in paragraphs.iter().enumerate() {
        let tag = if i == 0 { "h1" } else { "p" };
        let _ = writeln!(out, "<{tag}>{}</{tag}>", escaped(paragraph));
    }
    out.push_str(drawings);
    if !listed.is_empty() {
        let items: String = listed.iter().map(|item| format!("<li>{}</li>\n", escaped(item))).collect();
        let _ = write!(out, "<ul>\n{items}</ul>");
    }
    out.push_str("\n</body></html>\n");
    out
}

const STYLE: &str = "\
:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:1240px;margin:2em auto;padding:0 1em}\
h1{font-size:1.25em}svg{width:100%;height:auto;font:12px system-ui,sans-serif}svg text{fill:currentColor}\
.grid{stroke:currentColor;stroke-opacity:.15}.axis{stroke:currentColor;stroke-opacity:.6}";
