//! The topology on the terminal.

use busbound_machine::topology::Topology;

use super::{hanging, headline, rows};
use crate::text::topology as text;

/// A machine, `width` columns wide.
pub(crate) fn topology_as_terminal(topology: &Topology, width: u16) -> String {
    let mut out = String::new();
    headline(&mut out, &text::statement(topology), width);
    hanging(&mut out, "  from      ", &topology.source, width);
    hanging(&mut out, "  host      ", &text::host(topology), width);
    if let Some(fabric) = text::fabric(topology) {
        hanging(&mut out, "  fabric    ", &fabric, width);
    }
    for gpu in &topology.gpus {
        hanging(&mut out, &format!("  {:<9} ", format!("GPU{}", gpu.index)), &text::gpu(gpu), width);
    }
    let tree = text::tree(topology);
    if !tree.is_empty() {
        out.push('\n');
        for branch in tree {
            // What does not fit continues below the device, indented.
            let device = branch.trim_start();
            let depth = branch.len() - device.len();
            hanging(&mut out, &" ".repeat(2 + depth), device, width);
        }
    }
    let (titles, pairs) = text::matrix(topology);
    if !pairs.is_empty() {
        out.push('\n');
        rows(&mut out, &titles, &pairs, width);
    }
    let (titles, access) = text::peer_access(topology);
    if !access.is_empty() {
        out.push('\n');
        rows(&mut out, &titles, &access, width);
    }
    for sentence in text::refused(topology) {
        hanging(&mut out, "  · ", &sentence, width);
    }
    if !topology.remarks.is_empty() {
        out.push('\n');
    }
    for remark in &topology.remarks {
        let head = if remark.is_warning { "  ! " } else { "  · " };
        hanging(&mut out, head, &remark.text, width);
        if let Some(remedy) = &remark.remedy {
            hanging(&mut out, "    → ", remedy, width);
        }
    }
    out.push('\n');
    out
}
