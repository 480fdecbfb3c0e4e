//! What did the collectives exchange, how fast, and how much of their time is waiting for other ranks?
//!
//! A collective begins when its rank arrives and ends when all have. So of several with the same message, the fastest
//! is closest to the transfer itself, and what the others take longer is waiting.

use std::collections::BTreeMap;

use busbound_cause::{CollectiveNames, CollectiveOp, Host};
use busbound_machine::{AllReduceFacts, LinkSource, median};
use busbound_trace::{Collective, Event, EventId, EventKind, Interval, NameId, Nanos, Place, Trace};
use serde::Serialize;

use crate::activity::links::Links;
use crate::activity::timeline::DeviceTimeline;

/// Collectives of one operation with the same message, within one process group.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollectiveGroup {
    pub op: CollectiveOp,
    pub dtype: Option<String>,
    /// The process group's description if it has one, else its name.
    pub group: Option<String>,
    /// Ranks in the process group.
    pub ranks: Option<u32>,
    /// Bytes of one message, as nccl-tests counts them: of the largest buffer on any rank; `null` if not recorded. The rates
    /// and the waiting are then `null`, too.
    pub bytes: Option<u64>,
    pub count: u64,
    /// Sum of their durations.
    pub ms: f64,
    /// Of that, time in which no compute kernel ran.
    pub exposed_ms: f64,
    pub fastest_ms: f64,
    pub median_ms: f64,
    /// Bytes over the time of the fastest, which is at least the transfer.
    pub algbw_gbps: Option<f64>,
    /// The same times nccl-tests' factor for the operation and the number of ranks; `null` for a single rank.
    pub busbw_gbps: Option<f64>,
    /// The link between these GPUs, if they are known to be in one machine.
    pub link: Option<String>,
    /// Bus bandwidth over the peak of that link.
    pub share_of_link: Option<f64>,
    /// Bus bandwidth of the all-reduce that `busbound bench` measured with as many ranks, at the nearest size.
    pub measured_busbw_gbps: Option<f64>,
    /// What they take longer than the fastest; `null` for fewer than three.
    pub waiting_ms: Option<f64>,
    /// Of that, time in which no compute kernel ran.
    pub exposed_waiting_ms: Option<f64>,
}

/// How annotations of collectives that run on the host begin. The host waits in them for other ranks.
pub(crate) const ON_HOST: &str = "gloo:";

/// Fewest collectives of which the fastest is likely not to have waited.
const FEWEST: usize = 3;

impl CollectiveGroup {
    /// Bytes that cross each rank's link, by nccl-tests' factor.
    pub fn bus_bytes(&self) -> Option<f64> {
        let factor = self.op.bus_factor(self.ranks.filter(|ranks| *ranks > 1)?)?;
        Some(self.bytes? as f64 * factor)
    }

    /// Time without waiting, as far as known.
    pub fn transfer_ms(&self) -> f64 {
        self.ms - self.waiting_ms.unwrap_or(0.0)
    }
}

/// One collective on a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CollectiveRun<'a> {
    pub(crate) event: Event<'a>,
    pub(crate) device: i32,
    pub(crate) stream: i64,
    pub(crate) op: CollectiveOp,
    pub(crate) message: Option<Collective>,
    /// Of the message.
    pub(crate) bytes: Option<u64>,
    /// What it takes longer than the fastest with the same message.
    pub(crate) waiting: Option<Nanos>,
}

impl CollectiveRun<'_> {
    /// Its first part, until the transfer began.
    pub(crate) fn waiting_time(&self) -> Option<Interval> {
        let time = self.event.interval();
        Some(Interval::new(time.start, time.start + self.waiting?))
    }

    /// Bytes over its whole time, including waiting.
    pub(crate) fn algbw_gbps(&self) -> Option<f64> {
        let time = self.event.duration();
        Some(self.bytes? as f64 / time.get() as f64).filter(|_| time > Nanos::ZERO)
    }

    fn key(&self) -> Key {
        let message = self.message.unwrap_or_default();
        // Without a message, kernels of one name may differ in size.
        let kernel = if self.message.is_some() { NameId::EMPTY } else { self.event.name_id() };
        Key {
            op: self.op,
            dtype: message.dtype,
            group: (message.group, message.group_ranks),
            ranks: message.group_size,
            bytes: self.bytes,
            kernel,
        }
    }
}

/// What collectives must have in common to be comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    op: CollectiveOp,
    dtype: NameId,
    group: (NameId, NameId),
    ranks: Option<u32>,
    bytes: Option<u64>,
    kernel: NameId,
}

/// By device and stream, then by time.
pub(crate) fn collectives<'a>(
    trace: &'a Trace,
    host: &Host<'a>,
    communication: &CollectiveNames,
) -> Vec<CollectiveRun<'a>> {
    let mut runs = Vec::new();
    // The operator that gave each run its message.
    let mut operators = Vec::new();
    for track in trace.streams() {
        let Place::Stream { device, stream } = track.place() else { continue };
        let kernels = track.events().filter(|event| event.kind() == EventKind::Kernel);
        for event in kernels.filter(|event| communication.contains(event.name_id())) {
            let operator = event.collective().is_none().then(|| operator_of(trace, host, &event)).flatten();
            let message = event.collective().or(operator.and_then(|operator| operator.collective())).copied();
            let named = |message: &Collective| CollectiveOp::named(trace.names().get(message.name));
            let op = message.as_ref().map(named).filter(|op| *op != CollectiveOp::Other);
            let op = op.unwrap_or_else(|| CollectiveOp::named(event.name()));
            let bytes = message.as_ref().and_then(|message| op.message_bytes(message));
            runs.push(CollectiveRun { event, device, stream, op, message, bytes, waiting: None });
            operators.push(operator.map(|operator| operator.id()));
        }
    }
    forget_shared_messages(&mut runs, &operators);
    set_waiting(&mut runs);
    runs
}

/// The operator or range that launched the kernel and has its message: some versions of PyTorch record it only there, NCCL always.
fn operator_of<'a>(trace: &'a Trace, host: &Host<'a>, kernel: &Event<'_>) -> Option<Event<'a>> {
    let call = host.call_behind(kernel)?;
    trace.track(call.track_id()).enclosing(call.start(), |event| event.collective().is_some())
}

/// Of several kernels of one operator, none has moved the whole message: what each has moved is not recorded.
fn forget_shared_messages(runs: &mut [CollectiveRun<'_>], operators: &[Option<EventId>]) {
    let mut kernels: BTreeMap<EventId, u32> = BTreeMap::new();
    for operator in operators.iter().flatten() {
        *kernels.entry(*operator).or_default() += 1;
    }
    for (run, operator) in runs.iter_mut().zip(operators) {
        if operator.is_some_and(|operator| kernels[&operator] > 1) {
            run.bytes = None;
            run.message = None;
            run.op = CollectiveOp::named(run.event.name());
        }
    }
}

fn set_waiting(runs: &mut [CollectiveRun<'_>]) {
    let mut fastest: BTreeMap<Key, (usize, Nanos)> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.bytes.is_some()) {
        let (count, least) = fastest.entry(run.key()).or_insert((0, run.event.duration()));
        *count += 1;
        *least = run.event.duration().min(*least);
    }
    for run in runs {
        let known = fastest.get(&run.key()).filter(|(count, _)| *count >= FEWEST);
        run.waiting = known.map(|(_, least)| run.event.duration() - *least);
    }
}

/// What the collectives are compared with.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) timelines: &'a [DeviceTimeline],
    pub(crate) links: &'a Links,
}

/// Those that take the most time first.
pub(crate) fn groups(runs: &[CollectiveRun<'_>], terms: Terms<'_>) -> Vec<CollectiveGroup> {
    let mut by_key: BTreeMap<Key, Vec<&CollectiveRun<'_>>> = BTreeMap::new();
    for run in runs {
        by_key.entry(run.key()).or_default().push(run);
    }
    let mut groups: Vec<CollectiveGroup> = by_key.iter().map(|(key, runs)| group(key, runs, terms)).collect();
    groups.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    groups
}

fn group(key: &Key, runs: &[&CollectiveRun<'_>], terms: Terms<'_>) -> CollectiveGroup {
    let text = |name: NameId| Some(terms.trace.names().get(name)).filter(|text| !text.is_empty());
    let message = runs.first().and_then(|run| run.message).unwrap_or_default();
    let exposed = |run: &CollectiveRun<'_>, time: Interval| {
        let timeline = terms.timelines.iter().find(|timeline| timeline.device == run.device);
        timeline.map_or(time.length(), |timeline| timeline.exposed_communication(time))
    };
    let times = || runs.iter().map(|run| run.event.duration());
    let fastest = times().min().unwrap_or(Nanos::ZERO);
    let waits = runs.iter().all(|run| run.waiting.is_some());
    let waiting = |of: &dyn Fn(&CollectiveRun<'_>, Interval) -> Nanos| {
        let each = runs.iter().filter_map(|run| Some(of(run, run.waiting_time()?)));
        waits.then(|| each.sum::<Nanos>().as_millis())
    };
    let mut group = CollectiveGroup {
        op: key.op,
        dtype: text(key.dtype).map(str::to_owned),
        group: text(message.group_description).or(text(message.group)).map(str::to_owned),
        ranks: key.ranks,
        bytes: key.bytes,
        count: runs.len() as u64,
        ms: times().sum::<Nanos>().as_millis(),
        exposed_ms: runs.iter().map(|run| exposed(run, run.event.interval())).sum::<Nanos>().as_millis(),
        fastest_ms: fastest.as_millis(),
        median_ms: median(times().map(Nanos::as_millis)).unwrap_or(0.0),
        algbw_gbps: key
            .bytes
            .filter(|_| fastest > Nanos::ZERO)
            .map(|bytes| bytes as f64 / fastest.get() as f64),
        busbw_gbps: None,
        link: None,
        share_of_link: None,
        measured_busbw_gbps: None,
        waiting_ms: waiting(&|_, time| time.length()),
        exposed_waiting_ms: waiting(&exposed),
    };
    if let Some(bytes) = group.bus_bytes().filter(|_| fastest > Nanos::ZERO) {
        group.busbw_gbps = Some(bytes / fastest.get() as f64);
        compare(&mut group, runs.first().map_or(0, |run| run.device), terms);
    }
    group
}

/// With the link between the GPUs, and with what was measured on it.
fn compare(group: &mut CollectiveGroup, device: i32, terms: Terms<'_>) {
    let link = terms.links.of(device);
    let (Some(ranks), Some(busbw)) = (group.ranks, group.busbw_gbps) else { return };
    // More ranks than GPUs in the machine: some of the traffic crosses a network that the trace does not show.
    if ranks as usize <= terms.trace.origin().gpus.len() && link.source != LinkSource::Assumed {
        let between = match link.nvlink_gbps {
            Some(gbps) if gbps > 0.0 => Some(("links between GPUs".to_owned(), gbps)),
            Some(_) => Some((link.name.clone(), link.peak_gbps)),
            None => None,
        };
        group.share_of_link = between.as_ref().map(|(_, peak)| busbw / peak);
        group.link = between.map(|(name, _)| name);
    }
    let Some(bytes) = group.bytes.filter(|_| group.op == CollectiveOp::AllReduce) else { return };
    let measured = link.measured().map_or(&[][..], |profile| &profile.allreduce);
    // As many machines as these ranks need, and one process per GPU, like most training.
    let nodes = ranks.div_ceil((terms.trace.origin().gpus.len() as u32).max(1));
    let unlike = |one: &AllReduceFacts| {
        (one.processes.nodes() != nodes, one.processes.is_one(), one.bytes.abs_diff(bytes))
    };
    group.measured_busbw_gbps = measured
        .iter()
        .filter(|one| one.ranks == ranks && one.bytes / 2 <= bytes && bytes / 2 <= one.bytes)
        .min_by_key(|one| unlike(one))
        .map(|one| one.busbw_gbps);
}
