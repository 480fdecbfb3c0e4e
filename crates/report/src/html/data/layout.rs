//! What is in a page's data? The head and every table with its columns, declared once.
//!
//! The script finds columns by the names that the head gives them, and refuses another [`VERSION`]. A column may be added
//! without raising it; a column that goes away or changes its meaning raises it. `web/src/layout.ts` is generated from
//! this file: `BUSBOUND_WRITE_DOCS=1 cargo test -p busbound-report --lib` writes it, and `cargo xtask web` builds the
//! script with it.

use std::collections::BTreeMap;

use busbound_diagnosis::{Dot, PictureSpan, Piece, StepSpan};
use busbound_trace::MemoryKind;
use serde::Serialize;

use super::columns::{Column, Table, TableDescription, Unit, Values};

pub(super) const VERSION: u32 = 1;

/// Every table that a page's data may have.
pub(super) fn tables() -> [TableDescription; 4] {
    [PIECES.description(), STEPS.description(), SPANS.description(), DOTS.description()]
}

/// A piece, and how long after the one before it in its row.
pub(super) struct Placed {
    pub(super) gap: u64,
    pub(super) piece: Piece,
}

pub(super) const PIECES: Table<Placed> = Table {
    name: "pieces",
    doc: "One row of a lane: pieces in order of time that never overlap.",
    columns: &[
        Column {
            name: "gap",
            unit: Unit::Nanoseconds,
            doc: "From the end of the piece before, or the beginning of the picture, to its start.",
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
            doc: "Time of its duration in which none of its events ran.",
            values: Values::Number(|row| positive(row.piece.end - row.piece.start - row.piece.busy)),
        },
        Column {
            name: "count",
            unit: Unit::None,
            doc: "Events it stands for.",
            values: Values::Count(|row| row.piece.count),
        },
        Column {
            name: "name",
            unit: Unit::None,
            doc: "What it is called, in the head's names; of several events the longest.",
            values: Values::Index(|row| row.piece.name),
        },
        Column {
            name: "note",
            unit: Unit::None,
            doc: "What else there is to say, in the head's names.",
            values: Values::Index(|row| row.piece.note),
        },
        Column {
            name: "bytes",
            unit: Unit::Bytes,
            doc: "What it moved.",
            values: Values::Number(|row| row.piece.bytes),
        },
        Column {
            name: "lead",
            unit: Unit::Nanoseconds,
            doc: "From the start of the call behind it to its own start, where that is known.",
            values: Values::Optional(|row| row.piece.launched.map(|at| positive(row.piece.start - at))),
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
            name: "judged",
            unit: Unit::None,
            doc: "Whether the figures are for it.",
            values: Values::Flag(|step| step.judged),
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
    doc: "Where a finding is.",
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
    doc: "Every copy of the judged steps; of very many, those alike as one.",
    columns: &[
        Column {
            name: "kind",
            unit: Unit::None,
            doc: "Its kind, in the head's kinds.",
            values: Values::Index(|dot| dot.kind),
        },
        Column {
            name: "bytes",
            unit: Unit::Bytes,
            doc: "What it moved.",
            values: Values::Number(|dot| dot.bytes),
        },
        Column {
            name: "duration",
            unit: Unit::Nanoseconds,
            doc: "How long it took.",
            values: Values::Number(|dot| positive(dot.ns)),
        },
        Column {
            name: "start",
            unit: Unit::Nanoseconds,
            doc: "From the beginning of the picture; of several the first.",
            values: Values::Number(|dot| positive(dot.start)),
        },
        Column {
            name: "count",
            unit: Unit::None,
            doc: "Copies it stands for.",
            values: Values::Count(|dot| dot.count),
        },
        Column {
            name: "row",
            unit: Unit::None,
            doc: "The row of the timeline that the copy is in, counted over all lanes, if it is drawn; of several the first's.",
            values: Values::Optional(|dot| dot.piece.map(|id| u64::from(id.row))),
        },
        Column {
            name: "piece",
            unit: Unit::None,
            doc: "The copy's piece in that row.",
            values: Values::Index(|dot| dot.piece.map_or(0, |id| id.piece)),
        },
    ],
};

/// A time that is not before the beginning.
pub(super) fn positive(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

/// What the data begins with, as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Head<'a> {
    /// Of the layout.
    pub(super) version: u32,
    /// The columns of each table in the order in which they are stored: name, encoding, unit.
    pub(super) tables: BTreeMap<&'static str, Vec<[&'static str; 3]>>,
    /// What follows the head: each block's table and number of rows.
    pub(super) blocks: Vec<(&'static str, usize)>,
    /// What the run is called where there are several.
    pub(super) label: &'a str,
    /// What a step is called.
    pub(super) unit: &'a str,
    /// Nanoseconds from the beginning of the picture to its end.
    pub(super) span: i64,
    /// The stretch that figures are for, in nanoseconds from the beginning of the picture.
    pub(super) judged: [i64; 2],
    /// Where the record of the devices ends, if the file was cut off.
    pub(super) until: Option<i64>,
    /// The link to the host.
    pub(super) link: &'a str,
    /// GB/s of the link, each way.
    pub(super) peak: f64,
    /// What pieces are called and what their notes say, by number.
    pub(super) names: &'a [String],
    pub(super) groups: Vec<Group<'a>>,
    /// The kinds of copies that dots are of.
    pub(super) kinds: Vec<Kind<'a>>,
    /// What the link reaches.
    pub(super) curves: Vec<Curve<'a>>,
    /// In the order of the cards.
    pub(super) findings: Vec<Finding<'a>>,
    /// The block of the steps.
    pub(super) steps: usize,
    /// The block of the dots.
    pub(super) dots: usize,
}

/// Lanes that belong together.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Group<'a> {
    pub(super) title: &'a str,
    pub(super) of: Of,
    /// GB/s of a device's link, each way.
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

/// Copies that go the same way between the same kinds of memory.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Kind<'a> {
    pub(super) label: &'a str,
    pub(super) to: To,
    /// The host's memory, where one end is the host's.
    pub(super) memory: Option<MemoryKind>,
}

/// Where copies go to.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) enum To {
    Device,
    Host,
    Other,
}

/// Rates over sizes.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Curve<'a> {
    pub(super) label: &'a str,
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
