//! What the wiring of a machine argues for.

use busbound_machine::topology::Topology;

use super::{Advice, Because};
use crate::quantity::plural;
use crate::settings::Target;

/// The line that binds the process of each GPU to the memory and the cores near it; none where there is one
/// node, or where nobody says which is near.
pub fn advice_of_topology(topology: &Topology) -> Advice {
    let mut settings = Vec::new();
    for gpu in &topology.gpus {
        let (Some(line), Some(node)) = (&gpu.numactl, gpu.numa) else { continue };
        Because {
            settings: &mut settings,
            why: format!("GPU{} ({}) hangs on NUMA node {node}: copies from another node cross the link between sockets", gpu.index, gpu.address),
            when: "one process drives this GPU alone".to_owned(),
        }
        .set(Target::Launch, &format!("gpu{}", gpu.index), line);
    }
    Advice {
        from: format!("topo ({})", topology.source),
        statement: format!(
            "{} on {}.",
            plural(topology.gpus.len() as u64, "GPU", "GPUs"),
            plural(u64::from(topology.numa_nodes.unwrap_or(1)), "NUMA node", "NUMA nodes")
        ),
        settings,
    }
}
