//! What is in this file, and what is missing from it?

pub(crate) mod headline;
mod lacks;
mod lost_records;
pub(crate) mod missing;
pub(crate) mod other_profiler;
pub(crate) mod places;
pub(crate) mod steps;
pub(crate) mod withheld;

use std::collections::BTreeMap;

use busbound_trace::{
    Bytes, Direction, EventKind, Gpu, LossKind, MemoryKind, Nanos, Repair, Timestamp, Trace, rank_in_name,
};
use serde::{Deserialize, Serialize};

use missing::Missing;
use steps::StepPattern;
use withheld::why_incomplete;

pub const SURVEY_SCHEMA: &str = "busbound.survey/2";

/// Where a trace came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The path as the user gave it.
    pub path: String,
}

impl Source {
    pub fn named(path: impl Into<String>) -> Self {
        Self { path: path.into() }
    }
}

/// The output of `busbound survey` for one trace.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Survey {
    pub schema: &'static str,
    /// The answer in one sentence.
    pub headline: String,
    pub source: SourceFacts,
    pub versions: BTreeMap<String, String>,
    pub settings: BTreeMap<String, bool>,
    pub rank: Option<RankedAs>,
    /// Every GPU of the machine, used in this trace or not.
    pub gpus: Vec<Gpu>,
    pub span: Option<Span>,
    pub gpu_span: Option<Span>,
    pub kinds: Vec<KindTotal>,
    pub devices: Vec<Device>,
    pub copies: Vec<CopyClass>,
    pub processes: Vec<Process>,
    pub steps: Vec<StepPattern>,
    pub recorded: Recorded,
    pub missing: Vec<Missing>,
    pub not_kept: BTreeMap<String, u64>,
    pub unknown_categories: BTreeMap<String, u64>,
    pub repairs: BTreeMap<Repair, u64>,
    pub profiler_messages: Vec<String>,
    /// What dumps of PyTorch's flight recorder say that were given beside the trace; empty without them.
    pub flight_recorder: Vec<String>,
}

/// The file and how much of it could be read.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceFacts {
    pub path: String,
    pub format: &'static str,
    /// Whether all of it was read, no records are missing, and none contradict each other.
    pub complete: bool,
    pub file_bytes: u64,
    /// Whether the file is compressed; `json_bytes` then counts uncompressed bytes, `file_bytes` compressed ones.
    pub compressed: bool,
    pub json_bytes: u64,
    /// Objects in the event list, kept or skipped.
    pub objects: u64,
    pub events: u64,
    pub lost: Vec<LostPart>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostPart {
    pub what: LossKind,
    pub text: &'static str,
    /// The table it happened in, for files that have tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Byte offset of the first occurrence; 0 if unknown.
    #[serde(rename = "where")]
    pub first_offset: u64,
    /// Whether the offset is in the compressed file rather than in the JSON.
    pub in_compressed_bytes: bool,
    pub count: u64,
    pub bytes: u64,
}

/// The rank of this process, and where it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankedAs {
    pub rank: u32,
    pub world_size: Option<u32>,
    pub backend: Option<String>,
    pub origin: RankOrigin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RankOrigin {
    DistributedInfo,
    FileName,
}

/// A time span, from the first start to the last end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    pub start_ns: Timestamp,
    pub length_ns: Nanos,
}

/// The number of events of a kind, and the sum of their durations (overlaps count twice).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KindTotal {
    pub kind: EventKind,
    pub count: u64,
    pub total_ns: Nanos,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Device {
    pub id: i32,
    /// From the list of GPUs; `None` if the trace has no list.
    pub name: Option<String>,
    pub streams: Vec<Stream>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stream {
    /// −1 for events of the whole device.
    pub id: i64,
    pub kernels: u64,
    pub copies: u64,
    pub memsets: u64,
    pub synchronizations: u64,
    pub work_ns: Nanos,
}

/// Copies of one direction between the same kinds of memory.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CopyClass {
    pub direction: Direction,
    pub src: MemoryKind,
    pub dst: MemoryKind,
    pub count: u64,
    /// Bytes of the copies that record them.
    pub bytes: Bytes,
    pub without_bytes: u64,
    pub total_ns: Nanos,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Process {
    pub id: String,
    pub name: Option<String>,
    pub threads: Vec<Thread>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thread {
    pub id: String,
    pub name: Option<String>,
    pub events: u64,
}

/// What the profiler recorded, as seen in the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recorded {
    pub gpu_activity: bool,
    pub operators: bool,
    pub runtime_calls: bool,
    pub shapes: bool,
    pub stacks: bool,
    pub memory: bool,
    pub synchronizations: bool,
    pub collective_sizes: bool,
}

/// Surveys one trace.
pub fn survey(trace: &Trace, source: &Source) -> Survey {
    let stats = trace.stats();
    let totals = Totals::of(trace);
    let recorded = Recorded {
        gpu_activity: totals.gpu_work() > 0,
        operators: totals.count(EventKind::Operator) > 0,
        runtime_calls: totals.count(EventKind::RuntimeCall) + totals.count(EventKind::DriverCall) > 0,
        shapes: stats.shapes_seen,
        stacks: stats.stacks_seen,
        memory: !trace.memory().is_empty(),
        synchronizations: totals.count(EventKind::Synchronization) > 0,
        collective_sizes: totals.collectives > 0,
    };
    let steps = steps::patterns(trace);
    let mut survey = Survey {
        schema: SURVEY_SCHEMA,
        headline: String::new(),
        source: SourceFacts {
            path: source.path.clone(),
            format: trace.origin().format.id,
            complete: stats.is_complete(),
            file_bytes: stats.file_bytes,
            compressed: stats.compressed,
            json_bytes: stats.json_bytes,
            objects: stats.objects,
            events: stats.events,
            lost: lost_parts(trace),
        },
        versions: trace.origin().versions.clone(),
        settings: trace.origin().settings.clone(),
        rank: rank_of(trace, source),
        gpus: trace.origin().gpus.clone(),
        span: totals.span,
        gpu_span: totals.gpu_span,
        kinds: totals.kinds(),
        devices: places::devices(trace, &totals),
        copies: totals.copies(),
        processes: places::processes(trace, &totals),
        steps,
        recorded,
        missing: Vec::new(),
        not_kept: stats.not_kept.clone(),
        unknown_categories: stats.unknown_categories.clone(),
        repairs: stats.repairs.clone(),
        profiler_messages: trace.origin().profiler_messages.clone(),
        flight_recorder: Vec::new(),
    };
    survey.missing = missing::missing(trace, &totals, &survey);
    let withheld = why_incomplete(trace, &survey).map(|withheld| withheld.id);
    survey.source.complete &= withheld.is_none();
    survey.headline = headline::headline(&survey, withheld);
    survey
}

fn lost_parts(trace: &Trace) -> Vec<LostPart> {
    trace
        .stats()
        .losses
        .iter()
        .map(|loss| LostPart {
            what: loss.what,
            text: loss.what.describe(),
            table: loss.table.clone(),
            first_offset: loss.first_offset,
            in_compressed_bytes: loss.what.is_in_compressed_bytes(),
            count: loss.count,
            bytes: loss.bytes,
        })
        .collect()
}

/// The rank, from the trace or its file name.
pub fn rank_of(trace: &Trace, source: &Source) -> Option<RankedAs> {
    let distributed = trace.origin().distributed.as_ref();
    let recorded = distributed.and_then(|d| d.rank).map(|rank| (rank, RankOrigin::DistributedInfo));
    let file = source.path.rsplit(['/', '\\']).next().unwrap_or_default();
    let named = || rank_in_name(file).map(|rank| (rank, RankOrigin::FileName));
    let (rank, origin) = recorded.or_else(named)?;
    Some(RankedAs {
        rank,
        world_size: distributed.and_then(|d| d.world_size),
        backend: distributed.and_then(|d| d.backend.clone()),
        origin,
    })
}

/// All totals of the survey, from one pass over the columns.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    by_kind: BTreeMap<EventKind, (u64, Nanos)>,
    /// Per track and kind, by track number.
    by_track: Vec<BTreeMap<EventKind, (u64, Nanos)>>,
    copies: BTreeMap<(Direction, MemoryKind, MemoryKind), CopyClass>,
    pub(crate) collectives: u64,
    pub(crate) gpu_work_without_correlation: u64,
    span: Option<Span>,
    gpu_span: Option<Span>,
}

impl Totals {
    fn of(trace: &Trace) -> Self {
        const KINDS: usize = EventKind::ALL.len();
        let tracks = trace.tracks().len();
        let mut sums = vec![[(0u64, Nanos::ZERO); KINDS]; tracks];
        let mut totals = Self::default();
        let (mut bounds, mut gpu_bounds) = (Bounds::default(), Bounds::default());
        for event in trace.events() {
            let kind = event.kind();
            let sum = &mut sums[event.track_id().index()][kind as usize];
            sum.0 += 1;
            sum.1 += event.duration();
            // The profiler's own span may be far longer than the recorded events.
            if !matches!(kind, EventKind::ProfilerSpan | EventKind::ProfilerOverhead) {
                bounds.include(event.start(), event.end());
            }
            if !kind.is_gpu_work() {
                continue;
            }
            gpu_bounds.include(event.start(), event.end());
            // Migrations have no call.
            let is_uncorrelated = event.correlation().is_none() && event.migration().is_none();
            totals.gpu_work_without_correlation += u64::from(is_uncorrelated);
            totals.collectives += u64::from(event.collective().is_some());
            if kind == EventKind::Copy
                && let Some(transfer) = event.transfer()
            {
                let key = (transfer.direction, transfer.src, transfer.dst);
                let class = totals.copies.entry(key).or_insert_with(|| CopyClass {
                    direction: transfer.direction,
                    src: transfer.src,
                    dst: transfer.dst,
                    count: 0,
                    bytes: Bytes::ZERO,
                    without_bytes: 0,
                    total_ns: Nanos::ZERO,
                });
                class.count += 1;
                class.bytes += transfer.bytes.unwrap_or_default();
                class.without_bytes += u64::from(transfer.bytes.is_none());
                class.total_ns += event.duration();
            }
        }
        totals.by_track = sums
            .iter()
            .map(|sums| {
                let kinds = EventKind::ALL.into_iter().zip(sums.iter().copied());
                kinds.filter(|(_, (count, _))| *count > 0).collect()
            })
            .collect();
        for track in &totals.by_track {
            for (&kind, &(count, time)) in track {
                let total = totals.by_kind.entry(kind).or_default();
                total.0 += count;
                total.1 += time;
            }
        }
        totals.span = bounds.span();
        totals.gpu_span = gpu_bounds.span();
        totals
    }

    pub(crate) fn count(&self, kind: EventKind) -> u64 {
        self.by_kind.get(&kind).map_or(0, |&(count, _)| count)
    }

    pub(crate) fn gpu_work(&self) -> u64 {
        EventKind::ALL.into_iter().filter(|kind| kind.is_gpu_work()).map(|kind| self.count(kind)).sum()
    }

    pub(crate) fn on_track(&self, track: usize) -> &BTreeMap<EventKind, (u64, Nanos)> {
        &self.by_track[track]
    }

    fn kinds(&self) -> Vec<KindTotal> {
        self.by_kind.iter().map(|(&kind, &(count, total_ns))| KindTotal { kind, count, total_ns }).collect()
    }

    fn copies(&self) -> Vec<CopyClass> {
        self.copies.values().cloned().collect()
    }
}

#[derive(Debug, Default)]
struct Bounds(Option<(Timestamp, Timestamp)>);

impl Bounds {
    fn include(&mut self, start: Timestamp, end: Timestamp) {
        self.0 = Some(match self.0 {
            Some((first, last)) => (first.min(start), last.max(end)),
            None => (start, end),
        });
    }

    fn span(self) -> Option<Span> {
        self.0.map(|(start, end)| Span { start_ns: start, length_ns: end - start })
    }
}
