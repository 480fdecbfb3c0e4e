//! When does a run load weights, evaluate or save checkpoints, instead of doing its steps?
//!
//! The program marks phases (`busbound:phase=NAME`), or names of ranges and of Python functions say so ([`names`]). Loading
//! is also what copies weights before the first step, with hardly a kernel, and evaluation what repeats forward passes between
//! training steps ([`evaluation`]).

mod evaluation;
mod names;

use std::collections::BTreeMap;

use busbound_trace::{Direction, Event, EventKind, Interval, IntervalSet, Trace};
use serde::Serialize;

use super::basis::Basis;
use super::window::Window;
use crate::pattern::pattern_of;

/// What a phase of a run does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PhaseKind {
    /// Weights are loaded.
    Loading,
    Evaluation,
    /// Weights are saved.
    Checkpoint,
    /// The program marks it with another name.
    Other,
}

impl PhaseKind {
    /// Whether its steps are left out of the figures of the others.
    fn is_apart(self) -> bool {
        self != Self::Other
    }
}

/// How a phase was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PhaseFound {
    /// The program marks it: `busbound:phase=NAME`.
    Marked,
    /// By the name of a range or of a Python function.
    Named,
    /// Loading: copies before the first step, with hardly a kernel. Evaluation: forward passes between training steps, with no
    /// backward pass and no optimizer.
    Inferred,
}

/// A phase, and when the host was in it.
#[derive(Debug, Clone)]
pub(crate) struct FoundPhase {
    pub(crate) kind: PhaseKind,
    /// The name of most of it.
    pub(crate) name: String,
    pub(crate) found: PhaseFound,
    pub(crate) times: IntervalSet,
}

/// Phases that take less of the trace are not worth a line, unless the program marks them.
const LEAST_SHARE: f64 = 0.01;
const LEAST_MS: f64 = 10.0;
/// A step with this share in a phase is not like the others.
const STEP_SHARE: f64 = 0.1;
/// Copies before the first step load weights if they are this much and this many, and all but this share of the traffic. Batches of a
/// warm-up are less. Chosen: fixtures/try/recorded has programs that warm up with 0.1 to 3 GB.
const LEAST_LOADED: u64 = 256 << 20;
const LEAST_COPIES: usize = 8;
const LITTLE_COPIED_BACK: f64 = 0.05;
/// With more kernels per copy, it is the program's own work that copies: offloaded layers run several each.
const KERNELS_PER_COPY: f64 = 0.1;

/// The phases of a trace, in the order of their first time.
pub(crate) fn find(basis: &Basis<'_>) -> Vec<FoundPhase> {
    let trace = basis.trace;
    let mut phases = named(trace);
    if phases.iter().all(|phase| phase.kind != PhaseKind::Loading) {
        phases.extend(inferred_loading(basis));
    }
    if phases.iter().all(|phase| phase.kind != PhaseKind::Evaluation) {
        phases.extend(evaluation::inferred(basis).filter(|phase| is_long(&phase.times, basis.trace)));
    }
    phases.sort_by_key(|phase| phase.times.hull().map(|hull| hull.start));
    phases
}

/// The first start and the last end of all events.
pub(crate) fn span(trace: &Trace) -> Option<Interval> {
    trace.events().map(|event| event.interval()).reduce(Interval::hull)
}

fn named(trace: &Trace) -> Vec<FoundPhase> {
    let of_name = |kind| trace.names().iter().map(move |name| names::kind_of(kind, name));
    let annotations: Vec<Option<PhaseKind>> = of_name(EventKind::Annotation).collect();
    let frames: Vec<Option<PhaseKind>> = of_name(EventKind::PythonFrame).collect();
    if annotations.iter().chain(&frames).all(Option::is_none) {
        return Vec::new();
    }
    // A marked phase is known by its name, the others by what they do.
    let mut found: BTreeMap<(PhaseKind, Option<String>), BTreeMap<String, Vec<Interval>>> = BTreeMap::new();
    for event in trace.events() {
        let place = event.name_id().index();
        let kind = match event.kind() {
            EventKind::Annotation => annotations[place],
            EventKind::PythonFrame => frames[place],
            _ => None,
        };
        let Some(kind) = kind.filter(|_| event.duration().get() > 0) else { continue };
        let marked = event.name().strip_prefix(names::MARK).map(pattern_of);
        let name = marked.clone().unwrap_or_else(|| pattern_of(event.name()));
        found.entry((kind, marked)).or_default().entry(name).or_default().push(event.interval());
    }
    let phase = |((kind, marked), by_name): (_, BTreeMap<String, Vec<Interval>>)| {
        let longest = |list: &Vec<Interval>| IntervalSet::from_unsorted(list.iter().copied()).length();
        let name = by_name.iter().max_by_key(|(_, list)| longest(list)).map(|(name, _)| name.clone())?;
        let times = IntervalSet::from_unsorted(by_name.into_values().flatten());
        let is_marked = Option::<String>::is_some(&marked);
        let found = if is_marked { PhaseFound::Marked } else { PhaseFound::Named };
        (is_marked || is_long(&times, trace)).then_some(FoundPhase { kind, name, found, times })
    };
    found.into_iter().filter_map(phase).collect()
}

/// Whether a phase is worth a line.
fn is_long(times: &IntervalSet, trace: &Trace) -> bool {
    let whole_ms = span(trace).map_or(0.0, |span| span.length().as_millis());
    times.length().as_millis() >= LEAST_MS.max(LEAST_SHARE * whole_ms)
}

/// What is copied to the GPU before the first step, if hardly a kernel runs meanwhile and hardly a byte comes back.
fn inferred_loading(basis: &Basis<'_>) -> Option<FoundPhase> {
    let first_step = *basis.window.starts.first()?;
    let mut loaded = Before::default();
    for work in basis.trace.events().filter(|event| event.kind().is_gpu_work() && event.end() <= first_step) {
        loaded.add(&work, basis);
    }
    let whole = loaded.time.filter(|_| loaded.is_loading())?;
    Some(FoundPhase {
        kind: PhaseKind::Loading,
        name: "copies before the first step".to_owned(),
        found: PhaseFound::Inferred,
        times: IntervalSet::from_unsorted([whole]),
    })
}

/// What the GPU did before the first step.
#[derive(Default)]
struct Before {
    copies: usize,
    h2d_bytes: u64,
    d2h_bytes: u64,
    kernels: usize,
    /// From the first call that copies to the device to the end of the last copy.
    time: Option<Interval>,
}

impl Before {
    fn add(&mut self, work: &Event<'_>, basis: &Basis<'_>) {
        self.kernels += usize::from(work.kind() == EventKind::Kernel);
        let Some(transfer) = work.transfer().filter(|_| work.kind() == EventKind::Copy) else { return };
        let bytes = transfer.bytes.map_or(0, |bytes| bytes.get());
        match transfer.direction {
            Direction::DeviceToHost => self.d2h_bytes = self.d2h_bytes.saturating_add(bytes),
            Direction::HostToDevice => {
                let call = basis.host.call_behind(work);
                let begun = call.map_or(work.start(), |call| call.start().min(work.start()));
                let time = Interval::new(begun, work.end());
                self.time = Some(self.time.map_or(time, |all| all.hull(time)));
                self.h2d_bytes = self.h2d_bytes.saturating_add(bytes);
                self.copies += 1;
            }
            _ => {}
        }
    }

    fn is_loading(&self) -> bool {
        self.h2d_bytes >= LEAST_LOADED
            && self.copies >= LEAST_COPIES
            && self.d2h_bytes as f64 <= LITTLE_COPIED_BACK * self.h2d_bytes as f64
            && self.kernels as f64 <= KERNELS_PER_COPY * self.copies as f64
    }
}

/// The steps that are in a phase, in order.
pub(crate) fn steps_apart(phases: &[FoundPhase], window: &Window) -> Vec<usize> {
    let apart = phases.iter().filter(|phase| phase.kind.is_apart());
    let apart = apart.fold(IntervalSet::default(), |all, phase| all.union(&phase.times));
    if apart.is_empty() {
        return Vec::new();
    }
    let is_apart = |step: &usize| {
        let Some(host) = host_interval(window, *step) else { return false };
        let within = apart.length_within(host).as_millis();
        within > 0.0 && within >= STEP_SHARE * host.length().as_millis()
    };
    (0..window.steps.len()).filter(is_apart).collect()
}

/// From the start of a step to that of the next one, on the host.
pub(crate) fn host_interval(window: &Window, step: usize) -> Option<Interval> {
    let start = *window.starts.get(step)?;
    let end = window.starts.get(step + 1).copied().unwrap_or_else(|| window.steps[step].end.max(start));
    Some(Interval::new(start, end))
}
