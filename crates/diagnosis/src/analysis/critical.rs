//! What is on the critical path of a step? The walk of [`busbound_cause::path`], summed over the steps.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use busbound_cause::path::{EdgesWalked, Occupied, PathClass, PathSegment, Walk};
use busbound_trace::{EventKind, Interval, Nanos, Place, TrackId};
use serde::Serialize;

use crate::activity::timeline::{self, DeviceTimeline};
use crate::analysis::facts::Facts;
use crate::quantity::printable;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CriticalPath {
    /// Steps walked; shares cover all of them.
    pub steps: usize,
    /// Their time, and how much of it the path covers.
    pub step_ms: f64,
    pub path_ms: f64,
    /// Time of each class per step, most first, and its share of the path.
    pub classes: Vec<PathShare>,
    /// The ten longest segments of the step of median length.
    pub longest: Vec<LongSegment>,
    /// Number of segments on that step's path.
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
pub struct LongSegment {
    pub class: PathClass,
    pub name: String,
    /// From the start of the step.
    pub start_ms: f64,
    pub ms: f64,
}

/// How the segments are connected, over all steps walked. Stream order and launches are certain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathEdges {
    pub stream_order: u64,
    pub launch: u64,
    /// Waits of streams and of the host that the trace recorded.
    pub recorded_waits: u64,
    /// Waits inferred from timing.
    pub inferred_waits: u64,
}

/// Most steps walked, from the first.
const STEPS: usize = 64;
const LONGEST: usize = 10;

/// A step, and its path from its end to its start.
pub(crate) type WalkedStep = (Interval, Vec<PathSegment>);

/// The paths of the first steps, in order; `None` if the trace has no GPU work.
pub(crate) fn walked(facts: &Facts<'_>) -> Option<Vec<WalkedStep>> {
    let steps = steps(facts)?;
    let occupied = occupied(facts);
    let mut walk = Walk::new(&facts.graph, &facts.host, &occupied);
    Some(steps.into_iter().map(|step| (step, walk.step(step))).collect())
}

fn steps(facts: &Facts<'_>) -> Option<Vec<Interval>> {
    let whole = timeline::whole(&facts.timelines)?;
    Some(match facts.window.steps.as_slice() {
        [] => vec![whole],
        steps => steps.iter().copied().take(STEPS).filter(|step| step.length().get() > 0).collect(),
    })
}

/// When each device was occupied.
pub(super) fn occupied<'f>(facts: &'f Facts<'_>) -> Vec<Occupied<'f>> {
    let of = |line: &'f DeviceTimeline| Occupied {
        device: line.device,
        kernels: &line.kernels,
        copies: &line.copies,
    };
    facts.timelines.iter().map(of).collect()
}

/// Adds a segment to the longest ones, longest first, if it is one of them.
fn add_long(longest: &mut Vec<PathSegment>, segment: PathSegment) {
    let key = |segment: &PathSegment| (Reverse(segment.interval.length()), segment.interval.start);
    let place = longest.partition_point(|known| key(known) <= key(&segment));
    if place < LONGEST {
        longest.insert(place, segment);
        longest.truncate(LONGEST);
    }
}

/// `None` if the trace has no GPU work.
pub(crate) fn critical_path(facts: &Facts<'_>) -> Option<CriticalPath> {
    let steps = steps(facts)?;
    let count = steps.len();
    let mut by_length: Vec<usize> = (0..count).collect();
    by_length.sort_by_key(|&step| (steps[step].length(), steps[step].start));
    let median = *by_length.get(count / 2)?;
    let occupied = occupied(facts);
    let mut walk = Walk::new(&facts.graph, &facts.host, &occupied);
    let mut by_class: BTreeMap<PathClass, Nanos> = BTreeMap::new();
    let (mut longest, mut pieces) = (Vec::new(), 0);
    // A path may have as many segments as the trace has events, so they are not kept.
    for (number, &step) in steps.iter().enumerate() {
        walk.each_segment(step, |segment| {
            *by_class.entry(segment.class).or_default() += segment.interval.length();
            if number == median {
                pieces += 1;
                add_long(&mut longest, segment);
            }
        });
    }
    let step: Nanos = steps.iter().map(|step| step.length()).sum();
    let path: Nanos = by_class.values().copied().sum();
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
    let longest = longest
        .iter()
        .map(|segment| LongSegment {
            class: segment.class,
            name: describe(segment, facts),
            start_ms: (segment.interval.start - steps[median].start).as_millis(),
            ms: segment.interval.length().as_millis(),
        })
        .collect();
    Some(CriticalPath {
        steps: count,
        step_ms: step.as_millis() / count as f64,
        path_ms: path.as_millis() / count as f64,
        classes,
        longest,
        pieces,
        edges: walk.edges().into(),
    })
}

impl From<EdgesWalked> for PathEdges {
    fn from(walked: EdgesWalked) -> Self {
        let EdgesWalked { stream_order, launch, recorded_waits, inferred_waits } = walked;
        Self { stream_order, launch, recorded_waits, inferred_waits }
    }
}

/// A segment of the path, described with the names that the program uses.
fn describe(segment: &PathSegment, facts: &Facts<'_>) -> String {
    let Some(event) = segment.event.map(|id| facts.trace.event(id)) else {
        return match (segment.class, segment.thread) {
            (PathClass::Host, Some(thread)) => {
                format!("{}, until the end of the step", host_work(facts, thread, segment.interval))
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
        PathClass::Launch => format!("launch latency of {name}"),
        PathClass::Staging => format!("staging in {}", place()),
        PathClass::Contended => format!("{name}, waiting for other streams"),
        PathClass::KernelGap => format!("gap before {name}"),
        PathClass::Synchronization => format!("{name}, {}", place()),
        PathClass::Unexplained => format!("waiting for something not visible in this trace, before {name}"),
        _ => name,
    }
}

/// `host in cudaMalloc` if one call or operator takes most of an interval; `host, no operator recorded` if almost
/// nothing was recorded.
fn host_work(facts: &Facts<'_>, thread: TrackId, interval: Interval) -> String {
    let within = facts.trace.track(thread).events_between(interval.start, interval.end).filter(|event| {
        matches!(event.kind(), EventKind::RuntimeCall | EventKind::DriverCall | EventKind::Operator)
    });
    // The innermost of those that take most of it: the call rather than the operator around it.
    let most = within.filter(|event| event.duration().wide() * 2 > interval.length().wide());
    let innermost = most.min_by_key(|event| (event.duration(), event.id()));
    let recorded =
        facts.host.thread(thread).map_or(Nanos::ZERO, |times| times.worked.length_within(interval));
    match innermost {
        Some(event) => format!("host in {}", printable(event.name())),
        None if recorded.wide() * 10 < interval.length().wide() => "host, no operator recorded".to_owned(),
        None => "host".to_owned(),
    }
}
