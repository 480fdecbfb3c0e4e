//! How long would this run take with a change? Replays its trace with the change applied.
//!
//! [`Replay::of`] turns the steps of a trace into a graph of calls, work and waits; [`Replay::predict`] changes the graph
//! and simulates it. Without changes it must reproduce the measured time: the difference is the replay error.

mod around_copies;
mod assumed;
mod cases;
mod changes;
mod job;
mod models;
mod power;
mod range_from;

use std::collections::BTreeMap;

use busbound_cause::parallel::join;
use busbound_cause::{Model, Prepared, Sharing, Simulated, WorkId, simulate};
use busbound_machine::LinkFacts;
use busbound_trace::{Direction, EventId};

pub use busbound_cause::TraceRange;
pub use changes::{
    About, Async, Change, Coalesce, Copied, CudaGraph, Keep, LoaderPin, NoSync, Optimizer, OtherLink, Pin,
    Prefetch, Resident, Spread, Stage, Stream, UnknownChange, Workers, all_changes, staged_from,
};

pub use job::{Job, JobRank, NoJob};
pub use models::Models;
pub use range_from::RangeFrom;

use around_copies::time_around_copies;
use assumed::Assumed;
use models::RecordingIs;
use power::{Effect, Power};

/// Steps of a trace, ready to replay.
#[derive(Debug, Clone)]
pub struct Replay {
    models: Models,
    link: LinkFacts,
    /// As expected without changes, without the profiler where that is known.
    unchanged: Simulated,
    /// As recorded without changes.
    recorded: Simulated,
    power: Power,
    /// From nanoseconds of replayed steps to milliseconds of the step that answers show.
    scale: f64,
    /// How much longer the step that answers show is than the replayed ones, as a share.
    beyond: f64,
}

/// The predicted step time, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Predicted {
    pub step_ms: f64,
    pub low_ms: f64,
    pub high_ms: f64,
    /// The best and the worst case of the unknowns, without the replay error.
    pub best_ms: f64,
    pub worst_ms: f64,
    /// How far a prediction may be off beyond these cases, as a share.
    pub spread: f64,
    /// Additional device memory that the change needs.
    pub extra_bytes: u64,
    /// Whether the changes affect anything in the trace.
    pub applies: bool,
    /// Slowdown of matrix kernels when the device is idle less, as a multiple.
    pub power: f64,
}

/// One kernel or copy in both timelines: stream index, start and end in nanoseconds since the start of the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    pub event: EventId,
    pub measured: (usize, i64, i64),
    /// `None` if the change removes it.
    pub predicted: Option<(usize, i64, i64)>,
}

/// How reliable the graph is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence {
    /// Replay error: the relative difference of the unchanged replay from the trace.
    pub error: f64,
    pub recorded_waits: usize,
    pub inferred_waits: usize,
    /// Share of the time in which the device waited for something that is not visible in the trace.
    pub unexplained: f64,
    /// Work whose call is not in the trace, as a share of all work.
    pub without_call: f64,
}

/// Slowdown of a matrix kernel while copies run. Measured: pairs that hide copies behind kernels take 5% longer than the sum of
/// their kernels (docs/results/whatif.md).
const KERNEL_WITH_COPY: f64 = 1.05;
/// Slowdown of a copy while the other direction is busy, without a profile: measured on an H200.
const DUPLEX: f64 = 1.08;
/// A replay with a larger error is rejected.
const MOST_ERROR: f64 = 0.10;
/// The minimum uncertainty of a prediction, whatever the replay error: profiling changes the timing of a run.
const LEAST_SPREAD: f64 = 0.04;
/// Up to this share longer than the replayed ones, the other steps take longer for the same reasons. Chosen: one pause of 4.7 s among
/// steps of 0.1 s would make each millisecond that a change saves thirteen.
const MORE_OF_THE_SAME: f64 = 0.5;
/// Where the step is shorter than the replayed time by more than this share, the replay also covers what comes before the step: the
/// allocations of a program whose only step is the time between its first and its last kernel. Changes do not shorten that.
const BEFORE_THE_STEP: f64 = 0.2;
/// Share of the step. A smaller gain is none.
const NO_GAIN: f64 = 0.01;
/// No range is narrower than this share of the prediction, on each side. Measured: of 260 predictions for recorded programs (the
/// fifth to the tenth set of fixtures/frameworks), 231 are inside without it and 240 with it.
const LEAST_RANGE: f64 = 0.09;
/// The unknowns are rarely all at their extremes: ranges are this share of those. Measured: of 503 predictions for recorded programs
/// (the fifth to the fourteenth set of fixtures/frameworks), 94% are inside with it; with 0.75, 84% of the thirteenth were.
const CALIBRATED: f64 = 0.85;

impl Replay {
    /// `None` if the steps have no device work, or if the replay does not reproduce the trace.
    pub fn of(models: Models, link: &LinkFacts) -> Option<Self> {
        let graph = models.as_recorded();
        if graph.work.is_empty() || graph.end <= 0 || graph.steps == 0 {
            return None;
        }
        let sharing = usual_sharing(link);
        let without = || (!models.is_recorded()).then(|| simulate(models.expected(), &sharing));
        let (without, recorded) = join(without, || simulate(graph, &sharing));
        let power = Power::of(link);
        // A graph that does not reproduce the trace cannot predict the effect of a change.
        let error = recorded.end as f64 / graph.end as f64 - 1.0;
        if !recorded.complete || error.abs() >= MOST_ERROR {
            return None;
        }
        let unchanged = without.unwrap_or_else(|| recorded.clone());
        // The replay error is in all times.
        let scale = 1e-6 / (1.0 + error);
        unchanged.complete.then(|| Self {
            link: link.clone(),
            unchanged,
            recorded,
            power,
            models,
            scale,
            beyond: 0.0,
        })
    }

    /// The unchanged step takes this long from now on. Answers count the steps of a trace in more ways than the replay: the one
    /// that is cut off at its end, or those that the replay leaves out.
    #[must_use]
    pub fn with_step_ms(mut self, step_ms: f64) -> Self {
        self.beyond = step_ms / (self.unchanged.step() * self.scale) - 1.0;
        self
    }

    /// Milliseconds of a replayed step. What other steps take longer is in proportion to what is left of the step: a change that
    /// removes most of it removes most of that too. Steps that take much longer do something else, which stays.
    fn ms(&self, step_ns: f64) -> f64 {
        let unchanged = self.unchanged.step().max(1.0);
        let left = (step_ns / unchanged).min(1.0);
        let alike = if self.beyond < -BEFORE_THE_STEP { 0.0 } else { self.beyond.min(MORE_OF_THE_SAME) };
        step_ns * self.scale * (1.0 + alike * left) + unchanged * self.scale * (self.beyond - alike)
    }

    /// Milliseconds of a step of a changed graph: its kernels do not get shorter because other steps are, and no link carries more
    /// than its peak.
    fn changed_ms(&self, graph: &Model, step_ns: f64) -> f64 {
        let least = kernels_of_busiest_stream(graph).max(busiest_link(graph, self.link.peak_gbps));
        self.ms(step_ns).max((1e-6 * least).min(self.step_ms()))
    }

    /// Changes of copies alone save at most the time around them.
    fn least_ms(&self, changes: &[Change]) -> f64 {
        let is_of_copies = changes.iter().all(Change::is_of_copies);
        let around = is_of_copies.then(|| time_around_copies(self.models.as_recorded())).flatten();
        let longer = 1.0 + self.beyond.clamp(0.0, MORE_OF_THE_SAME);
        around.map_or(0.0, |around| self.step_ms() - around * self.scale * longer)
    }

    /// Milliseconds of the mean step, replayed without changes and without the profiler where that is known.
    pub fn step_ms(&self) -> f64 {
        self.ms(self.unchanged.step())
    }

    /// The same as recorded.
    pub fn recorded_ms(&self) -> f64 {
        self.ms(self.recorded.step())
    }

    pub fn confidence(&self) -> Confidence {
        let graph = self.models.as_recorded();
        let edges = graph.edges;
        Confidence {
            error: self.recorded.end as f64 / graph.end as f64 - 1.0,
            recorded_waits: edges.recorded,
            inferred_waits: edges.inferred + edges.thread_waits,
            unexplained: edges.unexplained as f64 / graph.end as f64,
            without_call: edges.without_call as f64 / graph.work.len() as f64,
        }
    }

    /// The predicted step time with these changes, without its range; `None` if they change nothing.
    pub fn expect_ms(&self, changes: &[Change]) -> Option<f64> {
        let [expected, independent] = self.run_cases(changes, expected_cases(changes));
        expected.applied.then_some(0.5 * (expected.step_ms + independent.step_ms))
    }

    /// Whether these changes make the step shorter.
    pub fn gains(&self, changes: &[Change]) -> bool {
        self.expect_ms(changes).is_some_and(|ms| ms < (1.0 - NO_GAIN) * self.step_ms())
    }

    /// The predicted step time with these changes, applied in order.
    pub fn predict(&self, changes: &[Change]) -> Predicted {
        let of_recording = |extreme: Assumed| Assumed { recording: extreme.recording, ..Assumed::EXPECTED };
        let of_changes = |extreme: Assumed| Assumed { recording: RecordingIs::Expected, ..extreme };
        let [dependent, independent] = expected_cases(changes);
        // The worst case comes first: clocks that fall are simulated several times.
        let [worst, expected, independent, best, best_recorded, worst_recorded] = self.run_cases(
            changes,
            [
                of_changes(Assumed::WORST),
                dependent,
                independent,
                of_changes(Assumed::BEST),
                of_recording(Assumed::BEST),
                of_recording(Assumed::WORST),
            ],
        );
        let extremes = [best, best_recorded, worst, worst_recorded];
        let error = self.confidence().error.abs();
        let spread =
            error + LEAST_SPREAD + 0.25 * (self.confidence().unexplained + self.confidence().without_call);
        let step_ms = 0.5 * (expected.step_ms + independent.step_ms);
        let (best_ms, worst_ms) = ends(&extremes.map(|ran| ran.step_ms), step_ms, expected.step_ms);
        let below = CALIBRATED * (step_ms - best_ms * (1.0 - spread));
        let above = CALIBRATED * (worst_ms * (1.0 + spread) - step_ms);
        let low_ms = (step_ms - below.max(LEAST_RANGE * step_ms)).max(best.floor_ms.min(step_ms));
        let high_ms = step_ms + above.max(LEAST_RANGE * step_ms);
        Predicted {
            step_ms,
            low_ms,
            high_ms,
            best_ms,
            worst_ms,
            spread: spread.max((1.0 + LEAST_RANGE) * step_ms / worst_ms - 1.0),
            extra_bytes: expected.extra_bytes,
            applies: expected.applied,
            power: expected.power,
        }
    }

    /// The measured and the predicted position of each kernel and copy.
    pub fn timeline(&self, changes: &[Change]) -> Vec<Moved> {
        let mut graph = Model::default();
        let (simulated, _) = self.simulated(&mut graph, changes, Assumed::EXPECTED);
        let work = graph.work.iter().zip(&self.models.expected().work).zip(&simulated.work);
        work.map(|((after, before), (start, end))| Moved {
            event: before.event,
            measured: (before.stream, before.start, before.end),
            predicted: (!after.dropped).then_some((after.stream, *start, *end)),
        })
        .collect()
    }

    /// What a case gives. The model is edited in `graph`, whose memory is used again.
    fn run(&self, graph: &mut Model, changes: &[Change], assumed: Assumed) -> Ran {
        let (simulated, made) = self.simulated(graph, changes, assumed);
        // If a change leaves work undone, no prediction is possible.
        if simulated.complete {
            made
        } else {
            Ran { step_ms: self.step_ms(), applied: false, power: 1.0, ..made }
        }
    }

    /// Lets the graph have these changes. Whether they affect anything, and the device memory that they need.
    fn edit(&self, graph: &mut Model, changes: &[Change], assumed: Assumed) -> (bool, u64) {
        graph.clone_from(self.models.of(assumed.recording));
        let mut applied = false;
        let mut extra_bytes = 0;
        for change in changes {
            let made = changes::apply(graph, change, &self.link, assumed);
            applied |= made.changed > 0;
            extra_bytes += made.extra_bytes;
        }
        (applied, extra_bytes)
    }

    fn simulated(&self, graph: &mut Model, changes: &[Change], assumed: Assumed) -> (Simulated, Ran) {
        let (applied, extra_bytes) = self.edit(graph, changes, assumed);
        let kernel_with_copy =
            if assumed.power == Effect::Most { worst_kernel_with_copy(&self.link) } else { KERNEL_WITH_COPY };
        let mut sharing = Sharing { duplex: duplex(&self.link), kernel_with_copy, heavy: 1.0 };
        if !applied {
            // Without an effect, what recording cost is still uncertain.
            let is_expected = assumed.recording == RecordingIs::Expected || self.models.is_recorded();
            let unchanged = if is_expected { self.unchanged.clone() } else { simulate(graph, &sharing) };
            let floor_ms = 1e-6 * kernels_of_busiest_stream(graph);
            let made = Ran { step_ms: self.ms(unchanged.step()), floor_ms, extra_bytes, applied, power: 1.0 };
            return (unchanged, made);
        }
        let prepared = Prepared::of(graph);
        let mut simulated = prepared.simulate(&sharing);
        // A device that is idle less clocks lower, which makes it idle even less. This converges quickly.
        let duty = |of: &Simulated| duty(of, assumed.power);
        let before = duty(&self.unchanged);
        for _ in 0..3 {
            let slowdown = self.power.slowdown(before, duty(&simulated), assumed.power);
            if slowdown == sharing.heavy {
                break;
            }
            sharing.heavy = slowdown;
            simulated = prepared.simulate(&sharing);
        }
        let least_ms = self.least_ms(changes);
        let step_ms = self.changed_ms(graph, simulated.step()).max(least_ms);
        let floor_ms = (1e-6 * kernels_of_busiest_stream(graph)).max(least_ms);
        let made = Ran { step_ms, floor_ms, extra_bytes, applied, power: sharing.heavy };
        (simulated, made)
    }
}

/// The expected case twice: the trace may not show whether the overlapping work uses the copied data. The mean of both counts.
fn expected_cases(changes: &[Change]) -> [Assumed; 2] {
    let independent = changes.iter().any(|change| change.about().depends_on_data);
    [Assumed::EXPECTED, Assumed { independent, ..Assumed::EXPECTED }]
}

/// The best and the worst case: of the changes and of the recording at their best, then at their worst. What recording cost and
/// what the changes assume are independent of each other: both at their worst at once is unlikely, so their squares add up.
fn ends(
    &[best, best_recorded, worst, worst_recorded]: &[f64; 4],
    step_ms: f64,
    expected_ms: f64,
) -> (f64, f64) {
    let (mut below, mut above) = ((step_ms - expected_ms).max(0.0), (expected_ms - step_ms).max(0.0));
    for (assumed_ms, recorded_ms) in [(best, best_recorded), (worst, worst_recorded)] {
        let least = (step_ms - assumed_ms).max(0.0).hypot((expected_ms - recorded_ms).max(0.0));
        let most = (assumed_ms - step_ms).max(0.0).hypot((recorded_ms - expected_ms).max(0.0));
        (below, above) = (below.max(least), above.max(most));
    }
    (step_ms - below, step_ms + above)
}

/// Nanoseconds per step. The error of a replay is in waits: kernels take as long as recorded, or as a change says.
fn kernels_of_busiest_stream(model: &Model) -> f64 {
    let of_stream = |stream: &Vec<WorkId>| -> f64 {
        let kernels =
            stream.iter().map(|id| &model.work[*id]).filter(|work| work.kind.is_kernel() && !work.dropped);
        kernels.map(|work| work.alone).sum()
    };
    model.streams.iter().map(of_stream).fold(0.0, f64::max) / model.steps.max(1) as f64
}

/// Nanoseconds per step in which the busiest link in its busier direction carries all bytes, at its peak or the highest rate seen.
fn busiest_link(model: &Model, peak_gbps: f64) -> f64 {
    let mut bytes: BTreeMap<(i32, bool), u64> = BTreeMap::new();
    let mut gbps = peak_gbps;
    for work in model.work.iter().filter(|work| !work.dropped) {
        let Some(direction) = work.kind.bus() else { continue };
        let is_down = direction == Direction::DeviceToHost;
        *bytes.entry((model.stream_device[work.stream], is_down)).or_default() += work.kind.bytes();
        gbps = gbps.max(work.kind.bytes() as f64 / work.alone.max(1.0));
    }
    let most = bytes.into_values().max().unwrap_or(0);
    most as f64 / gbps / model.steps.max(1) as f64
}

#[derive(Debug, Clone, Copy)]
struct Ran {
    step_ms: f64,
    /// Kernels of the stream with most of them, and what is not around copies if only these change: no step is shorter.
    floor_ms: f64,
    extra_bytes: u64,
    applied: bool,
    power: f64,
}

/// Share of the time in which the device draws power: with matrix kernels. Other kernels draw less, mostly by memory; at worst
/// as much. Measured: a program of matrix and element-wise kernels slows down by 7% when its copies are hidden
/// (`weights-calm` in fixtures/frameworks).
fn duty(simulated: &Simulated, effect: Effect) -> f64 {
    let others = (simulated.kernels - simulated.heavy) as f64;
    let counted = match effect {
        Effect::None => 0.0,
        Effect::AsMeasured => 0.5 * others,
        Effect::Most => others,
    };
    (simulated.heavy as f64 + counted) / (simulated.end as f64).max(1.0)
}

/// What concurrent work costs on this machine.
pub fn usual_sharing(link: &LinkFacts) -> Sharing {
    Sharing { duplex: duplex(link), kernel_with_copy: KERNEL_WITH_COPY, heavy: 1.0 }
}

/// A copy's time while the other direction is busy, as a multiple of its time without contention.
fn duplex(link: &LinkFacts) -> f64 {
    let measured = link.measured().and_then(|profile| {
        let both = profile.duplex?;
        let loaded = 0.5 * (both.h2d_loaded_gbps + both.d2h_loaded_gbps);
        Some(link.reachable_gbps() / loaded)
    });
    measured.unwrap_or(DUPLEX).max(1.0)
}

/// The worst measured slowdown of kernels by copies.
fn worst_kernel_with_copy(link: &LinkFacts) -> f64 {
    let all = link.measured().map(|profile| profile.overlap.as_slice()).unwrap_or_default();
    all.iter().map(|one| one.kernel_slowdown).fold(KERNEL_WITH_COPY, f64::max)
}
