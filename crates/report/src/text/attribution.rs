//! How is the attribution to blocks worded?

use busbound_diagnosis::quantity::milliseconds;
use busbound_diagnosis::{BlockTime, Diagnosis};

use super::Table;

/// Rows of the default tree: the largest blocks.
const DEFAULT_ROWS: usize = 12;
/// Blocks below this share of the step, on the GPU and on the host, are hidden in the default tree.
const SMALL: f64 = 0.01;

/// The tree of blocks: all if the user asked for it, else the largest.
pub(crate) fn blocks(diagnosis: &Diagnosis) -> Table {
    let Some(attribution) = &diagnosis.attribution else {
        return Table { titles: Vec::new(), rows: Vec::new() };
    };
    let step_ms = diagnosis.time.analyzed_ms / diagnosis.step_count() / diagnosis.devices.len().max(1) as f64;
    let large =
        |block: &&BlockTime| attribution.asked || block.share >= SMALL || block.host_ms > SMALL * step_ms;
    let shown: Vec<&BlockTime> = attribution.blocks.iter().filter(large).collect();
    let most = if attribution.asked { usize::MAX } else { DEFAULT_ROWS };
    let left_out = shown.len().saturating_sub(most);
    let mut rows: Vec<Vec<String>> = shown.into_iter().take(most).map(row).collect();
    if left_out > 0 {
        rows.push(vec![format!("… {left_out} more: --by or --depth"); 1]);
    }
    if attribution.outside.gpu_ms > 0.0 && !rows.is_empty() {
        rows.push(row(&attribution.outside));
    }
    let each = if diagnosis.window.steps.is_some() { "GPU" } else { "GPU total" };
    Table { titles: vec!["blocks", "runs", "host", each, "compute", "copies", "exposed", "GPU share"], rows }
}

/// How often it runs per step.
pub(crate) fn runs(block: &BlockTime) -> String {
    match block.count {
        n if n <= 0.0 => "–".to_owned(),
        n if (n - n.round()).abs() < 0.005 => format!("{n:.0}"),
        n => format!("{n:.2}"),
    }
}

fn row(block: &BlockTime) -> Vec<String> {
    let time = |ms: f64| if ms > 0.0 { milliseconds(ms) } else { "–".to_owned() };
    vec![
        tree_name(block),
        runs(block),
        time(block.host_ms),
        time(block.gpu_ms),
        time(block.compute_ms),
        time(block.copy_ms),
        time(block.exposed_ms),
        format!("{:.0}%", 100.0 * block.share),
    ]
}

/// Indented by depth, and short enough not to wrap, which would lose the indentation.
fn tree_name(block: &BlockTime) -> String {
    const MOST: usize = 32;
    let depth = block.depth.min(8);
    let room = MOST - 2 * depth;
    let mut name: String = block.name.chars().take(room).collect();
    if name.chars().count() < block.name.chars().count() {
        name.pop();
        name.push('…');
    }
    format!("{}{name}", "  ".repeat(depth))
}

/// The caution below the tree.
pub(crate) fn caution(diagnosis: &Diagnosis) -> Option<&str> {
    diagnosis.attribution.as_ref()?.synchronized.as_deref()
}
