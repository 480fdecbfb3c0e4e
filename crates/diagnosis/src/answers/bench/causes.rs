//! Why might a figure be short, in order of likelihood, and which check tells the causes apart?

use busbound_machine::bench::Samples;
use busbound_machine::gpu_of_name;
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    pub why: String,
    /// What to run or look at.
    pub check: String,
    /// Whether the measurement itself shows it.
    pub seen: bool,
}

fn seen(why: String, check: &str) -> Cause {
    Cause { why, check: check.to_owned(), seen: true }
}

fn likely(why: &str, check: &str) -> Cause {
    Cause { why: why.to_owned(), check: check.to_owned(), seen: false }
}

/// Every page goes through a buffer of the driver's.
pub(super) fn staging() -> Cause {
    seen(
        "pageable memory is copied by the CPU into pinned buffers first: its rate is the host's, not the link's".to_owned(),
        "the same copy from pinned memory (`tensor.pin_memory()` once, then reuse it)",
    )
}

/// Of pinned copies. What was seen comes first, what was ruled out is left out.
pub(super) fn of_link(samples: &Samples, other_direction_is_fine: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let identity = &samples.identity;
    if let Some(link) = identity.link {
        if link.lanes < link.max_lanes {
            causes.push(seen(
                format!("the link runs on {} lanes of {}, seen while copies ran", link.lanes, link.max_lanes),
                "`busbound topo` names the hop; reseat the card, look at the riser and the slot's bifurcation",
            ));
        }
        if link.generation < link.max_generation {
            causes.push(seen(
                format!(
                    "the link runs at generation {} of {}, seen while copies ran",
                    link.generation, link.max_generation
                ),
                "`busbound topo` names the hop; look for link errors (`nvidia-smi -q -d PCIE`, replays) and the BIOS's link speed",
            ));
        }
    }
    // Both ends may agree on less than the card could: a slot of fewer lanes or an older host.
    if let (Some(link), Some(gpu)) = (identity.link, gpu_of_name(&identity.gpu))
        && (link.generation < u32::from(gpu.pcie.generation) || link.lanes < u32::from(gpu.pcie.lanes))
        && (link.generation, link.lanes) == (link.max_generation, link.max_lanes)
    {
        causes.push(seen(
            format!(
                "the link runs at PCIe {} x{}, all that slot and host give; the card has {}",
                link.generation,
                link.lanes,
                gpu.pcie.name()
            ),
            "another slot (`busbound topo` shows the tree), or this is what the host can",
        ));
    }
    if other_direction_is_fine {
        causes.push(likely(
            "the other direction is as it should be, so width and speed of the link are: it is the host's side of this one",
            "compare NUMA nodes and the IOMMU as below",
        ));
    }
    if identity.pinned_to_cpus.is_none() || identity.numa_node.is_none() {
        let check = "`numactl --cpunodebind=N --membind=N busbound bench --suite copy` for each node N; the best one is the GPU's";
        causes.push(likely(
            "host memory on another NUMA node than the GPU: every copy crosses the socket link",
            check,
        ));
    }
    causes.push(likely(
        "an IOMMU that translates every address",
        "`cat /sys/kernel/iommu_groups/*/type | sort | uniq -c`: identity passes through, DMA translates",
    ));
    causes.push(likely(
        "someone else on the same link or switch",
        "`nvidia-smi dmon -s t` while nothing of yours runs; `busbound topo` shows who shares the way to the host",
    ));
    causes.push(likely(
        "a narrower link further up, between switch and host",
        "`busbound topo`: the narrowest hop of the way to the host",
    ));
    if identity.virtual_machine == Some(true) {
        causes.push(likely(
            "a virtual machine that hides where its memory and the GPU lie",
            "the same on the host, or ask who runs it for the NUMA placement",
        ));
    }
    causes.push(likely("clocks held down", "`nvidia-smi -q -d CLOCK,PERFORMANCE` while it runs"));
    causes
}

pub(super) fn of_duplex(samples: &Samples) -> Vec<Cause> {
    let mut causes = vec![
        likely(
            "host memory that cannot read and write at that rate together",
            "`busbound bench --suite duplex` bound to one NUMA node and to another",
        ),
        likely(
            "an IOMMU that translates every address",
            "`cat /sys/kernel/iommu_groups/*/type | sort | uniq -c`: identity passes through, DMA translates",
        ),
    ];
    if samples.identity.virtual_machine == Some(true) {
        causes.push(likely("a virtual machine's path to memory", "the same on the host"));
    }
    causes
}

pub(super) fn of_memory(samples: &Samples) -> Vec<Cause> {
    let mut causes =
        vec![likely("someone else on the GPU", "`nvidia-smi` lists processes; run it again when it is idle")];
    causes.push(likely("memory clocks held down", "`nvidia-smi -q -d CLOCK,PERFORMANCE` while it runs"));
    if samples.identity.memory_bytes > 0 {
        causes.push(likely(
            "ECC on a card whose memory pays for it, or a slice of a GPU (MIG)",
            "`nvidia-smi -q -d ECC` and `nvidia-smi -L`",
        ));
    }
    causes
}

pub(super) fn of_peers(direct: bool, has_nvlink: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    if !direct {
        causes.push(seen(
            "the driver does not let these GPUs reach each other: it stages through the host".to_owned(),
            "`nvidia-smi topo -p2p r`; `busbound topo` tells of ACS and IOMMU on the way",
        ));
    }
    if has_nvlink {
        causes.push(likely(
            "NVLinks down, or this board's pair is not bridged",
            "`nvidia-smi nvlink -s`; `busbound topo` counts the bonded links",
        ));
    }
    causes.push(likely(
        "access control (ACS) on a switch sends traffic up to the host and back",
        "`busbound topo`; in a virtual machine leave ACS alone",
    ));
    causes.push(likely("GPUs on different sockets", "`busbound topo`: SYS in the matrix"));
    causes
}

pub(super) fn of_wrong_data() -> Vec<Cause> {
    vec![
        likely(
            "broken peer-to-peer traffic under an IOMMU",
            "`busbound topo`; `busbound bench --suite p2p` pair by pair",
        ),
        likely("failing memory", "`nvidia-smi -q -d ECC,PAGE_RETIREMENT`; the kernel log for Xid errors"),
    ]
}
