//! What is a remark about a topology, and what do the checks look at?

use serde::Serialize;

use super::{Connection, DeviceIndex, DeviceKind, Found, GpuPlace, Iommu, Pair, PciDevice, ancestors};

/// Something worth knowing, with its reason and a safe remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Remark {
    pub id: &'static str,
    /// Whether it costs performance; if not, it is a note.
    pub is_warning: bool,
    pub text: String,
    pub remedy: Option<String>,
}

impl Remark {
    pub(super) fn note(id: &'static str, text: impl Into<String>) -> Self {
        Self { id, is_warning: false, text: text.into(), remedy: None }
    }

    pub(super) fn warning(id: &'static str, text: impl Into<String>) -> Self {
        Self { id, is_warning: true, text: text.into(), remedy: None }
    }

    pub(super) fn with_remedy(self, remedy: &str) -> Self {
        Self { remedy: Some(remedy.to_owned()), ..self }
    }
}

/// The input of the checks.
pub(super) struct Seen<'a> {
    pub(super) found: &'a Found,
    pub(super) gpus: &'a [GpuPlace],
    pub(super) pairs: &'a [Pair],
}

impl<'a> Seen<'a> {
    /// What to do about GPUs with NVLink that cannot access each other.
    pub(super) fn about_peers(&self) -> &'static str {
        if self.found.is_virtual {
            // Isolation may depend on it.
            return "Ask the provider for a machine whose GPUs share an NVLink partition: the host's fabric manager decides that, nothing inside the virtual machine does.";
        }
        "Check that nvidia-fabricmanager runs with the driver's version (systemctl status nvidia-fabricmanager), that NCCL_P2P_DISABLE and the driver's registry keys do not disable peer access, and that MIG is off (nvidia-smi -q -d MIG)."
    }

    /// The pairs whose both ends are GPUs.
    pub(super) fn gpu_pairs(&self) -> impl Iterator<Item = &'a Pair> {
        let gpus = self.gpus;
        let is_gpu = move |address: &String| gpus.iter().any(|gpu| gpu.address == *address);
        self.pairs.iter().filter(move |pair| is_gpu(&pair.a) && is_gpu(&pair.b))
    }

    /// Whether any GPUs of a bare-metal machine reach each other over PCIe.
    pub(super) fn has_peers_over_pcie(&self) -> bool {
        !self.found.is_virtual
            && self.gpus.len() > 1
            && self.gpu_pairs().any(|pair| !matches!(pair.connection, Connection::NvLink(_)))
    }

    /// Whether there are NVSwitches, but no NVLinks were read.
    pub(super) fn are_nvlinks_unread(&self) -> bool {
        self.number_of_switches() > 0
            && !self.pairs.iter().any(|pair| matches!(pair.connection, Connection::NvLink(_)))
    }

    pub(super) fn number_of_switches(&self) -> usize {
        self.found.devices.iter().filter(|device| device.kind == DeviceKind::NvSwitch).count()
    }

    /// The bridges above GPUs; ports without a GPU below them do not matter.
    pub(super) fn bridges_above_gpus(&self) -> impl Iterator<Item = &'a PciDevice> {
        let devices = &self.found.devices;
        let above: Vec<DeviceIndex> = (0..devices.len())
            .filter(|&i| devices[i].kind == DeviceKind::Gpu)
            .flat_map(|gpu| ancestors(devices, gpu))
            .collect();
        devices
            .iter()
            .enumerate()
            .filter(move |(i, device)| device.kind == DeviceKind::Bridge && above.contains(i))
            .map(|(_, device)| device)
    }

    /// Whether traffic between GPUs of this bare-metal machine is redirected to the host bridge, or checked there.
    pub(super) fn may_redirect_peers(&self) -> bool {
        !self.found.is_virtual
            && (self.found.iommu == Some(Iommu::Translating)
                || self.bridges_above_gpus().any(|bridge| bridge.acs == Some(true)))
    }
}
