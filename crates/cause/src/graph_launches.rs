//! Which CUDA graphs ran without a record of their work?
//!
//! A profiler that records a graph as a whole needs driver support. Without it, the trace contains graph launches but not their
//! work, and the device looks idle while it works.

use std::collections::HashSet;
use std::hash::BuildHasher;

use busbound_trace::hash::HashMap;
use busbound_trace::{Event, EventKind, Trace};

use crate::thresholds::UNSEEN_GRAPHS;

/// CUDA graph launches, and those whose work is not in the trace.
#[derive(Debug)]
pub struct GraphLaunches<'a> {
    pub all: usize,
    /// Launches without recorded work, in time order.
    pub unseen: Vec<Event<'a>>,
    /// Launches of one graph that do not have the same number of kernels: some kernels were not recorded.
    pub uneven: usize,
}

/// Whether a call with this name launches a graph.
pub fn launches_graph(name: &str) -> bool {
    name.contains("GraphLaunch")
}

impl<'a> GraphLaunches<'a> {
    pub fn of(trace: &'a Trace) -> Self {
        let is_launch: Vec<bool> = trace.names().iter().map(launches_graph).collect();
        if !is_launch.contains(&true) {
            return Self { all: 0, unseen: Vec::new(), uneven: 0 };
        }
        let launches = |kind| {
            let of_kind = trace.events().filter(move |event| event.kind() == kind);
            of_kind.filter(|event| is_launch[event.name_id().index()]).collect::<Vec<_>>()
        };
        let mut calls = launches(EventKind::RuntimeCall);
        // A runtime call contains the driver call: count driver calls only if there are no runtime calls.
        if calls.is_empty() {
            calls = launches(EventKind::DriverCall);
        }
        let all = calls.len();
        // A run has few launches compared with its work, so the set stays small.
        let mut without_work: HashSet<u64> = calls.iter().filter_map(Event::correlation).collect();
        #[expect(clippy::disallowed_methods, reason = "the order does not matter: the result is a map too")]
        let mut kernels: HashMap<u64, Vec<u64>> = without_work.iter().map(|&id| (id, Vec::new())).collect();
        let hasher = kernels.hasher().clone();
        for work in trace.events().filter(|event| event.kind().is_gpu_work()) {
            let Some(id) = work.correlation() else { continue };
            without_work.remove(&id);
            if let Some(kernels) = kernels.get_mut(&id).filter(|_| work.kind() == EventKind::Kernel) {
                kernels.push(looks(&hasher, &work));
            }
        }
        let in_order = calls.iter().filter_map(|call| kernels.remove(&call.correlation()?));
        let uneven = uneven(in_order.filter(|kernels| !kernels.is_empty()));
        calls.retain(|call| call.correlation().is_none_or(|id| without_work.contains(&id)));
        calls.sort_by_key(Event::start);
        Self { all, unseen: calls, uneven }
    }

    /// Whether so many launches lack recorded work that device time figures are meaningless.
    pub fn are_missing(&self) -> bool {
        self.unseen.len() as f64 > UNSEEN_GRAPHS * self.all as f64
    }

    /// Whether kernels are missing in so many launches that device time figures are too low.
    pub fn are_uneven(&self) -> bool {
        self.uneven as f64 > UNSEEN_GRAPHS * self.all as f64
    }

    /// Whether a graph without recorded work was launched between two calls.
    pub fn ran_unseen(&self, before: &Event<'_>, call: &Event<'_>) -> bool {
        let first = self.unseen.partition_point(|launch| launch.start() <= before.start());
        self.unseen.get(first).is_some_and(|launch| launch.start() < call.start())
    }
}

/// What makes two kernels of a graph the same: name and geometry.
fn looks(hasher: &impl BuildHasher, kernel: &Event<'_>) -> u64 {
    let geometry = kernel.launch().map(|launch| (launch.grid, launch.block));
    hasher.hash_one((kernel.name_id().index(), geometry))
}

/// Graphs that are distinguished at most.
const MOST_GRAPHS: usize = 64;
/// Launches with this share of their kinds of kernels in common are of one graph.
const ONE_GRAPH: f64 = 0.6;

/// Launches of one graph that have other numbers of kernels than most. Two graphs may have the same kernels, so two numbers are
/// not yet a sign, unless there are only two launches.
fn uneven(launches: impl Iterator<Item = Vec<u64>>) -> usize {
    let mut graphs: Vec<(Vec<u64>, Vec<usize>)> = Vec::new();
    for kernels in launches {
        let count = kernels.len();
        let mut kinds = kernels;
        kinds.sort_unstable();
        kinds.dedup();
        match graphs.iter().position(|(known, _)| in_common(known, &kinds) >= ONE_GRAPH) {
            Some(graph) => graphs[graph].1.push(count),
            None if graphs.len() < MOST_GRAPHS => graphs.push((kinds, vec![count])),
            None => {}
        }
    }
    let of_graph = |(_, mut counts): (Vec<u64>, Vec<usize>)| {
        counts.sort_unstable();
        let same: Vec<usize> = counts.chunk_by(|a, b| a == b).map(<[usize]>::len).collect();
        let is_mixed = same.len() > 2 || counts.len() == 2 && same.len() == 2;
        if is_mixed { counts.len() - same.iter().max().copied().unwrap_or(0) } else { 0 }
    };
    graphs.into_iter().map(of_graph).sum()
}

/// The share of both sorted lists that is in both.
fn in_common(a: &[u64], b: &[u64]) -> f64 {
    let both = a.iter().filter(|kind| b.binary_search(kind).is_ok()).count();
    both as f64 / (a.len() + b.len() - both).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replays_of_one_graph_with_other_numbers_of_kernels_are_uneven() {
        let even = vec![vec![1, 1, 2, 3]; 5];
        assert_eq!(uneven(even.into_iter()), 0);
        let dropped = [vec![1, 1, 2, 3], vec![1, 2, 3], vec![1, 1, 1, 2, 3], vec![1, 1, 2, 3]];
        assert_eq!(uneven(dropped.into_iter()), 2);
        assert_eq!(uneven([vec![1, 2], vec![1, 1, 2]].into_iter()), 1);
    }

    #[test]
    fn two_graphs_with_the_same_kernels_are_not_uneven() {
        let (short, long) = (vec![1, 2, 3], vec![1, 2, 3, 1, 2, 3]);
        let runs = [short.clone(), long.clone(), short.clone(), long, short];
        assert_eq!(uneven(runs.into_iter()), 0);
    }
}
