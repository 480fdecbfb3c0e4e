//! What does a recording say about NUMA nodes?

use std::collections::BTreeMap;

use busbound_capture::format::{
    CPU_NODES, DISTANCES_OF_NODE, NODE_OF_GPU, NODES, NODES_REFUSED, SEVERAL_NODES,
};

use crate::model::numa::{HostNode, Numa};

/// `None` in recordings that are older.
pub(super) fn numa(facts: &BTreeMap<Vec<u8>, String>) -> Option<Numa> {
    let nodes = numbers(facts.get(NODES)?, ',');
    // The number that follows a key, and the value.
    let about = |prefix: &'static [u8]| {
        facts.iter().filter_map(move |(key, value)| {
            let number = std::str::from_utf8(key.strip_prefix(prefix)?).ok()?;
            Some((number.parse::<u32>().ok()?, value))
        })
    };
    let row = |row: &String| nodes.iter().copied().zip(numbers(row, ' ')).collect();
    let distances = about(DISTANCES_OF_NODE).map(|(node, distances)| (node, row(distances))).collect();
    Some(Numa {
        distances,
        cpus: facts.get(CPU_NODES).map(|list| numbers(list, ',')).unwrap_or_default(),
        gpus: about(NODE_OF_GPU)
            .filter_map(|(gpu, node)| Some((i32::try_from(gpu).ok()?, node.parse().ok()?)))
            .collect(),
        refused: facts.get(NODES_REFUSED).cloned(),
        nodes,
    })
}

fn numbers(list: &str, between: char) -> Vec<u32> {
    list.split(between).filter_map(|number| number.parse().ok()).collect()
}

pub(super) fn host_node(node: u32) -> HostNode {
    if node == SEVERAL_NODES { HostNode::Several } else { HostNode::One(node) }
}
