//! On which NUMA nodes are a process, its GPUs and the host memory of its copies, and which nodes are far from each other?

use std::collections::BTreeMap;

use serde::Serialize;

/// The NUMA nodes of the machine that a trace was recorded on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Numa {
    /// All of them; one if only one has CPUs.
    pub nodes: Vec<u32>,
    /// Distances by pairs of nodes, as the firmware reports them: 10 is local.
    pub distances: BTreeMap<u32, BTreeMap<u32, u32>>,
    /// Nodes of the CPUs that the process may run on; empty if not recorded.
    pub cpus: Vec<u32>,
    /// The node that each GPU is attached to, if the firmware says.
    pub gpus: BTreeMap<i32, u32>,
    /// Why the nodes of host memory are not recorded, if the kernel refused to say.
    pub refused: Option<String>,
}

/// Where the host memory of a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostNode {
    One(u32),
    /// Its pages are on different nodes.
    Several,
}

/// Nodes at this distance or more are of different sockets. Nodes of one socket (sub-NUMA clusters) report 11 to 13, other
/// sockets 20 and more; 20 is also what Linux assumes if the firmware reports nothing.
const FAR: u32 = 16;

impl Numa {
    /// Whether there is only one node that processes can run near.
    pub fn is_one(&self) -> bool {
        self.nodes.len() <= 1
    }

    /// Whether copies between memory of one node and a GPU at the other cross the link between sockets; `None` if unknown.
    pub fn is_far(&self, memory: u32, gpu: u32) -> Option<bool> {
        if memory == gpu {
            return Some(false);
        }
        self.distances.get(&gpu)?.get(&memory).map(|distance| *distance >= FAR)
    }
}

/// The nodes of the host memory of copies, by the correlation of their call.
#[derive(Debug, Default)]
pub(crate) struct HostNodes {
    /// Sorted by correlation.
    of_calls: Vec<(u64, HostNode)>,
}

impl HostNodes {
    /// The last one counts if a call has several.
    pub(crate) fn of(mut of_calls: Vec<(u64, HostNode)>) -> Self {
        of_calls.sort_by_key(|(correlation, _)| *correlation);
        of_calls.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            if is_same {
                first.1 = later.1;
            }
            is_same
        });
        Self { of_calls }
    }

    pub(crate) fn get(&self, correlation: u64) -> Option<HostNode> {
        let at = self.of_calls.binary_search_by_key(&correlation, |(correlation, _)| *correlation).ok()?;
        Some(self.of_calls[at].1)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.of_calls.capacity() * size_of::<(u64, HostNode)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_other_sockets_are_far_and_those_of_the_same_are_not() {
        // Two sockets of two nodes each.
        let rows = [[10, 12, 21, 21], [12, 10, 21, 21], [21, 21, 10, 12], [21, 21, 12, 10]];
        let row = |row: [u32; 4]| (0..).zip(row).collect::<BTreeMap<u32, u32>>();
        let numa = Numa { distances: (0..).zip(rows.map(row)).collect(), ..Numa::default() };
        assert_eq!(
            (numa.is_far(0, 0), numa.is_far(1, 0), numa.is_far(2, 0)),
            (Some(false), Some(false), Some(true))
        );
        assert_eq!((numa.is_far(7, 0), numa.is_far(0, 7)), (None, None), "such a node is not recorded");
    }

    #[test]
    fn the_last_node_of_a_call_counts() {
        let nodes = HostNodes::of(vec![(7, HostNode::One(0)), (3, HostNode::Several), (7, HostNode::One(1))]);
        assert_eq!(
            [3, 5, 7].map(|call| nodes.get(call)),
            [Some(HostNode::Several), None, Some(HostNode::One(1))]
        );
    }
}
