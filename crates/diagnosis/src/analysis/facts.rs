//! The facts that findings and the verdict use, computed once.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use busbound_cause::idle::{GapCause, Gaps};
use busbound_cause::parallel::join;
use busbound_cause::{
    Activity, CollectiveNames, Graph, Host, HostCollective, HostThreads, Model, Shape, WorkNode, is_rocm,
};
use busbound_machine::nccl_log::NcclLog;
use busbound_machine::{GpuFacts, LinkFacts, Machine};
use busbound_trace::{EventKind, Interval, IntervalSet, Nanos, Place, Trace};
use busbound_whatif::replay::{Replay, usual_sharing};

use crate::activity::collectives::{self, CollectiveGroup, CollectiveRun};
use crate::activity::contention::{self, Contention};
use crate::activity::copies::{self, Copy, CopyGroup};
use crate::activity::gaps::{self, IdleCause};
use crate::activity::launches::{self, Launches};
use crate::activity::links::{Links, link_of};
use crate::activity::managed::Managed;
use crate::activity::rates::size_class;
use crate::activity::route::CopyRoute;
use crate::activity::syncs::{self, Syncs};
use crate::activity::timeline::{self, DeviceTimeline, Overlaps};
use crate::analysis::breakdown::{Part, PartTimes, StepBreakdown};
use crate::analysis::host_work::{HostWork, host_work};
use crate::analysis::on_cpu::{OnCpu, on_cpu};
use crate::analysis::program::Program;
use crate::analysis::replay::{self, Replayed};
use crate::analysis::times::{Times, total_times};
use crate::analysis::unprofiled::{Recording, Timed, Unprofiled};
use crate::options::Options;
use crate::pattern::pattern_of;
use crate::steps::basis::Basis;
use crate::steps::window::Window;
use crate::unit::Unit;

pub(crate) struct Facts<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) program: Program,
    pub(crate) host: Host<'a>,
    pub(crate) communication: CollectiveNames,
    /// Of the first device with work.
    pub(crate) link: LinkFacts,
    pub(crate) links: Links,
    pub(crate) window: Window,
    pub(crate) timelines: Vec<DeviceTimeline>,
    /// Of each device, in the order of `timelines`.
    pub(crate) device_times: Vec<(Times, Overlaps)>,
    pub(crate) breakdown: StepBreakdown,
    pub(crate) time: Times,
    pub(crate) overlap: Overlaps,
    pub(crate) copies: Vec<Copy<'a>>,
    pub(crate) groups: Vec<CopyGroup>,
    pub(crate) collectives: Vec<CollectiveRun<'a>>,
    pub(crate) collective_groups: Vec<CollectiveGroup>,
    /// The dependency graph: what waited for what.
    pub(crate) graph: Graph,
    replayed: Option<Replayed>,
    /// The graph of the replayed part; `None` without GPU work.
    recorded: Option<(Arc<Shape>, Arc<Model>)>,
    pub(crate) gaps: Gaps<'a>,
    pub(crate) idle: Vec<IdleCause>,
    /// Idle time while the thread that ended the gap was inside allocation calls.
    pub(crate) allocating_idle_ms: f64,
    pub(crate) contention: Vec<Contention>,
    pub(crate) launches: Launches,
    pub(crate) managed: Managed<'a>,
    pub(crate) syncs: Syncs,
    pub(crate) kernels_on_stream: BTreeMap<(i32, i64), u64>,
    /// What NCCL printed about this run, judged with what is known about the GPU.
    pub(crate) nccl_log: Option<NcclLog>,
    /// Bytes of host memory that the run may use: given, recorded, or of the measured machine.
    pub(crate) host_memory: Option<u64>,
    /// The GPU that the user said it is.
    pub(crate) stated_gpu: Option<&'static GpuFacts>,
    /// Whether the calls are those of AMD's runtime.
    is_rocm: bool,
    recording: Recording,
    timed: OnceLock<Option<Timed>>,
    replay: OnceLock<Option<Replay>>,
    host_work: OnceLock<Vec<HostWork>>,
    on_cpu: OnceLock<Option<OnCpu>>,
}

/// What waited for what, and why the devices were idle.
struct Waited<'a> {
    graph: Graph,
    replayed: Option<Replayed>,
    recorded: Option<(Arc<Shape>, Arc<Model>)>,
    gaps: Gaps<'a>,
    /// In the order of the timelines.
    parts: Vec<PartTimes>,
    idle: Vec<IdleCause>,
    allocating_idle_ms: f64,
}

impl<'a> Waited<'a> {
    fn of(graph: Graph, basis: &Basis<'a>, timelines: &[DeviceTimeline], link: &LinkFacts) -> Self {
        let Basis { trace, host, window, .. } = basis;
        let replayed = replay::part_of(trace, window, timelines);
        let recorded = || {
            let model = Model::of(&graph, &replayed.as_ref()?.range, &usual_sharing(link));
            let has_work = !model.work.is_empty() && model.end > 0;
            has_work.then(|| (Arc::new(Shape::of(&model)), Arc::new(model)))
        };
        let explained = || {
            let gaps = gaps::gaps(&graph, host, timelines, window.thread());
            let idle = gaps::idle_causes(&gaps, host);
            (gaps, idle)
        };
        let (recorded, (gaps, idle)) = join(recorded, explained);
        let parts = device_parts(timelines, &gaps);
        let allocating_idle_ms = gaps::idle_inside_ms(&gaps, &gaps::call_times(host.allocations()));
        Self { graph, replayed, recorded, gaps, parts, idle, allocating_idle_ms }
    }
}

/// Work that the host issued to the devices.
struct Issued<'a> {
    copies: Vec<Copy<'a>>,
    groups: Vec<CopyGroup>,
    collectives: Vec<CollectiveRun<'a>>,
    collective_groups: Vec<CollectiveGroup>,
    contention: Vec<Contention>,
    syncs: Syncs,
    launches: Launches,
    kernels_on_stream: BTreeMap<(i32, i64), u64>,
}

impl<'a> Issued<'a> {
    fn of(basis: &Basis<'a>, timelines: &[DeviceTimeline], links: &Links, options: &Options) -> Self {
        let Basis { trace, host, communication, window } = basis;
        let kernels_on_stream = kernels_on_stream(trace);
        let copies = copies::copies(trace, host);
        let terms = copies::Terms {
            timelines,
            kernels_on_stream: &kernels_on_stream,
            links,
            edges: &options.histogram_edges,
        };
        let groups = copies::groups(&copies, terms);
        let collectives = collectives::collectives(trace, host, communication);
        let collective_groups =
            collectives::groups(&collectives, collectives::Terms { trace, timelines, links });
        let contention = contention::contention(trace, &copies, timelines, communication, links);
        let syncs = syncs::syncs(host, &window.starts);
        let launches = launches::launches(trace, host, timelines, window.step_count());
        Self {
            copies,
            groups,
            collectives,
            collective_groups,
            contention,
            syncs,
            launches,
            kernels_on_stream,
        }
    }
}

impl<'a> Facts<'a> {
    pub(crate) fn on(basis: Basis<'a>, machine: &Machine, options: &Options) -> Self {
        let timelines = timeline::timelines(basis.trace, &basis.communication, basis.window.judged());
        let link = link_of(machine, basis.trace, timelines.first().map(|t| t.device));
        let of_device =
            |line: &DeviceTimeline| (line.device, link_of(machine, basis.trace, Some(line.device)));
        let recording = Recording::of(basis.trace, &link, options.wall_ms);
        let links = Links::new(timelines.iter().map(of_device).collect(), link.clone());
        let Basis { trace, ref host, ref communication, ref window } = basis;
        let (issued, graph) = join(
            || Issued::of(&basis, &timelines, &links, options),
            || Graph::of(Activity { trace, host, collectives: communication }, &window.marks()),
        );
        let waited = Waited::of(graph, &basis, &timelines, &link);
        let Basis { trace, host, communication, window } = basis;
        let breakdown = StepBreakdown::of(&waited.parts, window.step_count());
        let times: Vec<Times> =
            timelines.iter().zip(&waited.parts).map(|(timeline, parts)| Times::of(timeline, parts)).collect();
        let overlaps: Vec<Overlaps> = timelines.iter().map(DeviceTimeline::overlaps).collect();
        let time = total_times(&times);
        let overlap = timeline::total_overlaps(&overlaps, time.comm_ms);
        let managed = Managed::of(trace, &issued.copies, &timelines);
        let has_nvlink = link.nvlink_gbps.map(|gbps| gbps > 0.0);
        let nccl_log = options.nccl_log.clone().map(|log| log.with_nvlink(has_nvlink));
        Self {
            trace,
            program: Program::of(trace),
            host,
            communication,
            link,
            links,
            window,
            timelines,
            device_times: times.into_iter().zip(overlaps).collect(),
            breakdown,
            time,
            overlap,
            copies: issued.copies,
            groups: issued.groups,
            collectives: issued.collectives,
            collective_groups: issued.collective_groups,
            graph: waited.graph,
            replayed: waited.replayed,
            recorded: waited.recorded,
            gaps: waited.gaps,
            idle: waited.idle,
            allocating_idle_ms: waited.allocating_idle_ms,
            contention: issued.contention,
            launches: issued.launches,
            managed,
            syncs: issued.syncs,
            kernels_on_stream: issued.kernels_on_stream,
            nccl_log,
            host_memory: options.host_memory_of(trace, machine),
            stated_gpu: machine.gpu(),
            is_rocm: is_rocm(trace),
            recording,
            timed: OnceLock::new(),
            replay: OnceLock::new(),
            host_work: OnceLock::new(),
            on_cpu: OnceLock::new(),
        }
    }

    /// The steady steps, ready for replay; `None` if the trace is not consistent enough. Its times are those of the step that
    /// verdicts and predictions are about.
    pub(crate) fn replay(&self) -> Option<&Replay> {
        let replay = || {
            let replay = Replay::of(self.timed()?.models.clone(), &self.link)?;
            let is_known = replay.step_ms() > 0.0 && self.own_step_ms() > 0.0;
            Some(if is_known { replay.with_step_ms(self.own_step_ms()) } else { replay })
        };
        self.replay.get_or_init(replay).as_ref()
    }

    /// The steady steps with collectives that run on the host, in which ranks can wait for each other; `None` if the trace is not
    /// consistent enough. Works without GPU work.
    pub(crate) fn replay_with(&self, collectives: &[HostCollective]) -> Option<Replay> {
        let marks = self.window.marks();
        let threads = HostThreads { trace: self.trace, host: &self.host, marks: &marks };
        let range = &self.replayed_part()?.range;
        let sharing = usual_sharing(&self.link);
        let recorded = Model::with_collectives(&self.graph, range, &sharing, threads, collectives);
        let (shape, recorded) = (Arc::new(Shape::of(&recorded)), Arc::new(recorded));
        Replay::of(self.recording.models(&recorded, &shape, self.step_ms()).models, &self.link)
    }

    /// The graph of the steady steps, with and without the cost of recording; `None` without GPU work.
    fn timed(&self) -> Option<&Timed> {
        let timed = || {
            let (shape, recorded) = self.recorded.as_ref()?;
            Some(self.recording.models(recorded, shape, self.step_ms()))
        };
        self.timed.get_or_init(timed).as_ref()
    }

    /// What all graphs of the steady steps have in common; `None` without GPU work.
    pub(crate) fn shape(&self) -> Option<&Arc<Shape>> {
        self.recorded.as_ref().map(|(shape, _)| shape)
    }

    /// The graph of the steady steps as recorded.
    pub(crate) fn recorded_model(&self) -> Option<&Model> {
        self.recorded.as_ref().map(|(_, model)| &**model)
    }

    /// The graph of the steady steps, as far as possible without the cost of recording.
    pub(crate) fn model(&self) -> Option<&Model> {
        self.timed().map(|timed| timed.models.expected())
    }

    /// The step without the profiler; `None` if it hardly differs, or is not known.
    pub(crate) fn unprofiled(&self) -> Option<Unprofiled> {
        self.timed().and_then(|timed| timed.unprofiled)
    }

    /// The step that verdicts and predictions are about: without the profiler where that is known.
    pub(crate) fn own_step_ms(&self) -> f64 {
        self.unprofiled().map_or_else(|| self.step_ms(), |unprofiled| unprofiled.mid)
    }

    /// Host work that a device waited for, most first.
    pub(crate) fn host_work(&self) -> &[HostWork] {
        let is_step = |name: &str| {
            self.marks_steps(name) || name.starts_with("ProfilerStep#") || self.host.is_around_all(name)
        };
        self.host_work.get_or_init(|| host_work(self.trace, &self.gaps, &self.breakdown, is_step))
    }

    /// What shows that the program computes on the CPU; `None` if nothing does.
    pub(crate) fn on_cpu(&self) -> Option<&OnCpu> {
        let has_gpu = !self.timelines.is_empty() || self.host.launches().len() > 0;
        self.on_cpu.get_or_init(|| on_cpu(self.trace, has_gpu)).as_ref()
    }

    /// The part of the trace that [`replay`](Self::replay) covers.
    pub(crate) fn replayed_part(&self) -> Option<&Replayed> {
        self.replayed.as_ref()
    }

    /// The length of the replayed part as a share of what it stands for: 1 unless a long trace has no steps.
    pub(crate) fn replayed_share(&self) -> f64 {
        self.replayed_part().map_or(1.0, |replayed| replayed.share)
    }

    /// Time of kernels that wait for the link, because they read or write host memory, over all devices.
    pub(crate) fn link_waits_ms(&self) -> f64 {
        if self.graph.host_memory.kernels.is_empty() {
            return 0.0;
        }
        let is_bound = |work: &&WorkNode| self.graph.host_bytes(work).is_some_and(|host| host.is_link_bound);
        let waits = self.graph.work.iter().filter(is_bound);
        waits.map(|work| (work.end - work.start) as f64).sum::<f64>() / 1e6
    }

    /// The rate at which kernels that read or write host memory do so; 0 if there are none.
    pub(crate) fn host_memory_gbps(&self) -> f64 {
        let of = |work: &WorkNode| Some((self.graph.host_bytes(work)?.bytes, work.end - work.start));
        let moves = self.graph.work.iter().filter_map(of);
        let (bytes, time) =
            moves.fold((0.0, 0.0), |(bytes, time), (b, t)| (bytes + b as f64, time + t as f64));
        if time > 0.0 { bytes / time } else { 0.0 }
    }

    /// Total time of the selected parts over all devices and steps.
    pub(crate) fn part_ms(&self, wanted: impl Fn(Part) -> bool) -> f64 {
        self.breakdown.sum_of(wanted).as_millis()
    }

    pub(crate) fn steps(&self) -> f64 {
        self.window.step_count()
    }

    /// The steps of all GPUs: times of the trace are sums over its GPUs, and what a step takes is a mean of them.
    pub(crate) fn gpu_steps(&self) -> f64 {
        self.steps() * self.timelines.len().max(1) as f64
    }

    /// Whether work of this device is analyzed.
    pub(crate) fn runs_on(&self, device: i32) -> bool {
        self.timelines.iter().any(|timeline| timeline.device == device)
    }

    /// Whether annotations of this name are the steps.
    pub(crate) fn marks_steps(&self, name: &str) -> bool {
        match (&self.window.pattern, &self.window.given) {
            (_, Some(given)) => given.is_match(name),
            (Some(pattern), None) => *pattern == pattern_of(name),
            (None, None) => false,
        }
    }

    /// The unit of per-step figures.
    pub(crate) fn unit(&self) -> Unit {
        self.window.unit()
    }

    /// Time in which copies use the host link in either direction, over all devices; the busier direction counts.
    pub(crate) fn bus_busy_ms(&self) -> f64 {
        let of = |timeline: &DeviceTimeline| {
            let routes = [CopyRoute::HostToDevice, CopyRoute::DeviceToHost];
            routes.map(|route| timeline.copies_on(route).length()).into_iter().max()
        };
        self.timelines.iter().filter_map(of).sum::<Nanos>().as_millis()
    }

    /// Time between the first and the last work of the devices, per step.
    pub(crate) fn step_ms(&self) -> f64 {
        self.time.analyzed_ms / self.steps() / self.timelines.len().max(1) as f64
    }

    pub(crate) fn idle_ms(&self, cause: GapCause) -> f64 {
        self.part_ms(|part| part == Part::Idle(cause))
    }

    /// Whether copies run faster than the link allows: then the assumed link is wrong.
    pub(crate) fn is_faster_than_link(&self) -> bool {
        self.groups.iter().any(|group| {
            group.utilization.is_some_and(|share| share > 1.1)
                && group.sizes.iter().any(|class| class.from_bytes > 0)
        })
    }

    /// Whether the GPU mostly waits for launches of copies.
    pub(crate) fn launch_waits_are_for_copies(&self) -> bool {
        let idle = self.idle.iter().find(|idle| idle.cause == GapCause::Launch);
        idle.is_some_and(|idle| idle.before_copies_ms > 0.5 * idle.ms)
    }

    /// Whether four of five copies over the bus are of the smallest size class.
    pub(crate) fn has_mostly_small_copies(&self) -> bool {
        let on_bus = self.copies.iter().filter(|copy| copy.is_on_bus());
        let is_small = |copy: &&Copy<'_>| copy.bytes().is_some_and(|bytes| size_class(bytes) == 0);
        on_bus.clone().filter(is_small).count() * 5 >= on_bus.count() * 4
    }

    /// Whether kernels run on the stream of a copy; `None` if its stream is not known. ROCm reports every copy on stream 0, whatever
    /// stream it was issued on.
    pub(crate) fn shares_stream_with_kernels(&self, copy: &Copy<'_>) -> Option<bool> {
        let is_known = !(copy.stream == 0 && self.is_rocm);
        is_known.then(|| self.kernels_on_stream.contains_key(&(copy.device, copy.stream)))
    }

    /// Copies that the program issued. Migrations of managed memory have their own findings.
    pub(crate) fn issued_copies(&self) -> impl Iterator<Item = &Copy<'a>> + Clone {
        self.copies.iter().filter(|copy| !copy.is_migration())
    }

    /// Time in which these copies ran and no kernel did, over all devices.
    pub(crate) fn exposed_ms<'c>(&self, copies: impl IntoIterator<Item = &'c Copy<'c>>) -> f64 {
        let mut by_device: BTreeMap<i32, Vec<_>> = BTreeMap::new();
        for copy in copies {
            by_device.entry(copy.device).or_default().push(copy.interval());
        }
        let exposed = |(device, intervals): (i32, Vec<_>)| {
            timeline::exposed(&self.timelines, device, &IntervalSet::from_unsorted(intervals))
        };
        by_device.into_iter().map(exposed).sum::<Nanos>().as_millis()
    }
}

impl Facts<'_> {
    /// Exposed time of these copies between the first and the last kernel of a step. Skips intervals short enough
    /// to be a normal gap between two kernels.
    pub(crate) fn exposed_between_kernels_ms(&self, copies: &[&Copy<'_>]) -> f64 {
        let mut hulls: BTreeMap<(i32, Option<usize>), Interval> = BTreeMap::new();
        for stream in self.trace.streams() {
            let Place::Stream { device, .. } = stream.place() else { continue };
            for kernel in stream.events().filter(|event| event.kind() == EventKind::Kernel) {
                let own = kernel.interval();
                let hull = hulls.entry((device, self.window.step_of_work(&kernel))).or_insert(own);
                *hull = hull.hull(own);
            }
        }
        let on = |device: i32| {
            let within = hulls.iter().filter(|((of, _), _)| *of == device).map(|(_, hull)| *hull);
            let copies = copies.iter().filter(|copy| copy.device == device).map(|copy| copy.interval());
            let copies = IntervalSet::from_unsorted(copies);
            copies.intersection(&IntervalSet::from_unsorted(within))
        };
        const WAIT: Nanos = Nanos::new(20_000);
        let alone = |timeline: &DeviceTimeline| timeline.exposed_copies(&on(timeline.device));
        let exposed = self.timelines.iter().map(alone);
        let waits =
            |set: IntervalSet| set.iter().map(Interval::length).filter(|time| *time > WAIT).sum::<Nanos>();
        exposed.map(waits).sum::<Nanos>().as_millis()
    }
}

/// The time of each device by part, in the order of the timelines.
fn device_parts(timelines: &[DeviceTimeline], gaps: &Gaps<'_>) -> Vec<PartTimes> {
    let of = |timeline: &DeviceTimeline| PartTimes::of(timeline, gaps_of(gaps, timeline.device));
    timelines.iter().map(of).collect()
}

/// When one device was idle, and why.
pub(crate) fn gaps_of<'g>(
    gaps: &'g Gaps<'_>,
    device: i32,
) -> impl Iterator<Item = (GapCause, Interval)> + 'g {
    gaps.of_device(device).map(|piece| (piece.cause, piece.interval))
}

fn kernels_on_stream(trace: &Trace) -> BTreeMap<(i32, i64), u64> {
    let mut counts = BTreeMap::new();
    for track in trace.streams() {
        if let Place::Stream { device, stream } = track.place() {
            let kernels = track.events().filter(|event| event.kind() == EventKind::Kernel).count() as u64;
            if kernels > 0 {
                counts.insert((device, stream), kernels);
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use busbound_trace::TraceBuilder;

    use super::*;
    use crate::steps::basis::Basis;

    /// Four parts of a diagnosis asked, and each of them looked at all operators again.
    #[test]
    fn where_a_program_computes_is_found_once() {
        let mut trace = TraceBuilder::default();
        let thread = trace.thread(1, 1);
        trace.operator(thread, "aten::mm", 0..90_000_000);
        let (trace, options) = (trace.finish(), Options::default());
        let facts = Facts::on(Basis::of(&trace, &options), &Machine::default(), &options);
        let first = facts.on_cpu().expect("a product of 90 ms is no launch");
        assert_eq!((first.operator.as_str(), first.ms), ("aten::mm", 90.0));
        assert!(std::ptr::eq(first, facts.on_cpu().expect("the same")));
    }
}
