//! How are the waits of layers for their copies worded?

use std::collections::BTreeSet;

use busbound_diagnosis::quantity::{bytes, milliseconds};
use busbound_diagnosis::{Diagnosis, LayerWait, NamedBy};

use super::Table;

/// Rows of the table: the layers that waited longest.
const SHOWN: usize = 24;

/// Which layer waited how long for its copies, in the order in which they run.
pub(crate) fn waits(diagnosis: &Diagnosis) -> Table {
    let Some(waits) = &diagnosis.layer_waits else { return Table { titles: Vec::new(), rows: Vec::new() } };
    let layers = match waits.named_by {
        NamedBy::Annotation | NamedBy::Module => "layers that wait for copies",
        NamedBy::Position => "waits for copies, by position",
    };
    let titles = vec![layers, "waited in", "median", "longest", "copies", "bytes"];
    let several = diagnosis.devices.len() > 1;
    let mut by_wait: Vec<usize> = (0..waits.layers.len()).collect();
    by_wait.sort_by(|a, b| total(&waits.layers[*b]).total_cmp(&total(&waits.layers[*a])).then(a.cmp(b)));
    let shown: BTreeSet<usize> = by_wait.into_iter().take(SHOWN).collect();
    let row = |layer: &LayerWait| {
        let gpu = if several { format!("GPU {} ", layer.device) } else { String::new() };
        vec![
            format!("{gpu}{}", layer.name),
            format!("{} of {}", layer.waited_in, waits.steps),
            milliseconds(layer.median_ms),
            milliseconds(layer.longest_ms),
            format!("{:.0}", layer.copies),
            bytes(layer.copy_bytes as u64),
        ]
    };
    let mut rows: Vec<Vec<String>> = shown.iter().map(|at| row(&waits.layers[*at])).collect();
    if waits.count > rows.len() {
        rows.push(vec![format!("… {} more: --format json", waits.count - rows.len())]);
    }
    let all = vec!["all layers, mean of steps".to_owned(), String::new(), milliseconds(waits.ms_per_step)];
    rows.push(all);
    Table { titles, rows }
}

/// What orders the layers that are shown if there are many.
fn total(layer: &LayerWait) -> f64 {
    layer.median_ms.max(layer.longest_ms / 2.0)
}
