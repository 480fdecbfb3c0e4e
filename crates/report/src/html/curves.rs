//! A benchmark's curves: rate over copy size on log-log axes, with the link's peak.

use std::fmt::Write;

use busbound_diagnosis::Benchmark;
use busbound_machine::bench::{Engine, Pace};
use busbound_machine::{MachineProfile, MeasuredCurve};

use super::escape::escaped;
use super::page;
use crate::error::RenderError;
use crate::text::bench as text;

const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 560.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 320.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 45.0;

/// Colors that color-blind readers can distinguish (Okabe and Ito).
const COLORS: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#7f7f7f", "#f0e442"];

/// Benchmark results as a page.
pub(super) fn bench_as_html(bench: &Benchmark) -> Result<String, RenderError> {
    let figures = bench.figures.iter().map(|figure| {
        let (value, words) = text::figure(figure);
        format!("<li>{}</li>\n", escaped(&format!("{value}: {words}")))
    });
    let body = format!(
        "<article class=\"run\"><header><h1>{}</h1></header>\n<p>{}</p>\n<p>{}</p>\n{}\n<ul>\n{}</ul></article>\n",
        escaped(&bench.statement),
        escaped(&text::measured_on(bench)),
        escaped(&text::took(bench)),
        plot(&bench.profile),
        figures.collect::<String>()
    );
    page(&format!("{}: measured bandwidth and latency", bench.profile.gpu), &body, false)
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

fn plot(profile: &MachineProfile) -> String {
    let Some(scale) = Scale::of(profile) else { return String::new() };
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Copy rate in GB/s by copy size\">\n"
    );
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
    for (i, curve) in profile.curves.iter().enumerate() {
        draw(&mut out, &scale, curve, i);
    }
    out.push_str("</svg>");
    out
}

fn draw(out: &mut String, scale: &Scale, curve: &MeasuredCurve, number: usize) {
    let color = COLORS[curve.memory as usize % COLORS.len()];
    // H2D is solid, D2H is dashed; copies by a kernel or one at a time are thinner.
    let dash = if curve.direction == busbound_machine::bench::Direction::H2d {
        ""
    } else {
        " stroke-dasharray=\"7 3\""
    };
    let is_plain = curve.engine == Engine::CopyEngine && curve.pace == Pace::BackToBack;
    let width = if is_plain { 2.4 } else { 1.0 };
    let points: Vec<String> = curve
        .points
        .iter()
        .map(|point| format!("{:.1},{:.1}", scale.x(point.bytes as f64), scale.y(point.gbps)))
        .collect();
    let name = text::curve_name(curve);
    let _ = writeln!(
        out,
        "<polyline class=\"curve\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"{dash} points=\"{}\"><title>{}</title></polyline>",
        points.join(" "),
        escaped(&name)
    );
    let y = TOP + 14.0 + 18.0 * number as f64;
    let x = WIDTH - RIGHT + 14.0;
    let _ = writeln!(
        out,
        "<line stroke=\"{color}\" stroke-width=\"{width}\"{dash} x1=\"{x}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/><text x=\"{}\" y=\"{y}\">{}</text>",
        x + 28.0,
        y - 4.0,
        y - 4.0,
        x + 34.0,
        escaped(&name)
    );
}
