//! How does NCCL connect the GPUs of this machine that have no NVLink, and which of its settings changes that?
//!
//! The rule is NCCL's own (`ncclTopoCheckP2p` in its `src/graph/paths.cc`): peer-to-peer copies (P2P) over PCIe switches, host
//! memory (SHM) across a host bridge and beyond, except on machines with AMD processors and at most two GPUs.

use super::remark::{Remark, Seen};
use super::{Connection, Pair};

/// As `/proc/cpuinfo` and NCCL's topology file spell it.
pub(super) const AMD_PROCESSOR: &str = "AuthenticAMD";

/// NCCL's default on AMD processors reaches further for no more GPUs than this.
const FEW_GPUS: usize = 2;

/// The pairs of GPUs without NVLink, by what NCCL uses between them without any setting.
struct Paths<'a> {
    peer_to_peer: Vec<&'a Pair>,
    host_memory: Vec<&'a Pair>,
    /// Pairs whose peer access the driver refuses: no setting of NCCL changes that.
    refused: usize,
    /// The default depends on the maker of the processor, which is unknown.
    is_open: bool,
}

impl<'a> Paths<'a> {
    fn of(seen: &Seen<'a>) -> Self {
        let is_few = seen.gpus.len() <= FEW_GPUS;
        let processor = seen.found.processor.as_deref();
        let reaches_far = is_few && processor == Some(AMD_PROCESSOR);
        let over_pcie = seen.gpu_pairs().filter(|pair| !matches!(pair.connection, Connection::NvLink(_)));
        let (refused, granted): (Vec<&Pair>, Vec<&Pair>) = over_pcie.partition(|pair| pair.is_refused());
        let number_refused = refused.len();
        let (peer_to_peer, far): (Vec<&Pair>, Vec<&Pair>) =
            granted.into_iter().partition(|pair| reaches_far || pair.connection <= Connection::Pxb);
        let is_open = is_few && processor.is_none() && !far.is_empty();
        let host_memory = far.into_iter().chain(refused).collect();
        Self { peer_to_peer, host_memory, refused: number_refused, is_open }
    }

    fn total(&self) -> usize {
        self.peer_to_peer.len() + self.host_memory.len()
    }

    /// The lowest `NCCL_P2P_LEVEL` that changes something; for NCCL, host bridges of one NUMA node are one.
    fn next_level(&self) -> Option<&'static str> {
        let far =
            self.host_memory.iter().filter(|pair| !pair.is_refused() && pair.connection > Connection::Pxb);
        let nearest = far.map(|pair| pair.connection).min()?;
        Some(if nearest == Connection::Sys { "SYS" } else { "PHB" })
    }
}

/// What NCCL does without NVLink, and the settings worth a test.
pub(super) fn without_nvlink(seen: &Seen<'_>) -> Vec<Remark> {
    let paths = Paths::of(seen);
    // RCCL has rules of its own.
    let has_amd_gpus =
        seen.gpus.iter().any(|gpu| gpu.name.as_deref().is_some_and(|name| name.contains("AMD")));
    if paths.total() == 0 || seen.are_nvlinks_unread() || has_amd_gpus {
        return Vec::new();
    }
    vec![Remark::note("nccl_paths", text(&paths)).with_remedy(&remedy(seen, &paths))]
}

fn text(paths: &Paths<'_>) -> String {
    let total = paths.total();
    let pairs = |number: usize| match (number, total) {
        (1, 1) => "the one pair of GPUs".to_owned(),
        (2, 2) => "both pairs of GPUs".to_owned(),
        (n, total) if n == total => format!("all {total} pairs of GPUs"),
        (n, total) => format!("{n} of {total} pairs of GPUs"),
    };
    let (near, far) = (paths.peer_to_peer.len(), paths.host_memory.len());
    let why = match paths.refused {
        0 => "which reach each other through a host bridge or the link between sockets",
        n if n == far => "whose peer access the driver refuses",
        _ => {
            "which reach each other through a host bridge or the link between sockets, or whose peer access the driver refuses"
        }
    };
    let except = if paths.is_open { "; with AMD processors it uses P2P for them" } else { "" };
    let direct = |number| format!("peer-to-peer copies over PCIe (P2P) for {}", pairs(number));
    let staged = |number| format!("host memory (SHM) for {}, {why}{except}", pairs(number));
    match (near, far) {
        (near, 0) => format!("Without NVLink, NCCL uses {}.", direct(near)),
        (0, far) => format!("Without NVLink, NCCL uses {}: every byte crosses PCIe twice.", staged(far)),
        (near, far) => format!("Without NVLink, NCCL uses {}, and {}.", direct(near), staged(far)),
    }
}

fn remedy(seen: &Seen<'_>, paths: &Paths<'_>) -> String {
    let mut sentences = Vec::new();
    let level = paths.next_level().filter(|_| !seen.found.is_virtual);
    sentences.push(match level {
        Some(level) => format!(
            "Its defaults need no variable; the one worth a test is NCCL_P2P_LEVEL={level}, which allows P2P there too: keep it if all_reduce_perf of \
             nccl-tests is faster with it and reports no wrong values."
        ),
        None => "Its defaults need no variable.".to_owned(),
    });
    if !paths.peer_to_peer.is_empty() && seen.may_redirect_peers() {
        sentences.push(
            "If NCCL hangs, or all_reduce_perf is faster with NCCL_P2P_DISABLE=1, set that until ACS and the IOMMU no longer redirect P2P."
                .to_owned(),
        );
    } else {
        sentences.push("Leave NCCL_P2P_DISABLE and NCCL_SHM_DISABLE unset.".to_owned());
    }
    sentences.push("NCCL_DEBUG=INFO shows what it chose (busbound survey nccl.log).".to_owned());
    sentences.join(" ")
}
