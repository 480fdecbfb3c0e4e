//! `graph`: launches the kernels of a step as CUDA graphs.

use std::collections::BTreeMap;
use std::fmt;

use busbound_cause::thresholds::UNEXPLAINED_START;
use busbound_cause::{CallId, HostAction, HostUse, Model, Time};
use busbound_trace::Direction;

use super::{About, Assumed, Declared, Made, Terms, without_value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaGraph;

/// Host time of a graph launch, and of each of its nodes. Measured on the graph runs marked learn in fixtures/frameworks.
const LAUNCH: Time = 20_000;
const PER_NODE: Time = 150;

impl Declared for CudaGraph {
    const ABOUT: About = About {
        name: "graph",
        spelling: "graph",
        help: "launch the kernels of a step as CUDA graphs",
        doing: "using CUDA graphs",
        effort: "`torch.compile(mode=\"reduce-overhead\")` or `torch.cuda.graph`",
        precondition: "shapes and control flow repeat, and inputs are copied into fixed buffers",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        without_value(Self, value)
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let mut made = Made::default();
        // A host that reads values within the step decides something by them: not everything can be captured.
        let assumed = terms.assumed;
        let kept = if reads_within_steps(graph) { assumed.uncaptured } else { assumed.outside_graphs };
        for thread in 0..graph.threads.len() {
            let calls = graph.threads[thread].clone();
            let captured = captured(graph, &calls);
            let mut at = 0;
            for run in captured.chunk_by(|a, b| a == b) {
                let (range, is_captured) = (at..at + run.len(), run[0]);
                at = range.end;
                // A graph of one or two kernels is not worth it.
                if is_captured && range.len() > 2 {
                    capture(graph, &calls[range.clone()], kept);
                    space(graph, &calls[range.clone()], &assumed);
                    made.changed += range.len();
                }
            }
        }
        made
    }
}

/// Per call of a thread: whether it can be part of a graph. It launches, and the host waits neither for the device nor for input
/// before it, nor updates parameters itself.
fn captured(graph: &Model, calls: &[CallId]) -> Vec<bool> {
    let is_on_host = |what: HostUse| matches!(what, HostUse::Input | HostUse::Optimizer);
    let is_captured = |call: &CallId| {
        let call = &graph.calls[*call];
        let launches = matches!(&call.action, HostAction::Issue(work)
            if work.iter().all(|work| graph.work[*work].kind.bus().is_none()));
        launches && !call.since.uses.iter().any(|(what, _)| is_on_host(*what))
    };
    calls.iter().map(is_captured).collect()
}

/// Whether the host waits for values more often than once per step.
fn reads_within_steps(graph: &Model) -> bool {
    let reads = graph.calls.iter().filter(|call| {
        let copy = match call.action {
            HostAction::Wait { copy, .. } => copy,
            HostAction::IssueBlocking(copy) => Some(copy),
            _ => None,
        };
        copy.is_some_and(|copy| graph.work[copy].kind.bus() == Some(Direction::DeviceToHost))
    });
    reads.count() > graph.steps
}

/// All launches become one; `kept` of the host work for them stays, and all work on data in host memory.
fn capture(graph: &mut Model, calls: &[CallId], kept: f64) {
    for &call in calls {
        let call = &mut graph.calls[call];
        for (what, time) in &mut call.since.uses {
            if !what.is_on_data() {
                *time = (*time as f64 * kept) as Time;
            }
        }
        call.cost = PER_NODE;
        if let Some((_, between)) = &mut call.after {
            *between = (*between as f64 * kept) as Time;
        }
    }
    if let Some(&first) = calls.first() {
        graph.calls[first].cost = LAUNCH;
    }
}

/// The nodes of a stream follow each other after a gap, and short ones do not begin faster than the GPU begins nodes. What waited for
/// something that is not in the trace still does.
fn space(graph: &mut Model, calls: &[CallId], assumed: &Assumed) {
    let mut last: BTreeMap<usize, f64> = BTreeMap::new();
    for &call in calls {
        for id in graph.calls[call].action.issued().to_vec() {
            let work = &mut graph.work[id];
            let rest =
                last.insert(work.stream, work.alone).map_or(0, |before| assumed.node_every - before as Time);
            let shorter = |gap: Time| if gap > UNEXPLAINED_START { gap } else { gap.min(assumed.node_gap) };
            work.after_work = shorter(work.after_work).max(rest);
            work.after_call = shorter(work.after_call);
        }
    }
}

impl fmt::Display for CudaGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}
