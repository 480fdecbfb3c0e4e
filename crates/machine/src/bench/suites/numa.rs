//! How fast are pinned copies from and to the memory of each NUMA node?

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Evidence, Phase, SuiteCase, Topic, median_gbps};
use crate::bench::figures::{FigureUnit, MeasuredFigure};
use crate::bench::identity::Identity;
use crate::bench::plan::{Limits, MIB, Mode};
use crate::bench::terms::Direction;
use crate::profile::{MachineProfile, NodeFacts};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumaTask {
    /// The node of the host memory.
    pub node: u32,
    pub direction: Direction,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NumaCase {
    #[serde(flatten)]
    pub task: NumaTask,
    pub copies: u32,
    pub ns: Vec<u64>,
    pub verified: bool,
}

impl BenchSuite for NumaTask {
    const NAME: &'static str = "numa";
    const PHASE: Phase = Phase::Pattern;
    const TOPIC: Topic = Topic::Bus;

    fn plan(_mode: Mode, limits: &Limits) -> Vec<Self> {
        if limits.nodes.len() < 2 {
            return Vec::new();
        }
        let bytes = (256 * MIB).min(limits.largest);
        let both = |node| [Direction::H2d, Direction::D2h].map(|direction| Self { node, direction, bytes });
        limits.nodes.iter().flat_map(both).collect()
    }

    fn left_out(_mode: Mode, limits: &Limits) -> Option<&'static str> {
        match limits.nodes.len() {
            0 => Some("the system does not say which NUMA nodes it has"),
            1 => Some("this machine has only one NUMA node"),
            _ => None,
        }
    }

    fn keep(cases: &[&NumaCase], identity: &Identity, profile: &mut MachineProfile) {
        for case in cases {
            let NumaTask { node, direction, bytes } = case.task;
            let Some(gbps) = median_gbps(&case.ns, bytes * u64::from(case.copies)) else { continue };
            let is_near = identity.numa_node.map(|near| near == node);
            // The last measurement counts.
            profile.numa.retain(|known| (known.node, known.direction) != (node, direction));
            profile.numa.push(NodeFacts { node, direction, bytes, gbps, is_near });
        }
    }

    fn figures(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        evidence.profile.numa.iter().map(|facts| figure(evidence.profile, facts)).collect()
    }
}

fn figure(profile: &MachineProfile, facts: &NodeFacts) -> MeasuredFigure {
    let NodeFacts { node, direction, gbps, is_near, .. } = *facts;
    let near = profile.numa.iter().find(|one| one.direction == direction && one.is_near == Some(true));
    let where_it_is = match (is_near, near) {
        (Some(true), _) => format!("NUMA node {node}, where the GPU is"),
        (Some(false), Some(near)) => {
            format!("NUMA node {node}, far from the GPU ({:.0}% of the near rate)", 100.0 * gbps / near.gbps)
        }
        (Some(false), None) => format!("NUMA node {node}, far from the GPU"),
        (None, _) => format!("NUMA node {node} (the GPU's node is unknown)"),
    };
    let way = match direction {
        Direction::H2d => "pinned H2D copies from",
        Direction::D2h => "pinned D2H copies to",
    };
    MeasuredFigure::fact("numa", format!("{way} {where_it_is}"), gbps, FigureUnit::GigabytesPerSecond)
}

impl fmt::Display for NumaTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "numa: pinned {}, memory of node {}", self.direction.words(), self.node)
    }
}

impl SuiteCase for NumaCase {
    fn series(&self) -> Vec<&[u64]> {
        vec![&self.ns]
    }

    fn verified(&self) -> Option<bool> {
        Some(self.verified)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::H200;
    use super::*;
    use crate::bench::plan::NodeSet;

    #[test]
    fn every_node_is_measured_in_both_directions_and_one_node_says_so() {
        let with = |nodes: &[u32]| Limits { nodes: NodeSet::of(nodes.iter().copied()), ..H200 };
        let tasks = NumaTask::plan(Mode::Quick, &with(&[0, 3]));
        let nodes: Vec<u32> = tasks.iter().map(|task| task.node).collect();
        assert_eq!(nodes, [0, 0, 3, 3]);
        for (nodes, why) in [(&[0][..], "only one NUMA node"), (&[], "does not say")] {
            assert!(NumaTask::plan(Mode::Full, &with(nodes)).is_empty());
            assert!(NumaTask::left_out(Mode::Full, &with(nodes)).unwrap().contains(why));
        }
        assert_eq!(NumaTask::left_out(Mode::Full, &with(&[0, 3])), None);
    }
}
