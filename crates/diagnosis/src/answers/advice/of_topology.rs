//! Which settings does the topology of a machine support?

use busbound_machine::topology::Topology;

use super::{Advice, Because};
use crate::quantity::plural;
use crate::settings::Target;

/// The command that binds the process of each GPU to the nearest memory and cores; none if there is only one NUMA
/// node, or if the nearest node is unknown.
pub fn advice_of_topology(topology: &Topology) -> Advice {
    let mut settings = Vec::new();
    for gpu in &topology.gpus {
        let (Some(line), Some(node)) = (&gpu.numactl, gpu.numa) else { continue };
        Because {
            settings: &mut settings,
            why: format!("GPU{} ({}) is attached to NUMA node {node}: copies from another node cross the link between sockets", gpu.index, gpu.address),
            when: "exactly one process uses this GPU".to_owned(),
        }
        .set(Target::Launch, &format!("gpu{}", gpu.index), line.as_str());
    }
    Advice {
        from: format!("topo ({})", topology.source),
        statement: format!(
            "{} on {}.",
            plural(topology.gpus.len() as u64, "GPU", "GPUs"),
            plural(u64::from(topology.numa_nodes.unwrap_or(1)), "NUMA node", "NUMA nodes")
        ),
        settings,
        remedies: Vec::new(),
    }
}
