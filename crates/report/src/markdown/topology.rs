//! The topology as Markdown.

use std::fmt::Write;

use busbound_machine::topology::Topology;

use super::{headline, inline, item, rows};
use crate::text::topology as text;

/// A machine as a Markdown document.
pub(crate) fn topology_as_markdown(topology: &Topology) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(topology));
    item(&mut out, &format!("from: {}", topology.source));
    item(&mut out, &format!("host: {}", text::host(topology)));
    if let Some(fabric) = text::fabric(topology) {
        item(&mut out, &format!("fabric: {fabric}"));
    }
    for gpu in &topology.gpus {
        item(&mut out, &format!("GPU{}: {}", gpu.index, text::gpu(gpu)));
    }
    let tree = text::tree(topology);
    if !tree.is_empty() {
        // Device names never begin a line, so none can end the block.
        let _ = writeln!(out, "\n```\n{}\n```", tree.join("\n"));
    }
    let (titles, pairs) = text::matrix(topology);
    if !pairs.is_empty() {
        rows(&mut out, &titles, &pairs);
    }
    let (titles, access) = text::peer_access(topology);
    if !access.is_empty() {
        rows(&mut out, &titles, &access);
    }
    out.push('\n');
    for sentence in text::refused(topology) {
        item(&mut out, &sentence);
    }
    for remark in &topology.remarks {
        let word = if remark.is_warning { "**Warning:** " } else { "" };
        let remedy =
            remark.remedy.as_ref().map_or(String::new(), |remedy| format!(" *Fix:* {}", inline(remedy)));
        let _ = writeln!(out, "- {word}{}{remedy}", inline(&remark.text));
    }
    out
}
