//! The sentences and tables of a benchmark.

use busbound_diagnosis::quantity::{bytes, milliseconds};
use busbound_diagnosis::{Benchmark, Offloaded, PlanErrors};
use busbound_machine::bench::{
    Cause, Direction, Engine, FigureUnit, Judgment, MeasuredFigure, Memory, Mode, Order, Pace,
};
use busbound_machine::{MachineProfile, MeasuredCurve};

use super::{Table, plural};

/// Copy sizes that get a column.
const SHOWN: [(u64, &str); 7] = [
    (4 << 10, "4 KiB"),
    (64 << 10, "64 KiB"),
    (1 << 20, "1 MiB"),
    (4 << 20, "4 MiB"),
    (16 << 20, "16 MiB"),
    (256 << 20, "256 MiB"),
    (1 << 30, "1 GiB"),
];

/// GB/s by memory and size.
pub(crate) fn curves(profile: &MachineProfile) -> Option<Table> {
    let columns: Vec<(u64, &'static str)> = SHOWN
        .into_iter()
        .filter(|(size, _)| {
            profile.curves.iter().any(|curve| curve.points.iter().any(|point| point.bytes == *size))
        })
        .collect();
    let mut titles = vec!["GB/s"];
    titles.extend(columns.iter().map(|(_, title)| *title));
    let row = |curve: &MeasuredCurve| {
        let cells = columns.iter().map(|(size, _)| {
            let point = curve.points.iter().find(|point| point.bytes == *size);
            point.map_or("–".to_owned(), |point| two_digits(point.gbps))
        });
        std::iter::once(curve_name(curve)).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = profile.curves.iter().map(row).collect();
    (!rows.is_empty()).then_some(Table { titles, rows })
}

/// `pinned to device, one at a time`.
pub(crate) fn curve_name(curve: &MeasuredCurve) -> String {
    let direction = match curve.direction {
        Direction::H2d => "to device",
        Direction::D2h => "to host",
    };
    let mut name = format!("{} {direction}", curve.memory.words());
    match (curve.engine, curve.memory) {
        (Engine::Kernel, _) => name.push_str(", by kernel"),
        (Engine::CopyEngine, Memory::Managed) => name.push_str(", migrated"),
        (Engine::CopyEngine, _) => {}
    }
    if curve.pace == Pace::Single && curve.memory != Memory::Managed {
        name.push_str(", one at a time");
    }
    name
}

fn two_digits(value: f64) -> String {
    match value {
        ..9.995 => format!("{value:.2}"),
        ..999.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// `55.4 GB/s` and `copies to the device: OK (expected 55.5; 88% of PCIe 5 x16's 63.0)`.
pub(crate) fn figure(figure: &MeasuredFigure) -> (String, String) {
    let value = match figure.unit {
        FigureUnit::Count => format!("{:.0}", figure.measured),
        FigureUnit::Times => format!("{:.2}x", figure.measured),
        FigureUnit::Kibibytes if figure.measured >= 1024.0 => {
            format!("{:.0} MiB", figure.measured / 1024.0)
        }
        FigureUnit::Kibibytes => format!("{:.0} KiB", figure.measured),
        unit @ (FigureUnit::GigabytesPerSecond | FigureUnit::Microseconds) => {
            format!("{} {}", two_digits(figure.measured), unit.sign())
        }
    };
    let word = if figure.judgment == Judgment::Low { "too low" } else { "OK" };
    let expectation = match expectation(figure) {
        none if none.is_empty() => none,
        expected => format!(": {word} (expected {expected})"),
    };
    (value, format!("{}{expectation}", figure.what))
}

/// `55.5; 88% of PCIe 5 x16's 63.0`; empty if nothing is expected.
pub(crate) fn expectation(figure: &MeasuredFigure) -> String {
    match (figure.expected, &figure.expected_from) {
        (Some(expected), Some(from)) => format!("{}; {from}", two_digits(expected)),
        _ => String::new(),
    }
}

/// Possible causes of a result below its expectation. For other results they are only in the documentation.
pub(crate) fn causes(figure: &MeasuredFigure) -> Vec<String> {
    if figure.judgment != Judgment::Low {
        return Vec::new();
    }
    let line = |cause: &Cause| {
        format!("{}{}. Check: {}", if cause.seen { "Detected: " } else { "" }, cause.why, cause.check)
    };
    figure.causes.iter().map(line).collect()
}

/// How accurate `plan offload` was on this machine, one sentence per memory kind.
pub(crate) fn plan_errors(bench: &Benchmark) -> Vec<String> {
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let sentence = |errors: &PlanErrors| {
        let mut text = format!(
            "`plan offload` with this profile, compared with {} measured from {} memory: median error {}, max {}",
            plural(errors.count as u64, "step", "steps"),
            errors.memory.words(),
            percent(errors.median),
            percent(errors.worst)
        );
        if errors.memory == Memory::Pageable {
            text.push_str(&format!(
                "; with the host rate measured just before each step, which varies: median error {}, max {}",
                percent(errors.median_at_rate),
                percent(errors.worst_at_rate)
            ));
        }
        text
    };
    bench.offload_errors.iter().map(sentence).collect()
}

/// Predicted and measured steps; with `most`, only those with the largest prediction errors.
pub(crate) fn offload(bench: &Benchmark, most: Option<usize>) -> Option<Table> {
    let mut all: Vec<&Offloaded> = bench.offload.iter().collect();
    if let Some(most) = most.filter(|most| *most < all.len()) {
        all.sort_by(|a, b| b.error.abs().total_cmp(&a.error.abs()));
        all.truncate(most);
    }
    let titles =
        vec!["offloaded step", "layers", "compute", "measured", "predicted", "error", "error at host rate"];
    let rows: Vec<Vec<String>> = all
        .into_iter()
        .map(|one| {
            let order = match one.order {
                Order::Blocking => "blocking".to_owned(),
                Order::OneStream => "one stream".to_owned(),
                Order::Prefetched => format!("{} ahead", one.depth),
            };
            vec![
                format!("{}, {order}", one.memory.words()),
                format!("{} × {}", one.layers, bytes(one.bytes)),
                milliseconds(one.compute_ms),
                milliseconds(one.step_ms.median),
                milliseconds(one.predicted_ms),
                format!("{:+.1}%", 100.0 * one.error),
                format!("{:+.1}%", 100.0 * one.error_at_rate),
            ]
        })
        .collect();
    (!rows.is_empty()).then_some(Table { titles, rows })
}

pub(crate) fn double_buffer(bench: &Benchmark) -> Option<Table> {
    let titles = vec!["compute to copy", "serialized", "double buffered", "gain", "predicted gain"];
    let rows: Vec<Vec<String>> = bench
        .double_buffer
        .iter()
        .map(|one| {
            vec![
                format!("{}", one.compute_to_copy),
                milliseconds(one.naive_ms),
                milliseconds(one.buffered_ms),
                format!("{:.2}x", one.gain),
                format!("{:.2}x", one.predicted_gain),
            ]
        })
        .collect();
    (!rows.is_empty()).then_some(Table { titles, rows })
}

/// The machine and software it was measured on.
pub(crate) fn measured_on(bench: &Benchmark) -> String {
    let profile = &bench.profile;
    let mut parts = Vec::new();
    if let Some(identity) = &profile.identity {
        parts.push(format!("driver {}, CUDA {}", identity.driver, identity.cuda));
        parts.push(identity.host_cpu.clone());
        if identity.virtual_machine == Some(true) {
            parts.push("virtual machine".to_owned());
        }
        parts.push(match (&identity.pinned_to_cpus, identity.numa_node) {
            (Some(cpus), Some(node)) => format!("bound to CPUs {cpus} of NUMA node {node}"),
            (Some(cpus), None) => format!("bound to CPUs {cpus}, NUMA node unknown"),
            (None, _) => {
                "CPU binding unchanged: the CPUs near the GPU are unknown, or the process was already bound"
                    .to_owned()
            }
        });
    }
    parts.extend(profile.date.clone());
    parts.join(", ")
}

pub(crate) fn took(bench: &Benchmark) -> String {
    let mode = match bench.mode {
        Mode::Quick => "quick benchmark",
        Mode::Full => "full benchmark",
    };
    let stopped = if bench.interrupted { ", interrupted" } else { "" };
    format!(
        "{mode}, {:.1} s{stopped}; max memory used: {} on the GPU, {} on the host",
        bench.wall_s,
        bytes(bench.device_bytes),
        bytes(bench.host_bytes)
    )
}

pub(crate) fn skipped(bench: &Benchmark) -> Vec<String> {
    bench.skipped.iter().map(|skip| format!("{} skipped: {}", skip.suite.name(), skip.why)).collect()
}
