//! The topology as Markdown.

use std::fmt::Write;

use busbound_machine::topology::Topology;

use super::rows;
use crate::text::topology as text;

/// A machine as a Markdown document.
pub fn topology_as_markdown(topology: &Topology) -> String {
    let mut out = format!("**{}**\n\n", text::statement(topology));
    let _ = writeln!(out, "- from: {}", topology.source);
    let _ = writeln!(out, "- host: {}", text::host(topology));
    for gpu in &topology.gpus {
        let _ = writeln!(out, "- GPU{}: {}", gpu.index, text::gpu(gpu));
    }
    let tree = text::tree(topology);
    if !tree.is_empty() {
        let _ = writeln!(out, "\n```\n{}\n```", tree.join("\n"));
    }
    let (titles, pairs) = text::matrix(topology);
    if !pairs.is_empty() {
        out.push('\n');
        rows(&mut out, &titles, &pairs);
    }
    out.push('\n');
    for sentence in text::refused(topology) {
        let _ = writeln!(out, "- {sentence}");
    }
    for remark in &topology.remarks {
        let word = if remark.is_warning { "**Warning:** " } else { "" };
        let remedy = remark.remedy.as_ref().map_or(String::new(), |remedy| format!(" *Remedy:* {remedy}"));
        let _ = writeln!(out, "- {word}{}{remedy}", remark.text);
    }
    out
}
