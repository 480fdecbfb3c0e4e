//! A benchmark as a page: its verdicts as a table, and its curves in charts of at most four, labeled at their ends.

use std::fmt::Write;

use askama::Template;
use busbound_diagnosis::Benchmark;
use busbound_machine::bench::{Direction, Engine, Judgment, MeasuredFigure, Memory, Pace};
use busbound_machine::{MachineProfile, MeasuredCurve};

use super::escape::escaped;
use super::filters;
use super::grid::Grid;
use super::page;
use crate::error::RenderError;
use crate::text::bench as text;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 230.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 40.0;
/// Curves of one chart.
const MOST: usize = 4;

#[derive(Template)]
#[template(path = "bench.html")]
struct BenchView {
    statement: String,
    facts: Vec<String>,
    rows: Vec<Verdict>,
    /// Title and SVG of each, already escaped.
    charts: Vec<(String, String)>,
    /// Heading and table of each.
    tables: Vec<(&'static str, Grid)>,
}

struct Verdict {
    what: String,
    measured: String,
    expected: String,
    verdict: &'static str,
    is_low: bool,
    causes: Vec<String>,
}

/// Benchmark results as a page.
pub(super) fn bench_as_html(bench: &Benchmark) -> Result<String, RenderError> {
    let profile = &bench.profile;
    let scale = Scale::of(profile);
    let charts = scale.iter().flat_map(|scale| {
        let groups = groups(profile).into_iter();
        groups.map(|(title, curves)| (title, plot(profile, scale, &curves)))
    });
    let view = BenchView {
        statement: bench.statement.clone(),
        facts: vec![text::measured_on(bench), text::took(bench)],
        rows: bench.figures.iter().map(verdict).collect(),
        charts: charts.collect(),
        tables: tables(bench),
    };
    page(&format!("{}: measured bandwidth and latency", profile.gpu), &view.render()?, false)
}

/// What the charts draw, in numbers, and what no chart shows.
fn tables(bench: &Benchmark) -> Vec<(&'static str, Grid)> {
    let all = [
        ("Rates by size", text::curves(&bench.profile)),
        ("Double buffering", text::double_buffer(bench)),
        ("Offloaded steps", text::offload(bench, None)),
    ];
    all.into_iter().filter_map(|(heading, table)| Some((heading, table?.into()))).collect()
}

fn verdict(figure: &MeasuredFigure) -> Verdict {
    let expected = text::expectation(figure);
    Verdict {
        what: figure.what.clone(),
        measured: text::figure(figure).0,
        verdict: match (figure.judgment, expected.is_empty()) {
            (Judgment::Low, _) => "too low",
            (_, false) => "OK",
            _ => "–",
        },
        expected,
        is_low: figure.judgment == Judgment::Low,
        causes: text::causes(figure),
    }
}

/// Curves that are read together, with what they have in common; every curve is in one group.
fn groups(profile: &MachineProfile) -> Vec<(String, Vec<&MeasuredCurve>)> {
    let kinds = [
        (Engine::CopyEngine, Pace::BackToBack, "Copies back to back"),
        (Engine::CopyEngine, Pace::Single, "One copy at a time"),
        (Engine::Kernel, Pace::BackToBack, "By a kernel that reads or writes host memory"),
        (Engine::Kernel, Pace::Single, "By a kernel that reads or writes host memory, one at a time"),
    ];
    let mut groups = Vec::new();
    for (engine, pace, title) in kinds {
        let mut curves: Vec<&MeasuredCurve> =
            profile.curves.iter().filter(|curve| (curve.engine, curve.pace) == (engine, pace)).collect();
        curves.sort_by_key(|curve| curve.memory as usize);
        for chunk in curves.chunks(MOST) {
            let mut memories: Vec<&str> = chunk.iter().map(|curve| curve.memory.words()).collect();
            memories.dedup();
            groups.push((format!("{title}: {}", memories.join(", ")), chunk.to_vec()));
        }
    }
    groups
}

/// Maps sizes and rates to coordinates.
struct Scale {
    sizes: (f64, f64),
    rates: (f64, f64),
}

impl Scale {
    fn of(profile: &MachineProfile) -> Option<Self> {
        let points = || profile.curves.iter().flat_map(|curve| &curve.points);
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let sizes = (
            least(&mut points().map(|p| p.bytes as f64)),
            points().map(|p| p.bytes as f64).fold(0.0, f64::max),
        );
        let low = least(&mut points().map(|p| p.gbps)).max(0.01);
        (sizes.1 > sizes.0).then_some(Self { sizes, rates: (low, 1.3 * profile.peak_gbps) })
    }

    fn x(&self, bytes: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (bytes / self.sizes.0).ln() / (self.sizes.1 / self.sizes.0).ln()
    }

    fn y(&self, gbps: f64) -> f64 {
        let share = (gbps.max(self.rates.0) / self.rates.0).ln() / (self.rates.1 / self.rates.0).ln();
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share
    }
}

fn plot(profile: &MachineProfile, scale: &Scale, curves: &[&MeasuredCurve]) -> String {
    let names: Vec<String> = curves.iter().map(|curve| text::curve_name(curve)).collect();
    let mut out = format!(
        "<svg class=\"curves\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Copy rate in GB/s by copy size: {}\">\n",
        escaped(&names.join("; "))
    );
    grid(&mut out, profile, scale);
    // Labels that would touch are moved apart.
    let end = |curve: &MeasuredCurve| curve.points.last().map_or(0.0, |point| scale.y(point.gbps));
    let mut order: Vec<usize> = (0..curves.len()).collect();
    order.sort_by(|a, b| end(curves[*a]).total_cmp(&end(curves[*b])));
    let mut lowest = f64::NEG_INFINITY;
    for index in order {
        lowest = end(curves[index]).max(lowest + 15.0);
        draw(&mut out, scale, curves[index], lowest);
    }
    out.push_str("</svg>");
    out
}

fn grid(out: &mut String, profile: &MachineProfile, scale: &Scale) {
    for power in (8..=30).step_by(2) {
        let bytes = f64::from(power).exp2();
        if bytes >= scale.sizes.0 && bytes <= scale.sizes.1 {
            let (x, bottom) = (scale.x(bytes), HEIGHT - BOTTOM);
            let label = match power {
                ..10 => format!("{bytes} B"),
                10..20 => format!("{} KiB", bytes / 1024.0),
                20..30 => format!("{} MiB", bytes / 1_048_576.0),
                _ => format!("{} GiB", bytes / 1_073_741_824.0),
            };
            let _ = writeln!(
                out,
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                bottom + 18.0
            );
        }
    }
    for gbps in [0.01, 0.1, 1.0, 10.0, 100.0]
        .into_iter()
        .filter(|gbps| (scale.rates.0..=scale.rates.1).contains(gbps))
    {
        let y = scale.y(gbps);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{gbps} GB/s</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0
        );
    }
    let peak = scale.y(profile.peak_gbps);
    let _ = writeln!(
        out,
        "<line class=\"axis\" stroke-dasharray=\"6 4\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{peak:.1}\" y2=\"{peak:.1}\"/><text x=\"{LEFT}\" y=\"{:.1}\">{}: {:.1} GB/s per direction</text>",
        WIDTH - RIGHT,
        peak - 6.0,
        escaped(&profile.link),
        profile.peak_gbps
    );
}

/// The color of a memory and direction, as on the pages of traces.
fn color(curve: &MeasuredCurve) -> &'static str {
    match (curve.memory, curve.direction) {
        (Memory::Pinned, Direction::H2d) => "h2d",
        (Memory::Pinned, Direction::D2h) => "d2h",
        (Memory::Pageable, _) => "pageable",
        (Memory::Registered, _) => "link",
        (Memory::WriteCombined, _) => "text",
        (Memory::Managed, _) => "faint",
    }
}

fn draw(out: &mut String, scale: &Scale, curve: &MeasuredCurve, label: f64) {
    // H2D is solid, D2H is dashed.
    let dash = if curve.direction == Direction::H2d { "" } else { " stroke-dasharray=\"7 3\"" };
    let points: Vec<String> = curve
        .points
        .iter()
        .map(|point| format!("{:.1},{:.1}", scale.x(point.bytes as f64), scale.y(point.gbps)))
        .collect();
    let (name, color) = (escaped(&text::curve_name(curve)), color(curve));
    let _ = writeln!(
        out,
        "<polyline class=\"curve\" fill=\"none\" style=\"stroke:var(--{color})\" stroke-width=\"2\"{dash} points=\"{}\"><title>{name}</title></polyline>",
        points.join(" ")
    );
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" style=\"fill:var(--{color})\">{name}</text>",
        WIDTH - RIGHT + 8.0,
        label + 4.0
    );
}
