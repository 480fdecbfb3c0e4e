//! The tables of copies: by rate and by size, on the GPU and as operators of the host.

use busbound_diagnosis::quantity::{bytes, count, milliseconds, printable};
use busbound_diagnosis::{CopyGroup, CpuCopies, CpuCopyClass, Diagnosis, HistogramBin, SizeClass, Unit};

use super::Table;

/// What is not known or does not apply.
const NONE: &str = "–";

fn gbps(rate: f64) -> String {
    format!("{rate:.2} GB/s")
}

/// Whether the copies, or the host in their calls, take half a percent of the time.
pub(crate) fn matters(group: &CopyGroup, diagnosis: &Diagnosis) -> bool {
    group.total_ms.max(group.blocking.ms) > 0.005 * diagnosis.time.analyzed_ms
}

/// The copies over the bus that take time.
pub(crate) fn bus_copies(diagnosis: &Diagnosis) -> Vec<&CopyGroup> {
    let is_shown = |group: &&CopyGroup| group.utilization.is_some() && matters(group, diagnosis);
    diagnosis.copies.iter().filter(is_shown).collect()
}

/// How the rates of bus copies scatter.
pub(crate) fn rates(diagnosis: &Diagnosis) -> Table {
    let row = |group: &&CopyGroup| {
        let rates = group.gbps?;
        let of_link = group.utilization.map_or(NONE.to_owned(), |share| format!("{:.0}%", 100.0 * share));
        let busy = group.busy_ms / diagnosis.time.analyzed_ms.max(f64::MIN_POSITIVE);
        Some(vec![
            group.kind(),
            gbps(rates.weighted),
            gbps(rates.p10),
            gbps(rates.p50),
            gbps(rates.p90),
            of_link,
            format!("{:.0}%", 100.0 * busy),
        ])
    };
    let rows = bus_copies(diagnosis).iter().filter_map(row).collect();
    Table {
        titles: vec!["rates of copies", "all", "P10", "median", "P90", "of the link", "of the time"],
        rows,
    }
}

/// Bus copies by size, with the rate expected for that size.
pub(crate) fn sizes(diagnosis: &Diagnosis) -> Table {
    let rows = bus_copies(diagnosis).into_iter().flat_map(|group| size_rows(group.kind(), &group.sizes));
    Table { titles: size_titles(diagnosis), rows: rows.collect() }
}

fn size_titles(diagnosis: &Diagnosis) -> Vec<&'static str> {
    let title = match diagnosis.unit() {
        Unit::Step => "copies by size, analyzed steps",
        Unit::Iteration => "copies by size, analyzed iterations",
        _ => "copies by size, whole trace",
    };
    vec![title, "count", "bytes", "time", "rate", "expected (pinned)"]
}

fn size_rows(kind: String, classes: &[SizeClass]) -> impl Iterator<Item = Vec<String>> {
    classes.iter().map(move |class| {
        vec![
            format!("{kind}, {}", class.label),
            count(class.count),
            bytes(class.bytes),
            milliseconds(class.ms),
            gbps(class.gbps),
            class.expected_gbps.map_or(NONE.to_owned(), gbps),
        ]
    })
}

/// Bus copies by rate.
pub(crate) fn histogram(diagnosis: &Diagnosis) -> Table {
    let rows = bus_copies(diagnosis).into_iter().flat_map(|group| bin_rows(group.kind(), &group.histogram));
    histogram_table(rows.collect())
}

fn histogram_table(rows: Vec<Vec<String>>) -> Table {
    Table { titles: vec!["copies by rate", "count", "bytes", "time"], rows }
}

fn bin_rows(kind: String, bins: &[HistogramBin]) -> impl Iterator<Item = Vec<String>> {
    bins.iter().filter(|bin| bin.count > 0).map(move |bin| {
        let range = match bin.to_gbps {
            Some(to) => format!("{kind}, {}–{to} GB/s", bin.from_gbps),
            None => format!("{kind}, over {} GB/s", bin.from_gbps),
        };
        vec![range, count(bin.count), bytes(bin.bytes), milliseconds(bin.ms)]
    })
}

fn class_name(class: CpuCopyClass) -> &'static str {
    match class {
        CpuCopyClass::BusTransfer => "blocking, over the bus",
        CpuCopyClass::GpuInternal => "not over the bus",
        CpuCopyClass::AsynchronousLaunch => "asynchronous (launch)",
        CpuCopyClass::Undecided => "direction unknown",
    }
}

/// Copy operators in a trace without GPU events.
pub(crate) fn of_host(diagnosis: &Diagnosis) -> Table {
    let row = |sum: &CpuCopies| {
        let rate = sum.rates.map_or(NONE.to_owned(), |rates| {
            let spread = format!("P10/50/90 {:.2}/{:.2}/{:.2}", rates.p10, rates.p50, rates.p90);
            format!("{} ({spread})", gbps(rates.weighted))
        });
        let each = sum.each.map_or(NONE.to_owned(), |each| milliseconds(each.p50_us / 1e3));
        vec![
            class_name(sum.class).to_owned(),
            count(sum.count),
            bytes(sum.bytes),
            milliseconds(sum.host_ms),
            each,
            rate,
        ]
    };
    let rows = diagnosis.cpu_copies.iter().map(row).collect();
    let title = if diagnosis.step_count() > 1.0 { "copy operators, all steps" } else { "copy operators" };
    Table { titles: vec![title, "count", "bytes", "host time", "median each", "rate"], rows }
}

fn blocking(diagnosis: &Diagnosis) -> impl Iterator<Item = &CpuCopies> {
    diagnosis.cpu_copies.iter().filter(|sum| sum.class == CpuCopyClass::BusTransfer)
}

/// The same by size.
pub(crate) fn sizes_of_host(diagnosis: &Diagnosis) -> Table {
    let rows = blocking(diagnosis).flat_map(|sum| size_rows("blocking".to_owned(), &sum.sizes));
    Table { titles: size_titles(diagnosis), rows: rows.collect() }
}

/// The same by rate.
pub(crate) fn histogram_of_host(diagnosis: &Diagnosis) -> Table {
    let rows = blocking(diagnosis).flat_map(|sum| bin_rows("blocking".to_owned(), &sum.histogram));
    histogram_table(rows.collect())
}

/// The parts of the program that copy.
pub(crate) fn places_of_host(diagnosis: &Diagnosis) -> Table {
    let rows = diagnosis.cpu_copies.iter().filter(|sum| sum.class != CpuCopyClass::GpuInternal);
    let rows = rows.flat_map(|sum| {
        let how = if sum.class == CpuCopyClass::AsynchronousLaunch { "asynchronous" } else { "blocking" };
        sum.places.iter().map(move |place| {
            vec![
                printable(&place.place),
                how.to_owned(),
                count(place.count),
                bytes(place.bytes),
                milliseconds(place.host_ms),
            ]
        })
    });
    Table { titles: vec!["copies by place", "", "count", "bytes", "host time"], rows: rows.collect() }
}
