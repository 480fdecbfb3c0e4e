//! Which layer waited how long for its copies?
//!
//! A layer waits if no kernel runs before one of its kernels because its copy has not arrived. What the kernel waited for comes from
//! the dependency graph: the walk of [`busbound_cause::path`], from the kernel back to the end of the kernel before it.

use std::collections::{BTreeMap, BTreeSet};

use busbound_cause::WorkId;
use busbound_cause::path::{PathClass, PathSegment, Walk};
use busbound_machine::median;
use busbound_trace::{Direction, EventId, Interval, Nanos};
use serde::Serialize;

use crate::activity::copies::Copy;
use crate::activity::route::CopyRoute;
use crate::activity::timeline::DeviceTimeline;
use crate::analysis::critical;
use crate::analysis::facts::Facts;
use crate::analysis::layer_names::{LayerNames, NamedBy, WaitingKernel};

/// Waits of layers for their copies to the device.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerWaits {
    pub named_by: NamedBy,
    /// Steps that the waits are from.
    pub steps: usize,
    /// Waits of all layers, also of those that are not listed: the mean of the steps.
    pub ms_per_step: f64,
    /// Layers that waited at all.
    pub count: usize,
    /// In the order in which they run; if there are very many, the first.
    pub layers: Vec<LayerWait>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerWait {
    pub device: i32,
    pub name: String,
    /// Steps in which it waited.
    pub waited_in: usize,
    /// Of all steps: 0 if it waited in less than half of them.
    pub median_ms: f64,
    pub longest_ms: f64,
    /// Copies that it needs, per step.
    pub copies: f64,
    pub copy_bytes: f64,
}

/// A shorter time without a kernel is a normal gap between two kernels.
const SHORTEST: Nanos = Nanos::new(20_000);
/// Less than this share of the step is not worth a table.
const WORTH_IT: f64 = 0.01;
/// Most layers in the answer.
const ROWS: usize = 400;

/// A kernel that waited for copies.
struct Stall {
    at: WaitingKernel,
    /// The last copy that it waited for.
    copy: EventId,
    wait: Nanos,
}

/// `None` if the trace has no steps, or fewer than two layers waited.
pub(crate) fn layer_waits(facts: &Facts<'_>) -> Option<LayerWaits> {
    let steps = facts.window.steps.len();
    let stalls = stalls(facts);
    let total: Nanos = stalls.iter().map(|stall| stall.wait).sum();
    if steps == 0 || total.as_millis() < WORTH_IT * facts.time.analyzed_ms {
        return None;
    }
    let order = CopyOrder::of(facts, &stalls);
    let kernels: Vec<WaitingKernel> = stalls.iter().map(|stall| stall.at).collect();
    let (named_by, names) = match LayerNames::of(facts, &kernels) {
        Some(names) => (names.by, names.list),
        None => (NamedBy::Position, order.positions(&stalls)?),
    };
    let mut layers: BTreeMap<(i32, &str), Layer> = BTreeMap::new();
    for (stall, name) in stalls.iter().zip(&names) {
        let Some(name) = name else { continue };
        layers.entry((stall.at.device, name.as_str())).or_default().add(stall, facts);
    }
    let mut layers: Vec<_> = layers.into_iter().collect();
    layers.sort_by_key(|((device, name), layer)| (*device, layer.first, *name));
    let rows = || layers.iter().map(|((device, name), layer)| layer.finish(*device, name, steps, &order));
    (layers.len() > 1).then(|| LayerWaits {
        named_by,
        steps,
        ms_per_step: total.as_millis() / steps as f64,
        count: layers.len(),
        layers: rows().take(ROWS).collect(),
    })
}

/// The stalls of all devices, in order of time on each.
fn stalls(facts: &Facts<'_>) -> Vec<Stall> {
    let occupied = critical::occupied(facts);
    let mut walk = Walk::new(&facts.graph, &facts.host, &occupied);
    let mut stalls = Vec::new();
    for line in &facts.timelines {
        let copies = line.copies_on(CopyRoute::HostToDevice);
        if copies.is_empty() {
            continue;
        }
        for gap in without_kernels(line).filter(|gap| gap.length() >= SHORTEST) {
            if copies.length_within(gap).get() > 0 {
                stalls.extend(stall_at(facts, &mut walk, line.device, gap));
            }
        }
    }
    stalls
}

/// The times before kernels in which none runs.
fn without_kernels(line: &DeviceTimeline) -> impl Iterator<Item = Interval> + '_ {
    let first = line.hull().map(|hull| hull.start);
    let ends = first.into_iter().chain(line.kernels.iter().map(|busy| busy.end));
    ends.zip(line.kernels.iter()).map(|(end, next)| Interval::new(end.min(next.start), next.start))
}

/// The kernel after a gap, if it waited for copies to the device.
fn stall_at(facts: &Facts<'_>, walk: &mut Walk<'_, '_>, device: i32, gap: Interval) -> Option<Stall> {
    let graph = &facts.graph;
    let at = gap.end.as_nanos();
    let starting = |stream: usize| {
        let work = &graph.streams[stream].work;
        let first = work.start + graph.work[work.clone()].partition_point(|node| node.start < at);
        (first..work.end)
            .take_while(|id| graph.work[*id].start == at)
            .find(|id| graph.work[*id].kind.is_kernel())
    };
    let kernel = graph.streams_of(Some(device)).find_map(starting)?;
    let node = &graph.work[kernel];
    let event = facts.trace.event(node.event);
    let step = facts.window.step_of_work(&event)?;
    let path = walk.step(Interval::new(gap.start, event.end()));
    if path.first()?.event != Some(node.event) {
        // Other work ended at the same time: this is its path.
        return None;
    }
    let (wait, copy) = waited_for_copies(facts, &path, gap)?;
    Some(Stall { at: WaitingKernel { step, device, kernel }, copy, wait })
}

/// How much of a path, from its end, is copies to the device and the calls that stage them; and the last of these copies.
fn waited_for_copies(facts: &Facts<'_>, path: &[PathSegment], gap: Interval) -> Option<(Nanos, EventId)> {
    let (mut wait, mut last, mut is_staged) = (Nanos::ZERO, None, false);
    for segment in path {
        let transfer = segment.event.and_then(|id| facts.trace.event(id).transfer().copied());
        match segment.class {
            PathClass::Copy => {
                is_staged = transfer.is_some_and(|copy| copy.direction == Direction::HostToDevice);
                last = last.or(segment.event.filter(|_| is_staged));
            }
            // The call of the copy before it in the path.
            PathClass::Staging => {}
            PathClass::Launch => continue,
            _ => is_staged = false,
        }
        if is_staged {
            wait += segment.interval.intersect(gap).length();
        }
    }
    last.filter(|_| wait >= SHORTEST).map(|last| (wait, last))
}

/// The waits of one layer.
#[derive(Default)]
struct Layer {
    by_step: BTreeMap<usize, Nanos>,
    /// The earliest after the start of its step.
    first: Option<Nanos>,
    copies: BTreeSet<EventId>,
}

impl Layer {
    fn add(&mut self, stall: &Stall, facts: &Facts<'_>) {
        *self.by_step.entry(stall.at.step).or_default() += stall.wait;
        self.copies.insert(stall.copy);
        let start = facts.trace.event(facts.graph.work[stall.at.kernel].event).start();
        let since = facts.window.steps.get(stall.at.step).map(|step| start - step.start);
        self.first = match (self.first, since) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    fn finish(&self, device: i32, name: &str, steps: usize, order: &CopyOrder) -> LayerWait {
        let waits = self.by_step.values().map(|wait| wait.as_millis());
        let zeros = std::iter::repeat_n(0.0, steps.saturating_sub(self.by_step.len()));
        let needed: Vec<(usize, u64)> =
            self.copies.iter().filter_map(|copy| order.needed.get(copy)).copied().collect();
        let waited_in = self.by_step.len();
        let per_step = |sum: f64| sum / waited_in.max(1) as f64;
        LayerWait {
            device,
            name: name.to_owned(),
            waited_in,
            median_ms: median(waits.clone().chain(zeros)).unwrap_or(0.0),
            longest_ms: waits.fold(0.0, f64::max),
            copies: per_step(needed.iter().map(|(count, _)| *count as f64).sum()),
            copy_bytes: per_step(needed.iter().map(|(_, bytes)| *bytes as f64).sum()),
        }
    }
}

/// The large copies to the device in their order, and which of them a kernel needs.
struct CopyOrder {
    /// By device and step: the copies in the order in which they run.
    by_step: BTreeMap<(i32, usize), Vec<EventId>>,
    /// Copies that a kernel needs, whether they arrive in time or not: how many copies ran since the previous one of these, and
    /// their bytes.
    needed: BTreeMap<EventId, (usize, u64)>,
}

impl CopyOrder {
    fn of(facts: &Facts<'_>, stalls: &[Stall]) -> Self {
        let mut copies: Vec<&Copy<'_>> = facts
            .issued_copies()
            .filter(|copy| copy.transfer.direction == Direction::HostToDevice && copy.is_large())
            .collect();
        copies.sort_by_key(|copy| (copy.device, copy.event.start(), copy.event.id()));
        let mut awaited = awaited_by_kernels(facts);
        awaited.extend(stalls.iter().map(|stall| stall.copy));
        let mut order = Self { by_step: BTreeMap::new(), needed: BTreeMap::new() };
        let (mut since, mut of_device) = ((0, 0), None);
        for copy in copies {
            if of_device.replace(copy.device) != Some(copy.device) {
                since = (0, 0);
            }
            since = (since.0 + 1, since.1 + copy.bytes().unwrap_or(0));
            let id = copy.event.id();
            if awaited.contains(&id) {
                order.needed.insert(id, std::mem::take(&mut since));
            }
            if let Some(step) = facts.window.step_of_work(&copy.event) {
                order.by_step.entry((copy.device, step)).or_default().push(id);
            }
        }
        order
    }

    /// The layer of each stall: the place of its copy among those of the step that a kernel needs. `None` for stalls in steps that
    /// copy another number of times than most; no answer if most steps differ.
    fn positions(&self, stalls: &[Stall]) -> Option<Vec<Option<String>>> {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for copies in self.by_step.values() {
            *counts.entry(copies.len()).or_default() += 1;
        }
        let (usual, alike) = counts.into_iter().max_by_key(|(_, steps)| *steps)?;
        if 2 * alike <= self.by_step.len() {
            return None;
        }
        let mut places: BTreeMap<EventId, usize> = BTreeMap::new();
        for copies in self.by_step.values().filter(|copies| copies.len() == usual) {
            places.extend(copies.iter().enumerate().map(|(place, copy)| (*copy, place)));
        }
        let last: BTreeSet<usize> = self.needed.keys().filter_map(|copy| places.get(copy).copied()).collect();
        let first_step = self.by_step.values().find(|copies| copies.len() == usual)?;
        let groups = period(last.iter().map(|place| self.needed.get(&first_step[*place]).copied()));
        let name = |stall: &Stall| {
            let place = places.get(&stall.copy)?;
            Some(format!("layer {}", last.range(..place).count() / groups))
        };
        Some(stalls.iter().map(name).collect())
    }
}

/// How many groups of copies repeat: layers that copy each weight on its own have the same sizes in the same order. 1 if nothing
/// repeats, or the sizes are not known.
fn period(sizes: impl Iterator<Item = Option<(usize, u64)>>) -> usize {
    let Some(sizes) = sizes.collect::<Option<Vec<_>>>() else { return 1 };
    let repeats = |period: &usize| {
        sizes.len().is_multiple_of(*period) && sizes.iter().zip(&sizes[*period..]).all(|(a, b)| a == b)
    };
    (1..=sizes.len() / 2).find(repeats).unwrap_or(1)
}

/// Copies that a kernel waits for: those before it on its stream, and those that its stream waits for.
fn awaited_by_kernels(facts: &Facts<'_>) -> BTreeSet<EventId> {
    let graph = &facts.graph;
    let is_kernel = |id: &WorkId| graph.work[*id].kind.is_kernel();
    let before = |kernel: WorkId| graph.before(kernel).into_iter();
    let waits = |kernel: WorkId| graph.waits_of(kernel).iter().map(|wait| wait.on());
    let kernels = (0..graph.work.len()).filter(is_kernel);
    kernels
        .flat_map(|kernel| before(kernel).chain(waits(kernel)))
        .filter(|work| graph.work[*work].kind.bus() == Some(Direction::HostToDevice))
        .map(|work| graph.work[work].event)
        .collect()
}
