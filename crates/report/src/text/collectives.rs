//! What does a diagnosis say about collectives?

use busbound_diagnosis::quantity::{bytes, count, gigabytes_per_second, milliseconds, plural, printable};
use busbound_diagnosis::{CollectiveGroup, CopiesAround, CpuCollective, Diagnosis, NearCopies, Unit};

use super::Table;

/// Collectives by operation, message and process group.
pub(super) fn collectives(diagnosis: &Diagnosis) -> Table {
    /// Beyond these, the JSON has them.
    const SHOWN: usize = 12;
    let steps = diagnosis.step_count();
    let gbps = |rate: Option<f64>| rate.map_or("–".to_owned(), gigabytes_per_second);
    // Only a profile of several GPUs has what their all-reduce reaches.
    let is_measured = diagnosis.collectives.iter().any(|group| group.measured_busbw_gbps.is_some());
    let row = |group: &CollectiveGroup| {
        let number = group.count as f64 / steps;
        let mut row = vec![
            collective_name(group),
            if number.fract() == 0.0 { count(number as u64) } else { format!("{number:.1}") },
            milliseconds(group.ms / steps),
            group.waiting_ms.map_or("–".to_owned(), |ms| milliseconds(ms / steps)),
            gbps(group.algbw_gbps),
            gbps(group.busbw_gbps),
            group.share_of_link.map_or("–".to_owned(), |share| format!("{:.0}%", 100.0 * share)),
        ];
        row.extend(is_measured.then(|| gbps(group.measured_busbw_gbps)));
        row
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
        let mut last = vec!["–".to_owned(); 7 + usize::from(is_measured)];
        last[0] = format!("{} more kinds (--format json)", rest.len());
        last[2] = milliseconds(ms / steps);
        rows.push(last);
    }
    let mut titles = vec![title, "count", "time", "waiting", "algbw", "busbw", "of link"];
    titles.extend(is_measured.then_some("bench"));
    Table { titles, rows }
}

/// `40 copies (6.72 GB), median 3.75 ms before`.
fn near(copies: u64, moved: u64, gap_ms: Option<f64>, side: &str) -> String {
    gap_ms.map_or("–".to_owned(), |gap| {
        let copies = plural(copies, "copy", "copies");
        format!("{copies} ({}), median {} {side}", bytes(moved), milliseconds(gap))
    })
}

/// Copies before and after collectives.
pub(super) fn copies_around(diagnosis: &Diagnosis) -> Table {
    let row = |around: &CopiesAround| {
        let size = around.bytes.map_or(String::new(), |size| format!(" {}", bytes(size)));
        let side = |near_by: &NearCopies, side| near(near_by.copies, near_by.bytes, near_by.gap_ms, side);
        vec![
            format!("{}{size}", around.op.label()),
            count(around.count),
            side(&around.before, "before"),
            side(&around.after, "after"),
        ]
    };
    let rows = diagnosis.copies_around.iter().map(row).collect();
    Table { titles: vec!["copies around collectives", "count", "H2D before", "D2H after"], rows }
}

/// Collectives that the host issued in a trace without GPU events.
pub(super) fn of_host(diagnosis: &Diagnosis) -> Table {
    const SHOWN: usize = 12;
    let row = |issued: &CpuCollective| {
        let copies = near(issued.copies_before, issued.copied_bytes, issued.gap_ms, "before");
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
