//! What of NCCL's connections costs performance?

use serde::Serialize;

use super::{NcclLog, Transport};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NcclRemarkId {
    /// Ranks of one machine talk through host memory although their GPUs have NVLink.
    ShmWithNvlink,
    /// Ranks of one machine talk through host memory, and whether they have NVLink is unknown.
    Shm,
    /// The network is TCP.
    Sockets,
    /// The network card does not access GPU memory itself.
    NoGpuDirect,
    /// The switches can reduce, but NCCL set up no channel for it.
    NvlsUnused,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NcclRemark {
    pub id: NcclRemarkId,
    pub text: String,
    pub remedy: String,
}

/// With `gpu_has_nvlink`, what is known about the GPUs from elsewhere.
pub(super) fn remarks(log: &NcclLog, gpu_has_nvlink: Option<bool>) -> Vec<NcclRemark> {
    [shm(log, gpu_has_nvlink), sockets(log), no_gpu_direct(log), nvls_unused(log)]
        .into_iter()
        .flatten()
        .collect()
}

impl NcclLog {
    /// The same, if it is known from elsewhere whether the GPUs have NVLink, for example by their name in a trace.
    pub fn with_nvlink(mut self, gpu_has_nvlink: Option<bool>) -> Self {
        self.remarks = remarks(&self, gpu_has_nvlink);
        self
    }
}

fn shm(log: &NcclLog, gpu_has_nvlink: Option<bool>) -> Option<NcclRemark> {
    let pairs: Vec<String> =
        log.over(Transport::Shm).map(|link| format!("{} → {}", link.from, link.to)).collect();
    let first = pairs.first()?;
    let others = match pairs.len() {
        1 => String::new(),
        2 => " and 1 more pair".to_owned(),
        n => format!(" and {} more pairs", n - 1),
    };
    let why = why_no_peer_access(log);
    let has_nvlink = if log.wiring.has_nvlink() { Some(true) } else { gpu_has_nvlink };
    let (id, text) = match has_nvlink {
        Some(true) => (
            NcclRemarkId::ShmWithNvlink,
            format!(
                "Ranks {first}{others} talk through host memory (SHM), although these GPUs have NVLink: every byte crosses PCIe twice.{why}"
            ),
        ),
        _ => (
            NcclRemarkId::Shm,
            format!(
                "Ranks {first}{others} talk through host memory (SHM): every byte crosses PCIe twice.{why} Whether these GPUs have NVLink is not in the log."
            ),
        ),
    };
    let remedy = if log.setting("NCCL_P2P_DISABLE").is_some_and(|value| value != "0") {
        "Unset NCCL_P2P_DISABLE."
    } else {
        "Check peer access: `nvidia-smi topo -p2p r` and `busbound topo`. In containers give all GPUs to each and share IPC (--ipc=host); in VMs, the host must allow it; check NCCL_P2P_LEVEL."
    };
    Some(NcclRemark { id, text, remedy: remedy.to_owned() })
}

/// What the log says about the reason.
fn why_no_peer_access(log: &NcclLog) -> String {
    let settings = ["NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"];
    let set = settings.iter().find_map(|name| Some(format!(" {name} is {}.", log.setting(name)?)));
    let warned = log.warnings.iter().find(|text| text.contains("P2P is disabled"));
    set.or_else(|| warned.map(|text| format!(" NCCL: \u{201c}{text}\u{201d}"))).unwrap_or_default()
}

fn sockets(log: &NcclLog) -> Option<NcclRemark> {
    let over_tcp = log.over(Transport::Net).filter(|link| link.via.starts_with("Socket")).count();
    (over_tcp > 0).then(|| {
        let why = log
            .setting("NCCL_IB_DISABLE")
            .filter(|value| *value != "0")
            .map_or(String::new(), |value| format!(" NCCL_IB_DISABLE is {value}."));
        NcclRemark {
            id: NcclRemarkId::Sockets,
            text: format!("Traffic between nodes uses TCP sockets, through host memory and the CPU.{why}"),
            remedy: "If the nodes have InfiniBand or RoCE, make its devices visible in the container and check NCCL_IB_DISABLE and NCCL_NET; else bind NCCL to the fastest interface with NCCL_SOCKET_IFNAME.".to_owned(),
        }
    })
}

fn no_gpu_direct(log: &NcclLog) -> Option<NcclRemark> {
    let staged = log
        .over(Transport::Net)
        .filter(|link| link.gpu_direct == Some(false) && !link.via.starts_with("Socket"));
    let staged = staged.count();
    (staged > 0).then(|| NcclRemark {
        id: NcclRemarkId::NoGpuDirect,
        text: format!("{staged} of the connections between nodes go through host memory, without GPUDirect RDMA (no GDRDMA in the log)."),
        remedy: "Load nvidia-peermem or use DMA-BUF, and check NCCL_NET_GDR_LEVEL and that GPU and network card are below one PCIe switch (`busbound topo`).".to_owned(),
    })
}

fn nvls_unused(log: &NcclLog) -> Option<NcclRemark> {
    let is_available = log.wiring.multicast == Some(true);
    let largest = log.communicators.iter().max_by_key(|one| one.ranks)?;
    let has_none = largest.channels.is_some_and(|channels| channels.nvls == 0);
    // NCCL does not use it for two GPUs.
    (is_available && has_none && largest.ranks > 2).then(|| NcclRemark {
        id: NcclRemarkId::NvlsUnused,
        text: "The NVSwitches can reduce (NVLS), but NCCL set up no NVLS channel: large all-reduces take about 30% longer than they could on 8 GPUs.".to_owned(),
        remedy: "Check NCCL_NVLS_ENABLE and NCCL_ALGO, and that the Fabric Manager runs.".to_owned(),
    })
}
