//! What does a diagnosis say about collectives?

use busbound_diagnosis::quantity::{bytes, count, milliseconds, plural, printable};
use busbound_diagnosis::{CollectiveGroup, CpuCollective, Diagnosis, Unit};

use super::Table;

/// Collectives by operation, message and process group.
pub(super) fn collectives(diagnosis: &Diagnosis) -> Table {
    /// Beyond these, the JSON has them.
    const SHOWN: usize = 12;
    let steps = diagnosis.step_count();
    let gbps = |rate: Option<f64>| rate.map_or("–".to_owned(), |rate| format!("{rate:.1} GB/s"));
    let row = |group: &CollectiveGroup| {
        let number = group.count as f64 / steps;
        vec![
            collective_name(group),
            if number.fract() == 0.0 { count(number as u64) } else { format!("{number:.1}") },
            milliseconds(group.ms / steps),
            group.waiting_ms.map_or("–".to_owned(), |ms| milliseconds(ms / steps)),
            gbps(group.algbw_gbps),
            gbps(group.busbw_gbps),
            group.share_of_link.map_or("–".to_owned(), |share| format!("{:.0}%", 100.0 * share)),
        ]
    };
    let title = match diagnosis.unit() {
        Unit::Step => "collectives, per step",
        Unit::Iteration => "collectives, per iteration",
        Unit::Trace => "collectives, whole trace",
    };
    let mut rows: Vec<Vec<String>> = diagnosis.collectives.iter().take(SHOWN).map(row).collect();
    let rest = diagnosis.collectives.get(SHOWN..).unwrap_or_default();
    if !rest.is_empty() {
        let ms: f64 = rest.iter().map(|group| group.ms).sum();
        let mut last = vec!["–".to_owned(); 7];
        last[0] = format!("{} more kinds (--format json)", rest.len());
        last[2] = milliseconds(ms / steps);
        rows.push(last);
    }
    Table { titles: vec![title, "count", "time", "waiting", "algbw", "busbw", "of link"], rows }
}

/// Collectives that the host issued in a trace without GPU events.
pub(super) fn of_host(diagnosis: &Diagnosis) -> Table {
    const SHOWN: usize = 12;
    let row = |issued: &CpuCollective| {
        let copies = match issued.gap_ms {
            Some(gap) => format!(
                "{} ({}), median {} before",
                plural(issued.copies_before, "copy", "copies"),
                bytes(issued.copied_bytes),
                milliseconds(gap)
            ),
            None => "–".to_owned(),
        };
        vec![printable(&issued.name), count(issued.count), milliseconds(issued.host_ms), copies]
    };
    let rows = diagnosis.cpu_collectives.iter().take(SHOWN).map(row).collect();
    Table { titles: vec!["communication, as issued", "count", "host time", "copies before it"], rows }
}

/// `all-reduce 26.2 MB, 8 ranks`.
fn collective_name(group: &CollectiveGroup) -> String {
    let mut name = group.op.label().to_owned();
    if let Some(size) = group.bytes {
        name.push_str(&format!(" {}", bytes(size)));
    }
    if let Some(ranks) = group.ranks {
        name.push_str(&format!(", {ranks} ranks"));
    }
    // The default group is the usual one.
    if let Some(group) = group.group.as_deref().filter(|name| !["0", "default_pg"].contains(name)) {
        name.push_str(&format!(", {}", printable(group)));
    }
    name
}
