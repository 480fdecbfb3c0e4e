//! What would this run take if something were changed? Its trace is run again, with the change made.
//!
//! [`Replay::of`] turns steps of a trace into a graph of calls, work and waits; [`Replay::predict`] changes the graph and
//! runs it. Unchanged it must give what was measured: how far it does not is its own error.

mod assumed;
mod changes;
mod power;

use busbound_cause::{Graph, Model, Sharing, Simulated, simulate};
use busbound_machine::LinkFacts;
use busbound_trace::EventId;

pub use busbound_cause::Stretch;
pub use changes::{
    About, Async, Change, Coalesce, NoSync, OtherLink, Pin, Prefetch, Resident, UnknownChange, all_changes,
};

use assumed::Assumed;
use power::{Effect, Power};

/// Steps of a trace, ready to be run again.
#[derive(Debug)]
pub struct Replay {
    graph: Model,
    link: LinkFacts,
    unchanged: Simulated,
    power: Power,
}

/// What a step would take, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Predicted {
    pub step_ms: f64,
    pub low_ms: f64,
    pub high_ms: f64,
    /// The best and the worst of what cannot be known, without the replay's own error.
    pub best_ms: f64,
    pub worst_ms: f64,
    /// Device memory that the change takes beyond what the run takes now.
    pub extra_bytes: u64,
    /// Whether the trace has anything that the changes could change.
    pub applies: bool,
    /// What slows matrix kernels when the device rests less, as a multiple.
    pub power: f64,
}

/// One piece of work in both timelines: the stream by number, start and end in nanoseconds from the first step's
/// beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    pub event: EventId,
    pub measured: (usize, i64, i64),
    /// `None` where it would no longer be done.
    pub predicted: Option<(usize, i64, i64)>,
}

/// How sure the graph is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence {
    /// How far the unchanged replay is from the trace, as a share.
    pub error: f64,
    pub recorded_waits: usize,
    pub inferred_waits: usize,
    /// Share of the time in which the device waited for something that the trace does not tell.
    pub unexplained: f64,
    /// Work whose call is not in the trace, as a share of all work.
    pub without_call: f64,
}

/// A kernel's time beside copies where no profile tells.
const BESIDE_COPY: f64 = 1.0;
/// A copy's time beside the other direction where no profile tells: as on an H200.
const DUPLEX: f64 = 1.08;
/// A replay that misses the trace by more is none.
const MOST_ERROR: f64 = 0.10;
/// No prediction is better than this, whatever the replay's own error: traces are recorded under a profiler, and steps are not.
const LEAST_SPREAD: f64 = 0.035;

impl Replay {
    /// `None` where the stretch holds no work of a device.
    pub fn of(graph: &Graph, stretch: &Stretch, link: &LinkFacts) -> Option<Self> {
        let graph = Model::of(graph, stretch, duplex(link));
        if graph.work.is_empty() || graph.end <= 0 || stretch.starts.is_empty() {
            return None;
        }
        let sharing = Sharing { duplex: duplex(link), kernel_beside_copy: BESIDE_COPY, heavy: 1.0 };
        let unchanged = simulate(&graph, &sharing);
        let power = Power::of(link);
        // A graph that does not come near the trace says nothing of what a change would do to it.
        let error = unchanged.end as f64 / graph.end as f64 - 1.0;
        (unchanged.complete && error.abs() < MOST_ERROR).then(|| Self {
            graph,
            link: link.clone(),
            unchanged,
            power,
        })
    }

    /// Milliseconds of the middle step, run again unchanged.
    pub fn step_ms(&self) -> f64 {
        self.unchanged.step() / 1e6 / (1.0 + self.confidence().error)
    }

    pub fn confidence(&self) -> Confidence {
        let edges = self.graph.edges;
        Confidence {
            error: self.unchanged.end as f64 / self.graph.end as f64 - 1.0,
            recorded_waits: edges.recorded,
            inferred_waits: edges.inferred + edges.handed_over,
            unexplained: edges.unexplained as f64 / self.graph.end as f64,
            without_call: edges.without_call as f64 / self.graph.work.len() as f64,
        }
    }

    /// What the stretch would take with these changes, made in order.
    pub fn predict(&self, changes: &[Change]) -> Predicted {
        // The middle; then all that may go well, and all that may not.
        let middle = self.run(changes, Assumed::MIDDLE);
        let best = self.run(changes, Assumed::BEST);
        let worst = self.run(changes, Assumed::WORST);
        let error = self.confidence().error.abs();
        let spread =
            error + LEAST_SPREAD + 0.25 * (self.confidence().unexplained + self.confidence().without_call);
        let all = [middle.step_ms, best.step_ms, worst.step_ms];
        let step_ms = if changes.iter().any(|change| change.about().depends_on_data) {
            // Whether what is copied belongs to the work beside it the trace does not tell: the middle of both.
            let apart = self.run(changes, Assumed { independent: true, ..Assumed::MIDDLE });
            0.5 * (middle.step_ms + apart.step_ms)
        } else {
            middle.step_ms
        };
        let best_ms = all.iter().copied().fold(step_ms, f64::min);
        let worst_ms = all.iter().copied().fold(step_ms, f64::max);
        Predicted {
            step_ms,
            low_ms: best_ms * (1.0 - spread),
            high_ms: worst_ms * (1.0 + spread),
            best_ms,
            worst_ms,
            extra_bytes: middle.extra_bytes,
            applies: middle.applied,
            power: middle.power,
        }
    }

    /// Where each piece of work was, and where it would be.
    pub fn timeline(&self, changes: &[Change]) -> Vec<Moved> {
        let (graph, simulated, _) = self.simulated(changes, Assumed::MIDDLE);
        let work = graph.work.iter().zip(&self.graph.work).zip(&simulated.work);
        work.map(|((after, before), (start, end))| Moved {
            event: before.event,
            measured: (before.stream, before.start, before.end),
            predicted: (!after.dropped).then_some((after.stream, *start, *end)),
        })
        .collect()
    }

    fn run(&self, changes: &[Change], assumed: Assumed) -> Ran {
        let (_, simulated, made) = self.simulated(changes, assumed);
        // The replay's own error is in both; where a change left work undone, nothing can be said.
        let scale = 1.0 + self.confidence().error;
        if simulated.complete && made.applied {
            Ran { step_ms: simulated.step() / 1e6 / scale, ..made }
        } else {
            Ran { step_ms: self.step_ms(), applied: false, power: 1.0, ..made }
        }
    }

    fn simulated(&self, changes: &[Change], assumed: Assumed) -> (Model, Simulated, Ran) {
        let mut graph = self.graph.clone();
        let mut applied = false;
        let mut extra_bytes = 0;
        for change in changes {
            let made = changes::apply(&mut graph, change, &self.link, assumed);
            applied |= made.changed > 0;
            extra_bytes += made.extra_bytes;
        }
        let kernel_beside_copy =
            if assumed.power == Effect::Most { beside_copy(&self.link) } else { BESIDE_COPY };
        let mut sharing = Sharing { duplex: duplex(&self.link), kernel_beside_copy, heavy: 1.0 };
        if !applied {
            let made = Ran { step_ms: self.step_ms(), extra_bytes, applied, power: 1.0 };
            return (graph, self.unchanged.clone(), made);
        }
        let mut simulated = simulate(&graph, &sharing);
        // A device that rests less clocks lower; that makes it rest less still. It settles at once.
        let before = duty(&self.unchanged);
        for _ in 0..3 {
            sharing.heavy = self.power.slowdown(before, duty(&simulated), assumed.power);
            simulated = simulate(&graph, &sharing);
        }
        let made = Ran { step_ms: simulated.step() / 1e6, extra_bytes, applied, power: sharing.heavy };
        (graph, simulated, made)
    }
}

struct Ran {
    step_ms: f64,
    extra_bytes: u64,
    applied: bool,
    power: f64,
}

/// Share of the time with matrix work on the device.
fn duty(simulated: &Simulated) -> f64 {
    simulated.heavy as f64 / (simulated.end as f64).max(1.0)
}

fn duplex(link: &LinkFacts) -> f64 {
    let measured = link.measured().and_then(|profile| {
        let both = profile.duplex?;
        let loaded = 0.5 * (both.h2d_loaded_gbps + both.d2h_loaded_gbps);
        Some(link.reachable_gbps() / loaded)
    });
    measured.unwrap_or(DUPLEX).max(1.0)
}

/// The worst that copies do to kernels, where it was measured.
fn beside_copy(link: &LinkFacts) -> f64 {
    let all = link.measured().map(|profile| profile.overlap.as_slice()).unwrap_or_default();
    all.iter().map(|one| one.kernel_slowdown).fold(1.02, f64::max)
}
