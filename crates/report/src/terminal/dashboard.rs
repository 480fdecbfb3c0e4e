//! How does a screen show the bus over time? A pure function of snapshots and size; the binary owns the terminal.

use std::collections::VecDeque;

use busbound_machine::live::{GpuHistory, GpuNow, History, Limits, RankWindow, Snapshot, ToWhere};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, RenderDirection, Sparkline, Widget};

use super::overlay::{self, AT_LIMIT, FULL, Help, NEAR};
use super::wrap::{broken, columns_of};
use crate::text::{top as text, windows};

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const TO_DEVICE: Style = Style::new().fg(Color::Cyan);
const TO_HOST: Style = Style::new().fg(Color::Magenta);
const WARNING: Style = Style::new().fg(Color::Yellow);

/// Rows of a GPU with a frame: two curves, two rows of figures, the frame.
const FRAMED: u16 = 7;
/// Rows of a GPU with curves but no frame.
const BARE: u16 = 4;
/// Columns before a curve: direction, rate, share.
const LABEL: u16 = 32;
/// A taller curve shows nothing more.
const HIGHEST_CURVE: u16 = 6;

/// What is on the screen.
#[derive(Debug, Clone, Copy)]
pub struct Dashboard<'a> {
    pub snapshot: &'a Snapshot,
    pub history: &'a History,
    /// The source of the data and its state, e.g. `replayed from log.jsonl, 7 of 20`.
    pub note: &'a str,
    /// From where on figures are colored.
    pub limits: &'a Limits,
    pub help: Help,
}

/// Draws one screen.
pub fn draw_dashboard(dashboard: &Dashboard<'_>, area: Rect, buffer: &mut Buffer) {
    let mut rest = area;
    head(dashboard, &mut rest, buffer);
    foot(dashboard.note, &mut rest, buffer);
    signs(dashboard.snapshot, &mut rest, buffer);
    gpus(dashboard, rest, buffer);
    overlay::draw(dashboard.help, dashboard.limits, area, buffer);
}

/// Takes rows from the top of what is left.
fn take_top(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    let taken = Rect { height: rows, ..*rest };
    rest.y += rows;
    rest.height -= rows;
    taken
}

fn take_bottom(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    rest.height -= rows;
    Rect { y: rest.y + rest.height, height: rows, ..*rest }
}

fn put(buffer: &mut Buffer, row: Rect, line: impl Into<String>, style: Style) {
    if row.height > 0 {
        Line::styled(cut(&line.into(), row.width), style).render(Rect { height: 1, ..row }, buffer);
    }
}

/// A line that does not fit ends in `…`, so that it does not look complete.
fn cut(line: &str, width: u16) -> String {
    let width = usize::from(width);
    if columns_of(line) <= width {
        return line.to_owned();
    }
    let mut kept = String::new();
    for c in line.chars() {
        if columns_of(&kept) + columns_of(c.encode_utf8(&mut [0; 4])) + 1 > width {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

fn head(dashboard: &Dashboard<'_>, rest: &mut Rect, buffer: &mut Buffer) {
    for line in broken(&text::statement(dashboard.snapshot), usize::from(rest.width)).into_iter().take(3) {
        let row = take_top(rest, 1);
        put(buffer, row, line, STRONG);
    }
}

fn foot(note: &str, rest: &mut Rect, buffer: &mut Buffer) {
    let row = take_bottom(rest, 1);
    put(buffer, row, format!("? help · q quits · {note}"), FAINT);
}

/// Training progress, the last windows of ranks and warnings, in at most a third of the screen.
fn signs(snapshot: &Snapshot, rest: &mut Rect, buffer: &mut Buffer) {
    let mut lines = Vec::new();
    for (file, beat) in text::training(snapshot) {
        lines.push((format!("training: {beat} ({file})"), Style::new()));
    }
    let most = usize::from(rest.height / 3).max(1);
    lines.extend(ranks(snapshot, (most / 2).max(1)));
    let width = usize::from(rest.width).saturating_sub(2);
    for sign in &snapshot.signs {
        for (i, line) in broken(&text::sign(sign).0, width).into_iter().enumerate() {
            lines.push((format!("{} {line}", if i == 0 { "!" } else { " " }), WARNING));
        }
    }
    if lines.len() > most {
        let left_out = lines.len() + 1 - most;
        lines.truncate(most - 1);
        lines.push((format!("… {left_out} more lines: use a taller terminal to see them"), WARNING));
    }
    let mut rows = take_bottom(rest, u16::try_from(lines.len()).unwrap_or(0));
    for (line, style) in lines {
        let row = take_top(&mut rows, 1);
        put(buffer, row, line, style);
    }
}

/// The last windows, what is fresh first; there may be thousands.
fn ranks(snapshot: &Snapshot, most: usize) -> Vec<(String, Style)> {
    let all = windows::fresh_first(snapshot);
    let fitting = if all.len() > most { most.saturating_sub(1) } else { most };
    let style = |window: &RankWindow| if window.is_stale { FAINT } else { Style::new() };
    let shown = all.iter().take(fitting).map(|window| (windows::short_line(window), style(window)));
    let mut lines: Vec<(String, Style)> = shown.collect();
    if all.len() > fitting {
        let statement = windows::statement(snapshot).unwrap_or_default();
        lines.push((format!("… and {} more ranks. {statement}", all.len() - fitting), Style::new()));
    }
    lines
}

fn gpus(dashboard: &Dashboard<'_>, mut rest: Rect, buffer: &mut Buffer) {
    let all = &dashboard.snapshot.gpus;
    let count = u16::try_from(all.len()).unwrap_or(u16::MAX).max(1);
    let each = (rest.height / count).max(1);
    let fitting = usize::from(rest.height / each);
    for (i, gpu) in all.iter().enumerate() {
        if i + 1 == fitting && all.len() > fitting {
            let row = take_top(&mut rest, 1);
            let more = format!("… and {} more GPUs: use a taller terminal to see them", all.len() - i);
            return put(buffer, row, more, FAINT);
        }
        let history = dashboard.history.gpu(i);
        match each {
            _ if gpu.lost.is_some() => {
                put_spans(buffer, take_top(&mut rest, 1), &one_line(gpu, dashboard.limits))
            }
            FRAMED.. => {
                let area = take_top(&mut rest, each.min(most_rows(gpu)));
                framed(gpu, history, dashboard.limits, area, buffer);
            }
            BARE.. => bare(gpu, history, dashboard.limits, take_top(&mut rest, each), buffer),
            _ => put_spans(buffer, take_top(&mut rest, each), &one_line(gpu, dashboard.limits)),
        }
    }
}

/// The most rows a frame can fill: the frame, the curves, three rows of figures, the processes.
fn most_rows(gpu: &GpuNow) -> u16 {
    let processes = u16::try_from(processes(gpu).len()).unwrap_or(u16::MAX);
    (2 + 2 * HIGHEST_CURVE + 3).saturating_add(processes)
}

fn title(gpu: &GpuNow) -> String {
    format!("GPU {}  {}  {}", gpu.index, text::name(gpu), text::link(gpu))
}

/// Parts of a line, each with its style.
type Spans = Vec<(String, Style)>;

fn plain(text: String) -> (String, Style) {
    (text, Style::new())
}

/// A line of several styles; like [`put`], it ends in `…` if it does not fit.
fn put_spans(buffer: &mut Buffer, row: Rect, spans: &Spans) {
    let whole: String = spans.iter().map(|(text, _)| text.as_str()).collect();
    let mut shown = cut(&whole, row.width);
    let mut line = Line::default();
    for (text, style) in spans {
        let end = text.char_indices().map(|(at, c)| at + c.len_utf8()).chain([0]);
        // What is cut off ends in another character than the part has there.
        let same = end.filter(|&end| shown.starts_with(&text[..end])).max().unwrap_or(0);
        let rest = shown.split_off(same);
        line.push_span(Span::styled(std::mem::replace(&mut shown, rest), *style));
    }
    line.push_span(Span::raw(shown));
    if row.height > 0 {
        line.render(Rect { height: 1, ..row }, buffer);
    }
}

/// The color of a share of something that has a limit.
fn near_limit(share: Option<f64>, limit: f64) -> Style {
    match share {
        Some(share) if share >= AT_LIMIT => FULL,
        Some(share) if share >= limit => NEAR,
        _ => Style::new(),
    }
}

/// Clocks that heat or the hardware lowers cost the most; an idle GPU is not throttled.
fn throttled(gpu: &GpuNow) -> Style {
    let reasons = gpu.throttled_by.as_deref().unwrap_or_default();
    let is_severe = |reason: &String| reason.contains("thermal") || reason.contains("hardware");
    match reasons {
        [] => Style::new(),
        [only] if only == "idle" => Style::new(),
        reasons if reasons.iter().any(is_severe) => FULL,
        _ => NEAR,
    }
}

fn memory_share(gpu: &GpuNow) -> Option<f64> {
    gpu.memory.map(|memory| memory.used_bytes as f64 / memory.total_bytes.max(1) as f64)
}

fn one_line(gpu: &GpuNow, limits: &Limits) -> Spans {
    if gpu.lost.is_some() {
        return vec![(title(gpu), FULL)];
    }
    let direction = |to| {
        let text = format!("{} {} ({})", text::rate(&gpu.bus, to), to.word(), text::share(&gpu.bus, to));
        (text, near_limit(gpu.bus.share(to), limits.bus_share))
    };
    vec![
        plain(format!("GPU {}  ", gpu.index)),
        direction(ToWhere::Device),
        plain(", ".to_owned()),
        direction(ToWhere::Host),
        plain(format!(", busy {}", text::busy(gpu.gpu_busy_percent))),
    ]
}

fn usage(gpu: &GpuNow, limits: &Limits) -> Spans {
    vec![
        plain(format!(
            "busy {}, memory busy {}, ",
            text::busy(gpu.gpu_busy_percent),
            text::busy(gpu.memory_busy_percent)
        )),
        (format!("{} used", text::memory(gpu)), near_limit(memory_share(gpu), limits.memory_above)),
        plain(format!(", {}", text::power(gpu))),
    ]
}

fn framed(gpu: &GpuNow, history: Option<&GpuHistory>, limits: &Limits, area: Rect, buffer: &mut Buffer) {
    let title = cut(&format!(" {} ", title(gpu)), area.width.saturating_sub(2));
    let block = Block::bordered().title(title).border_style(FAINT).title_style(STRONG);
    let mut rest = block.inner(area);
    block.render(area, buffer);
    let mut lines = vec![usage(gpu, limits), vec![(text::short_state(gpu), throttled(gpu))]];
    // Rows left after two rows of curves and two of figures.
    let spare = rest.height.saturating_sub(2 + 2);
    lines.extend((spare >= 1).then(|| vec![plain(text::short_basis(gpu))]));
    let running = processes(gpu).into_iter().map(|process| vec![plain(process)]);
    lines.extend(running.take(usize::from(spare.saturating_sub(1) / 2)));
    let mut rows = take_bottom(&mut rest, u16::try_from(lines.len()).unwrap_or(0));
    curves(gpu, history, limits, rest, buffer);
    for line in lines {
        put_spans(buffer, take_top(&mut rows, 1), &line);
    }
}

fn bare(gpu: &GpuNow, history: Option<&GpuHistory>, limits: &Limits, mut area: Rect, buffer: &mut Buffer) {
    put(buffer, take_top(&mut area, 1), title(gpu), STRONG);
    let figures = take_bottom(&mut area, 1);
    curves(gpu, history, limits, area, buffer);
    put_spans(buffer, figures, &usage(gpu, limits));
}

/// The current rates and their curves, one direction above the other.
fn curves(gpu: &GpuNow, history: Option<&GpuHistory>, limits: &Limits, area: Rect, buffer: &mut Buffer) {
    let height = (area.height / 2).clamp(1, HIGHEST_CURVE);
    let mut rest = area;
    for (to, style) in [(ToWhere::Device, TO_DEVICE), (ToWhere::Host, TO_HOST)] {
        let rows = take_top(&mut rest, height);
        let label =
            format!("{:<13} {:>10} {:>5}", to.word(), text::rate(&gpu.bus, to), text::share(&gpu.bus, to));
        let color = near_limit(gpu.bus.share(to), limits.bus_share);
        put(buffer, Rect { width: rows.width.min(LABEL), ..rows }, label, STRONG.patch(color));
        let curve =
            Rect { x: rows.x + LABEL.min(rows.width), width: rows.width.saturating_sub(LABEL), ..rows };
        let row = history.map(|history| match to {
            ToWhere::Device => &history.to_device_bytes_per_s,
            ToWhere::Host => &history.to_host_bytes_per_s,
        });
        if let Some(row) = row {
            sparkline(row, gpu.bus.peak.as_ref().map(|peak| peak.gbps(to) * 1e9), style)
                .render(curve, buffer);
        }
    }
}

/// The newest value on the right, scaled to the peak if it is known. Unknown values are dots.
fn sparkline(row: &VecDeque<Option<f64>>, peak: Option<f64>, style: Style) -> Sparkline<'static> {
    // The widget takes integers.
    let whole = |rate: f64| (rate / 1e6).round().max(0.0) as u64;
    let newest_first: Vec<Option<u64>> = row.iter().rev().map(|rate| rate.map(whole)).collect();
    let sparkline = Sparkline::default()
        .data(newest_first)
        .direction(RenderDirection::RightToLeft)
        .absent_value_symbol("·")
        .style(style);
    match peak {
        Some(peak) => sparkline.max(whole(peak).max(1)),
        None => sparkline,
    }
}

fn processes(gpu: &GpuNow) -> Vec<String> {
    let all = gpu.processes.iter().flatten().map(text::process);
    all.collect()
}
