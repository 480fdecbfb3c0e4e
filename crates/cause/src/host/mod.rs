//! What was the host doing? Calls joined to the GPU work that they launched, and the times its threads waited.
//!
//! Only this module joins calls to work by correlation id.

mod nested;
mod segments;
mod uses;

pub use segments::{HostActivity, HostSegment};
pub use uses::{HostUse, UsedTime};

use std::collections::BTreeMap;
use std::sync::Arc;

use self::nested::Nested;
use crate::captures::capture_times;
use crate::search::first_after_near;
use crate::thresholds::{HOST_STRETCH, LONG_COPY_CALL};
use crate::training::is_optimizer;
use busbound_trace::{
    Call, Event, EventId, EventKind, Interval, IntervalSet, Label, NameId, Nanos, Timestamp, Trace, Track,
    TrackId,
};

/// The host side of a trace, indexed for lookups.
#[derive(Debug)]
pub struct Host<'a> {
    trace: &'a Trace,
    /// Calls by correlation, in order: takes a tenth of the memory of a map, and is mostly in order from the start.
    by_correlation: Vec<EventId>,
    /// Per event number, up to the last device work: the call that launched it. Every pass uses it.
    behind: Vec<Option<EventId>>,
    threads: BTreeMap<TrackId, ThreadTimes>,
    /// Those that launch device work.
    launching: Vec<TrackId>,
    /// Annotations of each thread, and Python frames of user code, sorted by start.
    annotations: BTreeMap<TrackId, Nested>,
    frames: BTreeMap<TrackId, Nested>,
    launches: Vec<EventId>,
    synchronizations: Vec<EventId>,
    /// Calls that allocate, capture, load or create.
    rare_calls: Vec<EventId>,
    /// Times at which the framework compiled.
    compilations: IntervalSet,
    /// Names of annotations around everything.
    around_all: Vec<NameId>,
    names: Arc<NameKinds>,
}

/// The kind of each name, by name number. A view of a trace has the same names.
#[derive(Debug)]
struct NameKinds {
    calls: Vec<Call>,
    /// Names that wait for the next batch.
    inputs: Vec<bool>,
    /// Names that compile.
    compilations: Vec<bool>,
    /// Python frames of user code.
    users: Vec<bool>,
    /// Annotations of an optimizer.
    optimizers: Vec<bool>,
    /// What each name does if it is an operator on the CPU.
    operators: Vec<HostUse>,
}

impl NameKinds {
    fn of(trace: &Trace) -> Self {
        let names = trace.names();
        Self {
            calls: names.iter().map(Call::of).collect(),
            inputs: names.iter().map(is_input).collect(),
            compilations: names.iter().map(is_compilation).collect(),
            users: names.iter().map(is_users_code).collect(),
            optimizers: names.iter().map(is_optimizer).collect(),
            operators: names.iter().map(uses::operator_use).collect(),
        }
    }
}

/// What one thread did, and when.
#[derive(Debug, Default)]
pub struct ThreadTimes {
    pub synchronizing: IntervalSet,
    pub copying: IntervalSet,
    /// The part in calls that are so long that they must have waited.
    pub copying_long: IntervalSet,
    pub input: IntervalSet,
    /// Operators and calls; a thread that waits for another one has none.
    pub worked: IntervalSet,
    /// Long stretches without a call that launches, copies or waits.
    pub without_calls: IntervalSet,
    /// Around the work of an optimizer on the CPU.
    pub optimizer: IntervalSet,
    /// Calls that allocate or free.
    allocating: IntervalSet,
    /// `synchronizing`, `copying`, `allocating`, `input` and `without_calls`: outside of these, short host work is launching.
    not_launching: IntervalSet,
    /// Whether it launches device work.
    pub launches: bool,
    /// The positions on the track of the calls that launch, copy or set memory.
    issuing: Vec<u32>,
}

/// Finds long stretches of a thread's time without a call that launches, copies or waits.
#[derive(Default)]
struct Stretch {
    /// Where the stretch begins, and the end of the last event.
    since: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Stretch {
    fn add(&mut self, event: &Event<'_>, kind: Call, found: &mut IntervalSet) {
        let since = *self.since.get_or_insert(event.start());
        self.last = self.last.max(Some(event.end()));
        if matches!(kind, Call::Launch | Call::Memset | Call::Copy | Call::Synchronize) {
            Self::close(since, event.start(), found);
            self.since = Some(since.max(event.end()));
        }
    }

    fn end(&self, found: &mut IntervalSet) {
        if let (Some(since), Some(last)) = (self.since, self.last) {
            Self::close(since, last, found);
        }
    }

    fn close(since: Timestamp, until: Timestamp, found: &mut IntervalSet) {
        const LEAST: Nanos = Nanos::new(HOST_STRETCH);
        if until > since && until - since >= LEAST {
            found.push(Interval::new(since, until));
        }
    }
}

/// An annotation of this share of all recorded time is around the program, and not a place in it.
const AROUND_ALL: f64 = 0.95;

/// Whether such a call launches, copies or sets memory.
pub(crate) fn is_issuing(call: Call) -> bool {
    matches!(call, Call::Launch | Call::Memset | Call::Copy)
}

/// Annotations and frames in which a loop waits for the next batch.
fn is_input(name: &str) -> bool {
    name.starts_with("enumerate(DataLoader)")
        || name.contains("DataLoaderIter.__next__")
        || name.ends_with(": _next_data")
        || name.contains("dataloader.py") && name.ends_with(": __next__")
}

/// Ranges in which the framework compiles: TorchDynamo's and Inductor's own timers, and NVRTC.
fn is_compilation(name: &str) -> bool {
    name.ends_with("(dynamo_timed)")
        || name.contains("nvrtcCompileProgram")
        || name.contains("Nvrtc::CompileProgram")
        || name.contains("torch/_dynamo/convert_frame.py") && name.ends_with("_compile")
}

impl<'a> Host<'a> {
    pub fn of(trace: &'a Trace) -> Self {
        let mut host = Self::named(trace, Arc::new(NameKinds::of(trace)));
        host.around_all = host.ranges_around_all();
        host
    }

    /// The host side of a view of the same trace.
    pub fn of_part<'p>(&self, part: &'p Trace) -> Host<'p> {
        let mut host = Host::named(part, Arc::clone(&self.names));
        host.around_all.clone_from(&self.around_all);
        host
    }

    fn named(trace: &'a Trace, names: Arc<NameKinds>) -> Self {
        let mut host = Self {
            trace,
            names,
            by_correlation: Vec::new(),
            behind: Vec::new(),
            threads: BTreeMap::new(),
            launching: Vec::new(),
            annotations: BTreeMap::new(),
            frames: BTreeMap::new(),
            launches: Vec::new(),
            synchronizations: Vec::new(),
            rare_calls: Vec::new(),
            compilations: IntervalSet::default(),
            around_all: Vec::new(),
        };
        let mut compilations = Vec::new();
        for track in trace.threads() {
            let Some(process) = track.place().process() else { continue };
            if !matches!(process, Label::Number(n) if n < 0) {
                host.add_thread(track, &mut compilations);
            }
        }
        let launching = host.threads.iter().filter(|(_, times)| times.launches);
        host.launching = launching.map(|(track, _)| *track).collect();
        host.compilations = IntervalSet::from_unsorted(compilations);
        host.by_correlation.shrink_to_fit();
        host.by_correlation.sort_by_key(|call| trace.event(*call).correlation());
        // The work of a stream is mostly in the order of its calls.
        let mut near = vec![0; trace.tracks().len()];
        for work in trace.events().filter(|event| event.kind().is_gpu_work()) {
            let near = &mut near[work.track_id().index()];
            let call = work.correlation().and_then(|id| host.call_id(id, near));
            host.behind.resize(work.id().index(), None);
            host.behind.push(call);
        }
        host.behind.shrink_to_fit();
        host
    }

    fn add_thread(&mut self, track: Track<'a>, compilations: &mut Vec<Interval>) {
        let mut times = ThreadTimes::default();
        let launched_before = self.launches.len();
        let (mut named, mut framed) = (Vec::new(), Vec::new());
        let mut stretch = Stretch::default();
        for (position, event) in (0u32..).zip(track.events()) {
            let (name, interval) = (event.name_id().index(), event.interval());
            if self.names.compilations[name] {
                compilations.push(interval);
            }
            if self.names.optimizers[name] && self.updates_on_cpu(&track, interval) {
                times.optimizer.push(interval);
            }
            let call = self.call_kind(&event);
            stretch.add(&event, call, &mut times.without_calls);
            if is_issuing(call) {
                times.issuing.push(position);
            }
            match event.kind() {
                EventKind::Annotation => named.push(event.id()),
                EventKind::PythonFrame if self.names.users[name] => framed.push(event.id()),
                EventKind::RuntimeCall | EventKind::DriverCall => self.add_call(&event, &mut times),
                _ => {}
            }
            match event.kind() {
                EventKind::Operator | EventKind::Annotation | EventKind::PythonFrame
                    if self.names.inputs[name] =>
                {
                    times.input.push(interval);
                }
                EventKind::ProfilerSpan | EventKind::ProfilerOverhead | EventKind::Annotation => continue,
                _ => {}
            }
            if event.kind() != EventKind::PythonFrame {
                times.worked.push(interval);
            }
        }
        stretch.end(&mut times.without_calls);
        let calls = times.copying.union(&times.synchronizing).union(&times.allocating);
        times.not_launching = times.without_calls.union(&times.input).union(&calls);
        times.worked.shrink();
        times.launches = self.launches.len() > launched_before;
        self.annotations.insert(track.id(), Nested::of(named));
        self.frames.insert(track.id(), Nested::of(framed));
        self.threads.insert(track.id(), times);
    }

    fn add_call(&mut self, call: &Event<'_>, times: &mut ThreadTimes) {
        match self.names.calls[call.name_id().index()] {
            Call::Synchronize => {
                times.synchronizing.push(call.interval());
                self.synchronizations.push(call.id());
            }
            Call::Launch => self.launches.push(call.id()),
            Call::Copy => {
                times.copying.push(call.interval());
                if call.duration().get() > LONG_COPY_CALL {
                    times.copying_long.push(call.interval());
                }
            }
            Call::Allocate => {
                times.allocating.push(call.interval());
                self.rare_calls.push(call.id());
            }
            Call::Capture | Call::Load | Call::Create => self.rare_calls.push(call.id()),
            Call::Memset | Call::RecordEvent | Call::WaitEvent | Call::Other => {}
        }
        if call.correlation().is_some() {
            self.by_correlation.push(call.id());
        }
    }

    /// The call with this correlation. Two calls with one id come from two processes in one file: neither is known to be it.
    /// The search begins at the place `near`, and ends there.
    fn call_id(&self, correlation: u64, near: &mut usize) -> Option<EventId> {
        let calls = &self.by_correlation;
        let of = |place: usize| self.trace.event(calls[place]).correlation();
        *near = first_after_near(&(0..calls.len()), *near, |place| of(place) < Some(correlation));
        let is_same = |place: usize| place < calls.len() && of(place) == Some(correlation);
        (is_same(*near) && !is_same(*near + 1)).then(|| calls[*near])
    }

    pub fn trace(&self) -> &'a Trace {
        self.trace
    }

    /// The call that launched this GPU work.
    pub fn call_behind(&self, work: &Event<'_>) -> Option<Event<'a>> {
        Some(self.trace.event((*self.behind.get(work.id().index())?)?))
    }

    /// The call with this correlation.
    pub fn call_with(&self, correlation: u64) -> Option<Event<'a>> {
        Some(self.trace.event(self.call_id(correlation, &mut 0)?))
    }

    pub fn thread(&self, track: TrackId) -> Option<&ThreadTimes> {
        self.threads.get(&track)
    }

    pub fn call_kind(&self, event: &Event<'_>) -> Call {
        match event.kind() {
            EventKind::RuntimeCall | EventKind::DriverCall => self.names.calls[event.name_id().index()],
            _ => Call::Other,
        }
    }

    /// Whether events of this name wait for the next batch.
    pub fn is_input(&self, name: NameId) -> bool {
        self.names.inputs[name.index()]
    }

    /// Calls that wait for the device, grouped by thread, in time order.
    pub fn synchronizations(&self) -> impl ExactSizeIterator<Item = Event<'a>> + '_ {
        self.synchronizations.iter().map(|&id| self.trace.event(id))
    }

    /// Calls that allocate, capture, load or create, grouped by thread, in time order.
    pub fn rare_calls(&self) -> impl Iterator<Item = Event<'a>> + '_ {
        self.rare_calls.iter().map(|&id| self.trace.event(id))
    }

    /// Those that allocate, free or pin memory.
    pub fn allocations(&self) -> impl Iterator<Item = Event<'a>> + '_ {
        self.rare_calls().filter(|call| self.call_kind(call) == Call::Allocate)
    }

    /// Times at which a stream was captured into a graph: launches then run nothing.
    pub fn captures(&self) -> IntervalSet {
        capture_times(self.rare_calls().filter(|call| self.call_kind(call) == Call::Capture))
    }

    /// Times at which the framework compiled.
    pub fn compilations(&self) -> impl Iterator<Item = Interval> + '_ {
        self.compilations.iter()
    }

    /// Times at which a thread waited for the next batch.
    pub fn inputs(&self) -> impl Iterator<Item = Interval> + '_ {
        self.threads().flat_map(|(_, times)| times.input.iter())
    }

    /// What each thread did, in track order.
    pub fn threads(&self) -> impl Iterator<Item = (TrackId, &ThreadTimes)> {
        self.threads.iter().map(|(track, times)| (*track, times))
    }

    /// Threads that launch device work.
    pub fn launching_threads(&self) -> impl ExactSizeIterator<Item = (TrackId, &ThreadTimes)> {
        self.launching.iter().map(|track| (*track, &self.threads[track]))
    }

    /// Annotations of every thread, grouped by thread, in time order.
    pub fn annotations(&self) -> Vec<Event<'a>> {
        self.annotations.values().flat_map(Nested::ids).map(|&id| self.trace.event(id)).collect()
    }

    /// Calls that launch, grouped by thread, in time order.
    pub fn launches(&self) -> impl ExactSizeIterator<Item = Event<'a>> + '_ {
        self.launches.iter().map(|&id| self.trace.event(id))
    }

    /// The innermost operator around a call.
    pub fn operator_around(&self, call: &Event<'_>) -> Option<Event<'a>> {
        let track = self.trace.track(call.track_id());
        track.enclosing(call.start(), |event| event.kind() == EventKind::Operator)
    }

    /// The innermost operator, Python frame of user code, and annotation around a call.
    pub fn around(&self, call: &Event<'_>) -> Origin {
        self.place_of(call).origin(self.trace)
    }

    /// The same, by the numbers of their names: for calls that are many.
    pub fn place_of(&self, call: &Event<'_>) -> OriginNames {
        OriginNames {
            operator: self.operator_around(call).map(|operator| operator.name_id()),
            frame: self.innermost(&self.frames, call),
            annotation: self.innermost(&self.annotations, call),
        }
    }

    fn innermost(&self, lists: &BTreeMap<TrackId, Nested>, call: &Event<'_>) -> Option<NameId> {
        let name = lists.get(&call.track_id())?.innermost(self.trace, call.start())?.name_id();
        (!self.around_all.contains(&name)).then_some(name)
    }

    /// Whether annotations of this name are around (nearly) everything: then they name no place.
    pub fn is_around_all(&self, name: &str) -> bool {
        self.around_all.iter().any(|id| self.trace.names().get(*id) == name)
    }

    fn ranges_around_all(&self) -> Vec<NameId> {
        let Some(all) = self.trace.events().map(|event| event.interval()).reduce(Interval::hull) else {
            return Vec::new();
        };
        let least = (AROUND_ALL * all.length().get() as f64) as i64;
        let annotations = self.annotations.values().flat_map(Nested::ids).map(|&id| self.trace.event(id));
        annotations.filter(|event| event.duration().get() >= least).map(|event| event.name_id()).collect()
    }
}

/// Where something came from, by the numbers of the names in the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OriginNames {
    pub operator: Option<NameId>,
    pub frame: Option<NameId>,
    pub annotation: Option<NameId>,
}

impl OriginNames {
    pub fn origin(self, trace: &Trace) -> Origin {
        let text = |name: Option<NameId>| name.map(|name| printable(trace.names().get(name)));
        Origin { operator: text(self.operator), frame: text(self.frame), annotation: text(self.annotation) }
    }
}

/// Where in the program something came from, as far as the trace shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    pub operator: Option<String>,
    pub frame: Option<String>,
    pub annotation: Option<String>,
}

impl Origin {
    /// A suffix for a statement: ` by aten::copy_ under `step``, ` under `block3``, or nothing.
    pub fn clause(&self) -> String {
        match (self.describe(), &self.operator) {
            (Some(text), Some(_)) => format!(" by {text}"),
            (Some(text), None) => format!(" {text}"),
            (None, _) => String::new(),
        }
    }

    /// `aten::copy_ under `step`, at train.py(72): forward`.
    pub fn describe(&self) -> Option<String> {
        let mut text = self.operator.clone().unwrap_or_default();
        if let Some(annotation) = &self.annotation {
            let under = if text.is_empty() { "" } else { " " };
            text.push_str(&format!("{under}under `{annotation}`"));
        }
        if let Some(frame) = &self.frame {
            let at = if text.is_empty() { "" } else { ", " };
            text.push_str(&format!("{at}at {frame}"));
        }
        (!text.is_empty()).then_some(text)
    }
}

/// A name from a trace with control characters escaped: they would move the terminal cursor or break a table.
pub fn printable(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text
}

/// `train.py(72): step`, but not torch's own files or built-ins.
pub fn is_users_code(frame: &str) -> bool {
    frame.contains(".py(")
        && !["torch/", "site-packages/", "<built-in", "threading.py", "contextlib.py", "nn.Module"]
            .iter()
            .any(|part| frame.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_frames_are_distinguished_from_torch_frames() {
        assert!(is_users_code("train.py(72): step"));
        assert!(!is_users_code("torch/nn/modules/module.py(1750): _call_impl"));
        assert!(!is_users_code("<built-in method run_backward of torch>"));
        assert!(!is_users_code("nn.Module: Linear_0"));
    }
}
