//! What is on the critical path of a step? The walk of [`busbound_cause::path`], added up over the steps.

use std::collections::BTreeMap;

use busbound_cause::path::{EdgesWalked, Occupied, PathClass, PathSegment, Walk};
use busbound_trace::{EventKind, Interval, Nanos, Place, TrackId};
use serde::Serialize;

use crate::activity::timeline;
use crate::analysis::facts::Facts;
use crate::quantity::printable;

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
    let occupied: Vec<Occupied<'_>> = facts
        .timelines
        .iter()
        .map(|line| Occupied { device: line.device, kernels: &line.kernels, copies: &line.copies })
        .collect();
    let mut walk = Walk::new(&facts.graph, &facts.host, &occupied);
    let mut by_class: BTreeMap<PathClass, Nanos> = BTreeMap::new();
    let mut walks: Vec<(Interval, Vec<PathSegment>)> = Vec::new();
    for step in steps {
        let pieces = walk.step(step);
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
            name: describe(piece, facts),
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
        edges: walk.edges().into(),
    })
}

impl From<EdgesWalked> for PathEdges {
    fn from(walked: EdgesWalked) -> Self {
        let EdgesWalked { stream_order, launch, recorded_waits, inferred_waits } = walked;
        Self { stream_order, launch, recorded_waits, inferred_waits }
    }
}

/// What a segment of the path is, in the words of the program.
fn describe(segment: &PathSegment, facts: &Facts<'_>) -> String {
    let Some(event) = segment.event.map(|id| facts.trace.event(id)) else {
        return match (segment.class, segment.thread) {
            (PathClass::Host, Some(thread)) => {
                format!("{}, to the end", host_work(facts, thread, segment.interval))
            }
            (class, _) => class.describe().to_owned(),
        };
    };
    let name = printable(event.name());
    let on_host = matches!(event.place(), Place::Thread { .. });
    let place = || {
        let around = facts.host.around(&event);
        let operator = around.operator.is_some();
        around.describe().map_or(name.clone(), |text| if operator { text } else { format!("{name} {text}") })
    };
    match segment.class {
        PathClass::Host => {
            let doing =
                segment.thread.map_or("host".to_owned(), |thread| host_work(facts, thread, segment.interval));
            format!("{doing}, up to {}", place())
        }
        PathClass::Input => format!("waiting for input, up to {}", place()),
        PathClass::Launch if on_host => format!("{name}, {}", place()),
        PathClass::Launch => format!("from launch to {name}"),
        PathClass::Staging => format!("staging in {}", place()),
        PathClass::Contended => format!("{name} behind work of other streams"),
        PathClass::Turnaround => format!("before {name}"),
        PathClass::Synchronization => format!("{name}, {}", place()),
        PathClass::Unexplained => format!("waiting for something not recorded, at {name}"),
        _ => name,
    }
}

/// `host in cudaMalloc`, where one call or operator takes most of a stretch; `host, nothing recorded`, where
/// nothing does.
fn host_work(facts: &Facts<'_>, thread: TrackId, stretch: Interval) -> String {
    let within = facts.trace.track(thread).events_between(stretch.start, stretch.end).filter(|event| {
        matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall | EventKind::Operator)
    });
    // The innermost of those that take most of it: a call before the operator that makes it.
    let most = within.filter(|event| event.duration().wide() * 2 > stretch.length().wide());
    let innermost = most.min_by_key(|event| (event.duration(), event.id()));
    let recorded = facts.host.thread(thread).map_or(Nanos::ZERO, |times| times.worked.length_within(stretch));
    match innermost {
        Some(event) => format!("host in {}", printable(event.name())),
        None if recorded.wide() * 10 < stretch.length().wide() => "host, no operator recorded".to_owned(),
        None => "host".to_owned(),
    }
}
