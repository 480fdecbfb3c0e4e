//! Do copies use host memory of another socket than the GPU's?

use std::collections::BTreeSet;
use std::fmt::Display;

use busbound_cause::Resource;
use busbound_machine::bench::Direction as Way;
use busbound_trace::{Direction, MemoryKind, Numa};
use serde_json::json;

use super::common::copies::{times_of, total_ms};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::activity::nodes::{PlacedBytes, Placement, placement};
use crate::analysis::facts::Facts;
use crate::quantity::{bytes, milliseconds};
use crate::saving::Saving;
use crate::settings::{Proposal, Target};

pub(super) static RULE: Rule = Rule {
    title: "Host memory on the wrong NUMA node",
    doing: "binding the process to the GPU's NUMA node",
    precondition: "The process needs no more memory than the GPU's node has, and no more CPUs.",
    basis: "bound: exposed time of these copies beyond the rate measured from the GPU's own node",
    candidate: Candidate::None(
        "No what-if change moves memory to another node: the saving comes from the rates that `busbound bench` measures \
         from each node.",
    ),
    effort: Effort::Setting,
    unless: &[],
    relieves: &[Resource::H2d, Resource::D2h],
    check,
    document: Document {
        meaning: "Copies read or write host memory that is attached to another socket than the GPU. Their data crosses the link \
                  between the sockets, which is often slower than PCIe and shared with everything else.",
        computed: "Evidence: recordings of `busbound record` have the NUMA node of the host memory of copies of 64 KiB and more, the \
                   node of each GPU and the distances of nodes; other traces do not. Reported if at least 10% of the bytes whose \
                   node is known are on another socket, and these copies take at least 2% of the time. Never reported on machines with one \
                   node, or where a node is unknown. Saving: at most the exposed part of the time that pinned copies would gain at \
                   the rate of the GPU's own node, if the machine's profile has the rates of both nodes (`busbound bench`); otherwise \
                   no number. Untested on real hardware with two nodes.",
        fix: "Bind the process to the GPU's node: `numactl --cpunodebind=N --membind=N python train.py` (`busbound topo` has the line of each \
              GPU), or `torchrun --numa-binding=node …` (PyTorch 2.9 and later), which binds each rank to the node of its GPU.",
        code: &[],
        assumes: "The process needs no more memory than the GPU's node has, and no more CPUs.",
    },
};

/// Below this share of the bytes whose node is known, the rest is near.
const FAR_SHARE: f64 = 0.1;
/// Copies that take less of the time gain nothing.
const TIME_SHARE: f64 = 0.02;

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let numa = facts.trace.origin().numa.as_ref().filter(|numa| !numa.is_one())?;
    let is_far = |copy: &&Copy<'_>| {
        copy.host_memory().is_some() && matches!(placement(numa, copy), Placement::Far { .. })
    };
    let far: Vec<&Copy<'_>> = facts.copies.iter().filter(is_far).collect();
    let placed = PlacedBytes::of(numa, &facts.copies);
    let known = placed.total() - placed.unknown;
    let total = total_ms(&far);
    if far.is_empty()
        || (placed.far as f64) < FAR_SHARE * known as f64
        || total < TIME_SHARE * facts.time.analyzed_ms
    {
        return None;
    }
    let (steps, per) = (facts.steps(), facts.unit().per());
    let exposed = facts.exposed_ms(far.iter().copied());
    let gain = gain_ms(facts, numa, &far);
    let share = placed.far as f64 / known as f64;
    let nodes = Nodes::of(numa, &far);
    Some(Draft {
        title: None,
        seen: format!(
            "{}{per} ({:.0}% of the bytes whose NUMA node is known) are copied from or to memory of NUMA node {}; the GPU is attached to node {}. These copies take {}{per}, {} of it exposed.{}{}",
            bytes((placed.far as f64 / steps) as u64),
            100.0 * share,
            listed(&nodes.memory),
            listed(&nodes.gpus),
            milliseconds(total / steps),
            milliseconds(exposed / steps),
            cpus(numa, &nodes.gpus),
            gain.err().unwrap_or_default(),
        ),
        evidence: json!({
            "far_bytes_per_step": placed.far as f64 / steps,
            "far_share": share,
            "known_share": placed.known_share(),
            "memory_nodes": nodes.memory,
            "gpu_nodes": nodes.gpus,
            "cpu_nodes": numa.cpus,
            "ms_per_step": total / steps,
            "exposed_ms_per_step": exposed / steps,
            "slower_ms_per_step": gain.ok().map(|ms| ms / steps),
        }),
        saves: gain.map_or(Saving::NONE, |ms| Saving { low: 0.0, high: ms.min(exposed) / steps }),
        fix: Fix::new(fix(&nodes.gpus)).saving_known(gain.is_ok()).settings(binding(&nodes.gpus)),
        at: times_of(&far),
    })
}

/// Why there is no saving.
const NO_RATES: &str = " What that costs is unknown: the machine's profile has no rates by NUMA node. `busbound bench` on that machine measures them; pass its profile with --machine.";

/// The nodes of far copies.
struct Nodes {
    memory: BTreeSet<u32>,
    gpus: BTreeSet<u32>,
}

impl Nodes {
    fn of(numa: &Numa, far: &[&Copy<'_>]) -> Self {
        let mut nodes = Self { memory: BTreeSet::new(), gpus: BTreeSet::new() };
        for copy in far {
            if let Placement::Far { memory, gpu } = placement(numa, copy) {
                nodes.memory.insert(memory);
                nodes.gpus.insert(gpu);
            }
        }
        nodes
    }
}

fn listed(nodes: &BTreeSet<u32>) -> String {
    nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Where the process may run, if that explains where its memory is.
fn cpus(numa: &Numa, gpus: &BTreeSet<u32>) -> String {
    match &numa.cpus[..] {
        [] => String::new(),
        [only] if !gpus.contains(only) => format!(" The process is bound to the CPUs of node {only}."),
        [_] => String::new(),
        _ => " The process may run on the CPUs of several nodes.".to_owned(),
    }
}

const ONLY_PAGEABLE: &str = " What that costs is unknown: the host limits pageable copies, and rates by NUMA node are measured with pinned memory.";

/// What pinned copies take longer than from the GPU's own node, or why that is unknown. The host limits pageable copies before the
/// nodes do, so they do not count.
fn gain_ms(facts: &Facts<'_>, numa: &Numa, far: &[&Copy<'_>]) -> Result<f64, &'static str> {
    let is_pinned = |copy: &&&Copy<'_>| copy.host_memory() == Some(MemoryKind::Pinned);
    if !far.iter().any(|copy| is_pinned(&copy)) {
        return Err(ONLY_PAGEABLE);
    }
    let profile = facts.link.measured().ok_or(NO_RATES)?;
    let gain = |copy: &&Copy<'_>| {
        let Placement::Far { memory, gpu } = placement(numa, copy) else { return Some(0.0) };
        let way = match copy.transfer.direction {
            Direction::DeviceToHost => Way::D2h,
            _ => Way::H2d,
        };
        let (near, far) = (profile.node_gbps(gpu, way)?, profile.node_gbps(memory, way)?);
        Some(copy.event.duration().as_millis() * (1.0 - far / near).max(0.0))
    };
    far.iter().filter(is_pinned).map(gain).sum::<Option<f64>>().ok_or(NO_RATES)
}

/// The prefix of the command line that binds to the node of the GPU; one per node if there are several.
fn binding(gpus: &BTreeSet<u32>) -> Vec<Proposal> {
    let key = |node: u32| if gpus.len() > 1 { format!("numactl_node{node}") } else { "numactl".to_owned() };
    gpus.iter().map(|&node| Proposal::new(Target::Launch, key(node), command(node))).collect()
}

fn command(node: impl Display) -> String {
    format!("numactl --cpunodebind={node} --membind={node}")
}

fn fix(gpus: &BTreeSet<u32>) -> String {
    let node = gpus.first().map_or_else(|| "N".to_owned(), u32::to_string);
    let which = if gpus.len() > 1 { " (for each process, the node of its GPU)" } else { "" };
    format!(
        "Bind the process to the GPU's node: {} python train.py{which}. With torchrun: torchrun --numa-binding=node … (PyTorch 2.9 and later) binds each rank to the node of its GPU.",
        command(node)
    )
}
