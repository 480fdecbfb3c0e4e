//! Two timelines in one drawing: streams as they were, and as they would be, on one scale.

use std::fmt::Write;

use busbound_diagnosis::{PredictedTimeline, TimelineWork};

use super::{COLOURS, escaped, page};

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 110.0;
const LANE: f64 = 26.0;

/// Both timelines as a page.
pub fn timeline_as_html(timeline: &PredictedTimeline) -> String {
    let measured: Vec<Placed<'_>> =
        timeline.work.iter().map(|work| Placed { work, at: work.measured }).collect();
    let predicted: Vec<Placed<'_>> =
        timeline.work.iter().filter_map(|work| Some(Placed { work, at: work.predicted? })).collect();
    let end = measured.iter().chain(&predicted).map(|placed| placed.at.2).max().unwrap_or(1).max(1);
    let mut out = String::new();
    let mut top = 24.0;
    let body = lanes("measured", &measured, end, &mut top)
        + &lanes(&format!("predicted: {}", timeline.changes), &predicted, end, &mut top);
    let _ = write!(
        out,
        "<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"the device's work as it was and as predicted\">\n{body}</svg>",
        top + 4.0
    );
    let title = format!("As it was, and with {}", timeline.changes);
    let key = "Kernels blue, copies to the device orange, copies to the host green; the same scale in both. \
               Hover for names and times; what is thinner than a line is drawn as one."
        .to_owned();
    page(&title, &[title.clone(), key], &out, &[])
}

struct Placed<'a> {
    work: &'a TimelineWork,
    at: (usize, i64, i64),
}

fn lanes(title: &str, work: &[Placed<'_>], end: i64, top: &mut f64) -> String {
    let x = |ns: i64| LEFT + (WIDTH - LEFT - 4.0) * ns as f64 / end as f64;
    let last = work.iter().map(|placed| placed.at.2).max().unwrap_or(0);
    let mut out = format!(
        "<text x=\"0\" y=\"{:.1}\" font-weight=\"bold\">{} ({:.1} ms in all)</text>\n",
        *top - 6.0,
        escaped(title),
        last as f64 / 1e6
    );
    let mut streams: Vec<usize> = work.iter().map(|placed| placed.at.0).collect();
    streams.sort_unstable();
    streams.dedup();
    for stream in streams {
        let _ = writeln!(out, "<text x=\"0\" y=\"{:.1}\">stream {stream}</text>", *top + 15.0);
        // Work closer together than half a pixel is one rectangle.
        let mut drawn = f64::NEG_INFINITY;
        for placed in work.iter().filter(|placed| placed.at.0 == stream) {
            let (from, to) = (x(placed.at.1), x(placed.at.2).max(x(placed.at.1) + 0.4));
            if to <= drawn + 0.4 {
                continue;
            }
            drawn = to;
            let _ = writeln!(
                out,
                "<rect class=\"work\" x=\"{from:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{}\" fill=\"{}\"><title>{}, {:.3} ms</title></rect>",
                *top,
                to - from,
                LANE - 6.0,
                colour(&placed.work.name),
                escaped(&placed.work.name),
                (placed.at.2 - placed.at.1) as f64 / 1e6
            );
        }
        *top += LANE;
    }
    *top += 30.0;
    out
}

fn colour(name: &str) -> &'static str {
    match name {
        _ if name.starts_with("Memcpy HtoD") => COLOURS[1],
        _ if name.starts_with("Memcpy DtoH") => COLOURS[2],
        _ if name.starts_with("Mem") => COLOURS[6],
        _ => COLOURS[0],
    }
}
