//! What is in a page's data? The header and every table with its columns, declared once.
//!
//! The script finds columns by the names in the header and rejects any other [`VERSION`]. Adding a column does not raise
//! the version; removing one or changing its meaning does. `web/src/layout.ts` is generated from
//! this file: `BUSBOUND_WRITE_DOCS=1 cargo test -p busbound-report --lib` writes it, and `cargo xtask web` builds the
//! script with it.

use std::collections::BTreeMap;

use busbound_diagnosis::{Dot, GapCause, PathClass, PathSpan, PictureSpan, Piece, PieceMark, StepSpan};
use busbound_trace::MemoryKind;
use serde::Serialize;

use super::columns::{Column, Table, TableDescription, Unit, Values};

pub(super) const VERSION: u32 = 1;

/// Every table that a page's data can contain.
pub(super) fn tables() -> [TableDescription; 5] {
    [PIECES.description(), STEPS.description(), SPANS.description(), DOTS.description(), PATH.description()]
}

/// A segment and its distance from the previous one in its row.
pub(super) struct Placed {
    pub(super) gap: u64,
    pub(super) piece: Piece,
}

pub(super) const PIECES: Table<Placed> = Table {
    name: "pieces",
    doc: "One row of a lane: segments in order of time that never overlap.",
    columns: &[
        Column {
            name: "gap",
            unit: Unit::Nanoseconds,
            doc: "From the end of the previous segment, or the beginning of the picture, to its start.",
            values: Values::Number(|row| row.gap),
        },
        Column {
            name: "duration",
            unit: Unit::Nanoseconds,
            doc: "From its start to its end.",
            values: Values::Number(|row| positive(row.piece.end - row.piece.start)),
        },
        Column {
            name: "rest",
            unit: Unit::Nanoseconds,
            doc: "Part of its duration in which none of its events ran.",
            values: Values::Number(|row| positive(row.piece.end - row.piece.start - row.piece.busy)),
        },
        Column {
            name: "count",
            unit: Unit::None,
            doc: "Number of events it represents.",
            values: Values::Count(|row| row.piece.count),
        },
        Column {
            name: "name",
            unit: Unit::None,
            doc: "Its name, as an index into the header's names; for several events, that of the longest.",
            values: Values::Index(|row| row.piece.name),
        },
        Column {
            name: "note",
            unit: Unit::None,
            doc: "A note, as an index into the header's names.",
            values: Values::Index(|row| row.piece.note),
        },
        Column {
            name: "bytes",
            unit: Unit::Bytes,
            doc: "Bytes it moved.",
            values: Values::Number(|row| row.piece.bytes),
        },
        Column {
            name: "lead",
            unit: Unit::Nanoseconds,
            doc: "From the start of the call that launched it to its own start, if known.",
            values: Values::Optional(|row| row.piece.launched.map(|at| positive(row.piece.start - at))),
        },
        Column {
            name: "mark",
            unit: Unit::None,
            doc: "What is special about it, as an index into the header's marks; for several events, about the longest.",
            values: Values::Index(|row| Mark::of(row.piece.mark) as u32),
        },
    ],
};

pub(super) const STEPS: Table<StepSpan> = Table {
    name: "steps",
    doc: "Every step.",
    columns: &[
        Column {
            name: "start",
            unit: Unit::Nanoseconds,
            doc: "From the beginning of the picture.",
            values: Values::Number(|step| positive(step.span.start)),
        },
        Column {
            name: "duration",
            unit: Unit::Nanoseconds,
            doc: "From its start to its end.",
            values: Values::Number(|step| positive(step.span.end - step.span.start)),
        },
        Column {
            name: "number",
            unit: Unit::None,
            doc: "The number in its annotation, or its index.",
            values: Values::Number(|step| step.number),
        },
        Column {
            name: "analyzed",
            unit: Unit::None,
            doc: "Whether it is part of the analyzed range.",
            values: Values::Flag(|step| step.analyzed),
        },
        Column {
            name: "outlier",
            unit: Unit::None,
            doc: "Whether it took clearly longer than the others.",
            values: Values::Flag(|step| step.outlier),
        },
    ],
};

pub(super) const SPANS: Table<PictureSpan> = Table {
    name: "spans",
    doc: "Time ranges of a finding.",
    columns: &[
        Column {
            name: "start",
            unit: Unit::Nanoseconds,
            doc: "From the beginning of the picture.",
            values: Values::Number(|span| positive(span.start)),
        },
        Column {
            name: "duration",
            unit: Unit::Nanoseconds,
            doc: "From its start to its end.",
            values: Values::Number(|span| positive(span.end - span.start)),
        },
    ],
};

pub(super) const DOTS: Table<Dot> = Table {
    name: "dots",
    doc: "Every copy of the analyzed steps; if there are very many, similar copies are merged.",
    columns: &[
        Column {
            name: "kind",
            unit: Unit::None,
            doc: "Its kind, as an index into the header's kinds.",
            values: Values::Index(|dot| dot.kind),
        },
        Column {
            name: "bytes",
            unit: Unit::Bytes,
            doc: "Bytes it moved.",
            values: Values::Number(|dot| dot.bytes),
        },
        Column {
            name: "duration",
            unit: Unit::Nanoseconds,
            doc: "Its duration.",
            values: Values::Number(|dot| positive(dot.ns)),
        },
        Column {
            name: "start",
            unit: Unit::Nanoseconds,
            doc: "From the beginning of the picture; for merged copies, that of the first.",
            values: Values::Number(|dot| positive(dot.start)),
        },
        Column {
            name: "count",
            unit: Unit::None,
            doc: "Number of copies it represents.",
            values: Values::Count(|dot| dot.count),
        },
        Column {
            name: "row",
            unit: Unit::None,
            doc: "The timeline row of the copy, counted over all lanes, if it is drawn; for merged copies, that of the first.",
            values: Values::Optional(|dot| dot.piece.map(|id| u64::from(id.row))),
        },
        Column {
            name: "piece",
            unit: Unit::None,
            doc: "The copy's segment in that row.",
            values: Values::Index(|dot| dot.piece.map_or(0, |id| id.piece)),
        },
    ],
};

pub(super) const PATH: Table<PathSpan> = Table {
    name: "path",
    doc: "The critical path of the first analyzed steps, in order of time.",
    columns: &[
        Column {
            name: "start",
            unit: Unit::Nanoseconds,
            doc: "From the beginning of the picture.",
            values: Values::Number(|segment| positive(segment.span.start)),
        },
        Column {
            name: "duration",
            unit: Unit::Nanoseconds,
            doc: "From its start to its end.",
            values: Values::Number(|segment| positive(segment.span.end - segment.span.start)),
        },
        Column {
            name: "class",
            unit: Unit::None,
            doc: "What happens in it, as an index into the header's classes.",
            values: Values::Index(|segment| segment.class as u32),
        },
        Column {
            name: "row",
            unit: Unit::None,
            doc: "The timeline row of its event, or of what it waits for, counted over all lanes.",
            values: Values::Optional(|segment| segment.row.map(u64::from)),
        },
    ],
};

/// What the segments of a path are, by index.
pub(super) fn classes() -> Vec<Class> {
    let class = |class: &PathClass| Class { label: class.describe(), is_wait: class.is_wait() };
    PathClass::ALL.iter().map(class).collect()
}

/// Times never precede the beginning of the picture.
pub(super) fn positive(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

/// The header of the data, as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Head<'a> {
    /// Version of the layout.
    pub(super) version: u32,
    /// The columns of each table in storage order: name, encoding, unit.
    pub(super) tables: BTreeMap<&'static str, Vec<[&'static str; 3]>>,
    /// The blocks after the header: table name and number of rows of each.
    pub(super) blocks: Vec<(&'static str, usize)>,
    /// The name of the run, if there are several.
    pub(super) label: &'a str,
    /// The word for a step.
    pub(super) unit: &'a str,
    /// Nanoseconds from the beginning of the picture to its end.
    pub(super) span: i64,
    /// The analyzed range, in nanoseconds from the beginning of the picture.
    pub(super) analyzed: [i64; 2],
    /// Where the recording of the devices ends, if the file is truncated.
    pub(super) until: Option<i64>,
    /// The link to the host.
    pub(super) link: &'a str,
    /// Peak of the link in GB/s, per direction.
    pub(super) peak: f64,
    /// Names and notes of segments, by index.
    pub(super) names: &'a [String],
    /// Every mark that a segment can have, by index.
    pub(super) marks: &'static [Mark],
    pub(super) groups: Vec<Group<'a>>,
    /// The kinds of copies among the dots.
    pub(super) kinds: Vec<Kind<'a>>,
    /// Rates that the link reaches.
    pub(super) curves: Vec<Curve<'a>>,
    /// In the order of the cards.
    pub(super) findings: Vec<Finding<'a>>,
    /// The block of the steps.
    pub(super) steps: usize,
    /// The block of the dots.
    pub(super) dots: usize,
    /// The block of the critical path.
    pub(super) path: usize,
    /// The classes of its segments.
    pub(super) classes: Vec<Class>,
    /// What the predicted lanes show.
    pub(super) predicted: Option<Predicted<'a>>,
}

/// What happens in a segment of the critical path.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Class {
    pub(super) label: &'static str,
    /// Whether nothing runs in it.
    pub(super) is_wait: bool,
}

/// The prediction in the predicted lanes.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Predicted<'a> {
    /// The changes.
    pub(super) change: &'a str,
    /// Where its first step begins, in nanoseconds from the beginning of the picture.
    pub(super) from: i64,
    /// Nanoseconds per step without the changes, as recorded.
    pub(super) before: f64,
    /// Nanoseconds per step with the changes.
    pub(super) after: f64,
}

/// Lanes of one device or thread.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Group<'a> {
    pub(super) title: &'a str,
    pub(super) of: Of,
    /// Peak of the device's link in GB/s, per direction.
    pub(super) peak: f64,
    pub(super) lanes: Vec<Lane>,
}

/// What a group shows.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) enum Of {
    Device,
    Predicted,
    Thread,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Lane {
    pub(super) sort: Sort,
    pub(super) title: &'static str,
    /// The blocks of its rows.
    pub(super) rows: Vec<usize>,
}

/// What a lane shows.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) enum Sort {
    Compute,
    Communication,
    H2d,
    D2h,
    Other,
    Idle,
    Host,
}

/// What sets a segment apart from the others of its lane: pageable memory, or the cause of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) enum Mark {
    None,
    Pageable,
    IdleCopy,
    IdleLaunch,
    IdleSync,
    IdleInput,
    IdleHost,
    IdleUnknown,
}

impl Mark {
    /// In the order of the declaration, so that each is at its own index.
    pub(super) const ALL: &'static [Self] = &[
        Self::None,
        Self::Pageable,
        Self::IdleCopy,
        Self::IdleLaunch,
        Self::IdleSync,
        Self::IdleInput,
        Self::IdleHost,
        Self::IdleUnknown,
    ];

    /// Its class in the style sheet.
    fn class(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Pageable => "pageable",
            Self::IdleCopy => "idle-copy",
            Self::IdleLaunch => "idle-launch",
            Self::IdleSync => "idle-sync",
            Self::IdleInput => "idle-input",
            Self::IdleHost => "idle-host",
            Self::IdleUnknown => "idle-unknown",
        }
    }

    fn of(mark: PieceMark) -> Self {
        match mark {
            PieceMark::None => Self::None,
            PieceMark::Pageable => Self::Pageable,
            PieceMark::Idle(cause) => match cause {
                GapCause::Copy => Self::IdleCopy,
                GapCause::Launch => Self::IdleLaunch,
                GapCause::Synchronization => Self::IdleSync,
                GapCause::Input => Self::IdleInput,
                GapCause::Host => Self::IdleHost,
                GapCause::Queued | GapCause::KernelGap | GapCause::Unexplained => Self::IdleUnknown,
            },
        }
    }
}

/// The class of the color of idle time.
pub(in super::super) fn idle_class(cause: GapCause) -> &'static str {
    Mark::of(PieceMark::Idle(cause)).class()
}

/// Copies with the same direction and the same kinds of memory.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Kind<'a> {
    pub(super) label: &'a str,
    pub(super) to: To,
    /// The kind of host memory, if one end is the host.
    pub(super) memory: Option<MemoryKind>,
}

/// The destination of copies.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) enum To {
    Device,
    Host,
    Other,
}

/// Rate by copy size.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Curve<'a> {
    pub(super) label: &'a str,
    /// Where the rates come from.
    pub(super) source: &'static str,
    pub(super) to_device: bool,
    pub(super) pinned: bool,
    /// Bytes and GB/s, in order of size.
    pub(super) points: &'a [(u64, f64)],
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Finding<'a> {
    pub(super) title: &'a str,
    /// The block of its spans.
    pub(super) spans: usize,
}

#[test]
fn every_mark_is_at_its_own_index() {
    for (index, mark) in Mark::ALL.iter().enumerate() {
        assert_eq!(*mark as usize, index);
    }
    for (index, class) in PathClass::ALL.iter().enumerate() {
        assert_eq!(*class as usize, index);
    }
    let causes = GapCause::ALL.iter().map(|cause| Mark::of(PieceMark::Idle(*cause)));
    assert!(causes.into_iter().all(|mark| Mark::ALL.contains(&mark) && mark != Mark::None));
    let style = include_str!("../../../assets/report.css");
    assert!(GapCause::ALL.iter().all(|cause| style.contains(&format!(".{}{{", idle_class(*cause)))));
}
