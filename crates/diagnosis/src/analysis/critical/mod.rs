//! What is on the critical path of a step?
//!
//! From the step's last event back to its first, always to what ended last of the things it waited for:
//! the work before it on its stream, work of another stream by an event, the call that launched it, and
//! for the host the work that it synchronised with ([`walk`]). Which waits there were is recorded where
//! the profiler was asked for synchronisation events, else inferred from what fits ([`waits`]).
//!
//! The path has no holes: every moment of the step belongs to one piece, so that the path is as long as
//! the step, and shortening a piece shortens the step until another path is longer.

mod waits;
mod walk;

use std::collections::BTreeMap;

use busbound_trace::{Interval, Nanos};
use serde::Serialize;

use crate::activity::timeline;
use crate::analysis::facts::Facts;
use waits::Waits;
use walk::{Edges, Piece, Walk};

/// What a moment of the path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PathClass {
    Compute,
    Communication,
    /// A copy of any direction.
    Copy,
    Memset,
    /// The host inside a copying call before the copy begins: staging pageable memory, mostly.
    Staging,
    /// A call that launches, and the way from it to the device.
    Launch,
    /// The host between its calls.
    Host,
    /// The host waiting for its next batch.
    Input,
    /// A synchronisation that had nothing to wait for any more, and returning from one.
    Synchronisation,
    /// Work that was free to begin while work of other streams held the device.
    Contended,
    /// The device between two pieces of work that depend on each other.
    Turnaround,
    /// What the trace does not show.
    Unexplained,
}

impl PathClass {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Copy => "copies",
            Self::Memset => "memsets",
            Self::Staging => "inside copying calls",
            Self::Launch => "launching",
            Self::Host => "host work",
            Self::Input => "input",
            Self::Synchronisation => "synchronising",
            Self::Contended => "other streams in the way",
            Self::Turnaround => "turn-around",
            Self::Unexplained => "unexplained",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CriticalPath {
    /// Steps walked; shares are of all of them.
    pub steps: usize,
    /// Their time, and how much of it the path covers.
    pub step_ms: f64,
    pub path_ms: f64,
    /// Time of each class per step, most first, and its share of the path.
    pub classes: Vec<PathShare>,
    /// The ten longest pieces of the step of median length.
    pub longest: Vec<PathPiece>,
    /// Number of pieces of that step's path.
    pub pieces: usize,
    pub edges: PathEdges,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathShare {
    pub class: PathClass,
    pub ms: f64,
    pub share: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathPiece {
    pub class: PathClass,
    pub name: String,
    /// From the start of the step.
    pub start_ms: f64,
    pub ms: f64,
}

/// How the pieces are joined, over all steps walked. Orders of streams and launches are certain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathEdges {
    pub stream_order: u64,
    pub launch: u64,
    /// Waits of streams and of the host that the trace records.
    pub recorded_waits: u64,
    /// Waits that fit the times.
    pub inferred_waits: u64,
}

/// Steps walked at most, from the first.
const STEPS: usize = 64;
const LONGEST: usize = 10;

/// `None` where the trace has no work of a device.
pub(crate) fn critical_path(facts: &Facts<'_>) -> Option<CriticalPath> {
    let whole = timeline::whole(&facts.timelines)?;
    let steps: Vec<Interval> = match facts.window.steps.as_slice() {
        [] => vec![whole],
        steps => steps.iter().copied().take(STEPS).filter(|step| step.length().get() > 0).collect(),
    };
    let waits = Waits::of(facts);
    let mut by_class: BTreeMap<PathClass, Nanos> = BTreeMap::new();
    let mut edges = Edges::default();
    let mut walks: Vec<(Interval, Vec<Piece>)> = Vec::new();
    for step in steps {
        let pieces = Walk::of(facts, &waits, step, &mut edges);
        for piece in &pieces {
            *by_class.entry(piece.class).or_default() += piece.interval.length();
        }
        walks.push((step, pieces));
    }
    walks.sort_by_key(|(step, _)| (step.length(), step.start));
    let step: Nanos = walks.iter().map(|(step, _)| step.length()).sum();
    let path: Nanos = by_class.values().copied().sum();
    let count = walks.len();
    let mut classes: Vec<PathShare> = by_class
        .into_iter()
        .filter(|(_, time)| time.get() > 0)
        .map(|(class, time)| PathShare {
            class,
            ms: time.as_millis() / count as f64,
            share: time.as_millis() / path.as_millis(),
        })
        .collect();
    classes.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    let (median, mut pieces) = walks.into_iter().nth(count / 2)?;
    let number = pieces.len();
    pieces.sort_by_key(|piece| (std::cmp::Reverse(piece.interval.length()), piece.interval.start));
    let longest = pieces
        .iter()
        .take(LONGEST)
        .map(|piece| PathPiece {
            class: piece.class,
            name: piece.describe(facts),
            start_ms: (piece.interval.start - median.start).as_millis(),
            ms: piece.interval.length().as_millis(),
        })
        .collect();
    Some(CriticalPath {
        steps: count,
        step_ms: step.as_millis() / count as f64,
        path_ms: path.as_millis() / count as f64,
        classes,
        longest,
        pieces: number,
        edges: edges.told(),
    })
}
