//! `optimizer=overlap` and `optimizer=gpu`: the optimizer on the CPU runs beside backward, or on the GPU.

use std::fmt;

use busbound_cause::{CallId, HostAction, HostUse, Model, Time};
use busbound_trace::Direction;

use super::edit::{Hooks, OwnWaits, WORTH_MOVING, bytes_of};
use super::{About, Declared, Made, Terms};

/// Where the optimizer runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Optimizer {
    /// On the CPU, bucket by bucket, while backward still runs.
    Overlap,
    /// On the GPU, with its state.
    Gpu,
}

/// Time of a fused optimizer on the GPU, as a share of its time on the CPU. Chosen: memory is more than twenty times faster.
const ON_GPU: f64 = 0.04;

impl Declared for Optimizer {
    const ABOUT: About = About {
        name: "optimizer",
        spelling: "optimizer=overlap|gpu",
        help: "run an optimizer on the CPU beside backward, or on the GPU",
        doing: "moving the optimizer",
        effort: "step each bucket from a post-accumulate-grad hook, or keep the optimizer's state on the GPU",
        precondition: "each parameter is updated independently; for gpu: its state fits in device memory",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        match value {
            Some("overlap") => Ok(Self::Overlap),
            Some("gpu") => Ok(Self::Gpu),
            _ => Err("optimizer takes overlap or gpu"),
        }
    }

    fn about(&self) -> About {
        let doing = match self {
            Self::Overlap => "running the optimizer beside backward",
            Self::Gpu => "moving the optimizer to the GPU",
        };
        About { doing, ..Self::ABOUT }
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let steps = graph.steps;
        let mut made = Made::default();
        for step in 0..steps {
            let calls: Vec<CallId> = (0..graph.calls.len())
                .filter(|call| graph.calls[*call].step == step && optimizer_time(graph, *call) > 0)
                .collect();
            let total: Time = calls.iter().map(|call| optimizer_time(graph, *call)).sum();
            if total == 0 {
                continue;
            }
            let kept = match self {
                // At worst, the threads slow each other down.
                Self::Overlap => {
                    let time_for_it = (waited_before(graph, &calls) as f64 / total as f64).min(1.0);
                    1.0 - terms.assumed.hidden * time_for_it.max(0.3 * f64::from(terms.assumed.hidden < 0.0))
                }
                Self::Gpu => ON_GPU,
            };
            for &call in &calls {
                scale_optimizer(graph, call, kept);
            }
            made.changed += calls.len();
            if *self == Self::Gpu {
                made.extra_bytes = made.extra_bytes.max(drop_copies(graph, step, terms));
            }
        }
        made
    }
}

fn optimizer_time(graph: &Model, call: CallId) -> Time {
    graph.calls[call].since.of(HostUse::Optimizer)
}

fn scale_optimizer(graph: &mut Model, call: CallId, kept: f64) {
    for (what, time) in &mut graph.calls[call].since.uses {
        if *what == HostUse::Optimizer {
            *time = (*time as f64 * kept) as Time;
        }
    }
}

/// Time before the optimizer in which the host waits for the device: only then has it time for other work.
fn waited_before(graph: &Model, optimizer: &[CallId]) -> Time {
    let Some(first) = optimizer.first().map(|call| &graph.calls[*call]) else { return 0 };
    let waits = graph.calls.iter().filter(|call| {
        let blocks = matches!(call.action, HostAction::Wait { .. } | HostAction::IssueBlocking(_));
        call.step == first.step && call.start < first.start && blocks
    });
    waits.map(|call| (call.end - call.start - call.cost).max(0)).sum()
}

/// Gradients and weights no longer cross the bus.
fn drop_copies(graph: &mut Model, step: usize, terms: &Terms<'_>) -> u64 {
    let (own, hooks) = (OwnWaits::of(graph), Hooks::of(graph));
    let down: u64 = bytes_in(graph, step, Direction::DeviceToHost);
    for id in 0..graph.work.len() {
        let work = &graph.work[id];
        if work.step == step
            && work.kind.bus().is_some()
            && bytes_of(graph, id) >= WORTH_MOVING
            && !work.dropped
        {
            hooks.drop_copy(graph, id, &own, terms.assumed.hooks);
        }
    }
    // Two moments in single precision for each gradient.
    2 * down
}

fn bytes_in(graph: &Model, step: usize, direction: Direction) -> u64 {
    let of_step = (0..graph.work.len()).filter(|id| graph.work[*id].step == step);
    of_step.filter(|id| graph.work[*id].kind.bus() == Some(direction)).map(|id| bytes_of(graph, id)).sum()
}

impl fmt::Display for Optimizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = match self {
            Self::Overlap => "overlap",
            Self::Gpu => "gpu",
        };
        write!(f, "{}={value}", Self::ABOUT.name)
    }
}
