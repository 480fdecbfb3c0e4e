//! What does the run look like? Lanes of work, copies as dots, and where the findings are, for graphical renderers.
//!
//! A picture shows the whole trace; the figures of a [`Diagnosis`](crate::Diagnosis) cover the part that is
//! [`analyzed`](Picture::analyzed). Times are nanoseconds from the picture's start.

mod detail;
mod device_lanes;
mod dots;
mod drawn;
mod host_lanes;
mod links;
mod names;
mod path;
mod predicted;
mod rows;

use busbound_machine::{HostMemory, LinkSource, bench};
use busbound_trace::{Interval, IntervalSet, Timestamp};

pub use dots::{Dot, DotKind};
pub use drawn::{Drawn, diagnose_and_draw};
pub use links::PieceId;
pub use path::PathSpan;
pub use rows::{Piece, PieceMark, Row};

use crate::analysis::facts::Facts;
use crate::answers::diagnosis::AnalysisScope;
use crate::answers::whatif::BestReplay;
use links::{CopyLinks, DrawnCopies};
use names::DrawnNames;

/// Everything drawn for one trace.
#[derive(Debug, Clone)]
pub struct Picture {
    /// When the picture starts, on the trace's own clock.
    pub origin: Timestamp,
    /// From its start to the last thing drawn.
    pub span_ns: i64,
    /// The part of the trace that the diagnosis covers.
    pub analyzed: Span,
    pub steps: Vec<StepSpan>,
    /// The names of pieces, by number.
    pub names: Vec<String>,
    pub groups: Vec<LaneGroup>,
    /// Every copy that the diagnosis covers; if there are very many, similar ones are merged.
    pub dots: Vec<Dot>,
    pub dot_kinds: Vec<DotKind>,
    /// Copies that cannot be drawn: without bytes, or without duration.
    pub unplaced_copies: u64,
    /// The rate that the link reaches, by copy size.
    pub curves: Vec<RateCurve>,
    /// Where each finding is, in the order of the diagnosis.
    pub findings: Vec<Vec<Span>>,
    /// The critical path of the first analyzed steps, in order of time.
    pub path: Vec<PathSpan>,
    /// When the first step of the predicted lanes begins, which show the first scenario.
    pub predicted_from: Option<i64>,
    /// When the GPU events end, if the file is cut off within them.
    pub devices_until: Option<i64>,
    /// What is not drawn, and how much.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub start: i64,
    pub end: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepSpan {
    pub span: Span,
    /// The number in its annotation, or its index.
    pub number: u64,
    /// Whether the diagnosis covers it.
    pub analyzed: bool,
    /// Whether it took much longer than the others.
    pub outlier: bool,
}

/// A group of lanes: a device, the prediction for it, or a host thread.
#[derive(Debug, Clone)]
pub struct LaneGroup {
    pub title: String,
    pub of: GroupOf,
    pub lanes: Vec<Lane>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GroupOf {
    Device { device: i32, peak_gbps: f64 },
    Predicted,
    Thread,
}

#[derive(Debug, Clone)]
pub struct Lane {
    pub sort: LaneKind,
    pub rows: Vec<Row>,
}

/// What a lane shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaneKind {
    Compute,
    Communication,
    ToDevice,
    ToHost,
    OtherCopies,
    Idle,
    Host,
}

impl LaneKind {
    pub fn title(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::ToDevice => "H2D copies",
            Self::ToHost => "D2H copies",
            Self::OtherCopies => "other copies, memsets",
            Self::Idle => "idle cause",
            Self::Host => "host",
        }
    }
}

/// Rates by size, for one direction and one kind of memory.
#[derive(Debug, Clone, PartialEq)]
pub struct RateCurve {
    pub label: String,
    /// Where the rates come from.
    pub source: &'static str,
    pub to_device: bool,
    pub pinned: bool,
    /// (bytes, GB/s) in order of size.
    pub points: Vec<(u64, f64)>,
}

/// How much of a long trace is drawn event by event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Every event, as in a file for a trace viewer.
    All,
    /// As much as a page can load quickly, shared by this many runs.
    Page { runs: usize },
}

/// Most pieces of a page: with more, it loads too slowly.
const PIECES: usize = 1_200_000;
/// Most intervals marked per finding.
const MARKED: usize = 5_000;

/// Draws the whole trace, with the findings, the best prediction, and the part that the diagnosis covers.
fn draw(analyzed: &AnalysisScope<'_, '_>, best: Option<&BestReplay>, detail: Detail) -> Picture {
    let AnalysisScope { facts, left_out, diagnosis, .. } = *analyzed;
    let whole = analyzed.whole();
    let mut names = DrawnNames::of(whole.trace.names());
    let mut notes = Vec::new();
    let mut copies = DrawnCopies::default();
    let mut groups =
        device_lanes::groups(whole, &diagnosis.machine.gpus, &mut names, &mut copies, &mut notes);
    if let Some(best) = best {
        groups = predicted::after_devices(groups, best, facts, &mut names, &mut notes);
    }
    let devices = groups.len();
    let (threads, hosts) = host_lanes::groups(whole, &mut names, &mut notes);
    groups.extend(hosts);
    let absolute =
        |interval: Interval| Span { start: interval.start.as_nanos(), end: interval.end.as_nanos() };
    let found = diagnosis.findings.iter().flat_map(|finding| &finding.at).copied().map(absolute);
    let steps = whole.window.steps.iter().copied().map(absolute);
    let extent = groups.iter().filter_map(LaneGroup::extent).chain(steps).chain(found).reduce(Span::hull);
    let extent = extent.unwrap_or(Span { start: 0, end: 0 });
    let origin = extent.start;
    let relative = |interval: Interval| absolute(interval).moved(-origin);
    for piece in groups.iter_mut().flat_map(LaneGroup::pieces_mut) {
        piece.shift(-origin);
    }
    if let Detail::Page { runs } = detail {
        detail::merge_to(&mut groups, PIECES / runs.max(1), &mut notes);
    }
    let (dot_kinds, dots, unplaced_copies) =
        dots::dots(facts, origin, &CopyLinks::of(&copies, &groups, origin));
    let step = |(i, interval): (usize, &Interval)| StepSpan {
        span: relative(*interval),
        number: whole.window.numbers.get(i).copied().unwrap_or(i as u64),
        analyzed: left_out.steady.contains(&i),
        outlier: left_out.outlier_steps.binary_search(&i).is_ok(),
    };
    let path =
        path::spans(facts, &groups, &path::Threads { first: devices, places: &threads }, origin, &mut notes);
    Picture {
        path,
        predicted_from: best.map(|best| best.begin.as_nanos() - origin),
        origin: Timestamp::from_nanos(origin),
        span_ns: extent.end - origin,
        analyzed: covered_part(facts).map_or(extent.moved(-origin), relative),
        steps: whole.window.steps.iter().enumerate().map(step).collect(),
        names: names.into_list(),
        groups,
        dots,
        dot_kinds,
        unplaced_copies,
        curves: curves(facts),
        findings: diagnosis.findings.iter().map(|finding| marked(&finding.at, relative)).collect(),
        devices_until: (!diagnosis.source.complete)
            .then(|| crate::activity::timeline::whole(&whole.timelines))
            .flatten()
            .map(|work| relative(work).end),
        notes,
    }
}

/// The steps, and all work that counts with them.
fn covered_part(facts: &Facts<'_>) -> Option<Interval> {
    let steps = facts.window.steps.iter().copied();
    steps.chain(crate::activity::timeline::whole(&facts.timelines)).reduce(Interval::hull)
}

/// The intervals of a finding; if there are many, neighbors are merged.
fn marked(at: &[Interval], relative: impl Fn(Interval) -> Span) -> Vec<Span> {
    let set = IntervalSet::from_unsorted(at.iter().copied());
    let Some(hull) = set.hull() else { return Vec::new() };
    let mut spans: Vec<Span> = Vec::new();
    let near = if set.iter().count() > MARKED { hull.length().get() / MARKED as i64 } else { 0 };
    for span in set.iter().map(relative) {
        match spans.last_mut() {
            Some(last) if span.start - last.end <= near => last.end = span.end,
            _ => spans.push(span),
        }
    }
    spans
}

/// What the link reaches, from 256 B to 1 GiB.
fn curves(facts: &Facts<'_>) -> Vec<RateCurve> {
    if facts.link.source == LinkSource::Assumed {
        return Vec::new();
    }
    let from = match facts.link.measured() {
        Some(_) => "measured on this machine",
        None => "estimated for this link from H200 measurements",
    };
    let directions = [(bench::Direction::H2d, true, "H2D"), (bench::Direction::D2h, false, "D2H")];
    let memories = [(HostMemory::Pinned, true, "pinned"), (HostMemory::Pageable, false, "pageable")];
    directions
        .into_iter()
        .flat_map(|direction| memories.into_iter().map(move |memory| (direction, memory)))
        .map(|((direction, to_device, label), (memory, pinned, kind))| RateCurve {
            label: format!("{label} {kind}"),
            source: from,
            to_device,
            pinned,
            points: (8..=30)
                .map(|power| 1u64 << power)
                .map(|bytes| (bytes, facts.link.expected_of(bytes, direction, memory)))
                .collect(),
        })
        .collect()
}

impl Span {
    fn moved(self, by: i64) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }

    fn hull(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl LaneGroup {
    fn pieces_mut(&mut self) -> impl Iterator<Item = &mut Piece> {
        self.lanes.iter_mut().flat_map(|lane| &mut lane.rows).flat_map(|row| &mut row.pieces)
    }

    fn extent(&self) -> Option<Span> {
        let rows = self.lanes.iter().flat_map(|lane| &lane.rows);
        let of_row = |row: &Row| Some(Span { start: row.pieces.first()?.start, end: row.pieces.last()?.end });
        rows.filter_map(of_row).reduce(Span::hull)
    }
}
