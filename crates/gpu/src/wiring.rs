//! What does the driver report about the links between GPUs?

use busbound_machine::topology::{Connection, DeviceFacts, DriverGpu, MAX_NVLINKS, Pair, PeerAccess};
use nvml_wrapper::enum_wrappers::device::{P2pCapabilitiesIndex, P2pStatus};
use nvml_wrapper::struct_wrappers::device::PciInfo;
use nvml_wrapper::{Device, Nvml};

/// NVLinks and peer access as reported by NVML, by PCI address.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wiring {
    /// Links between two GPUs, grouped.
    pub nvlinks: Vec<(String, String, u32)>,
    pub pairs: Vec<Pair>,
    /// The GPUs as the driver reports them.
    pub gpus: Vec<DriverGpu>,
}

/// Asks NVML.
///
/// # Errors
/// With a message, if there is no NVIDIA driver or it does not respond.
pub fn wiring() -> Result<Wiring, String> {
    let nvml = Nvml::init().map_err(|error| format!("NVML cannot be used: {error}"))?;
    let count = nvml.device_count().map_err(|error| format!("NVML cannot list the GPUs: {error}"))?;
    let devices: Vec<Device<'_>> = (0..count).filter_map(|i| nvml.device_by_index(i).ok()).collect();
    let mut wiring = Wiring::default();
    let mut addresses = Vec::new();
    for device in &devices {
        let address = device.pci_info().map(|info| address(&info)).unwrap_or_default();
        wiring.gpus.push(DriverGpu {
            address: address.clone(),
            name: device.name().ok(),
            facts: facts(device),
        });
        addresses.push(address);
    }
    let links: Vec<Vec<String>> = devices.iter().map(remote_ends).collect();
    for i in 0..devices.len() {
        for j in i + 1..devices.len() {
            let direct = links[i].iter().filter(|end| **end == addresses[j]).count();
            // Links that do not end at a GPU end at a switch, which connects all GPUs with such links.
            let switched = |ends: &[String]| ends.iter().filter(|end| !addresses.contains(*end)).count();
            let count = if direct > 0 { direct } else { switched(&links[i]).min(switched(&links[j])) };
            if count > 0 {
                wiring.nvlinks.push((addresses[i].clone(), addresses[j].clone(), count as u32));
            }
            wiring.pairs.push(Pair {
                a: addresses[i].clone(),
                b: addresses[j].clone(),
                // The PCI tree has this already; this is only for the peer access.
                connection: Connection::Sys,
                peer_access: peer_access(&devices[i], &devices[j]),
            });
        }
    }
    Ok(wiring)
}

fn facts(device: &Device<'_>) -> DeviceFacts {
    let capability = device.cuda_compute_capability().ok();
    let capability =
        capability.and_then(|of| Some((u32::try_from(of.major).ok()?, u32::try_from(of.minor).ok()?)));
    let per_multiprocessor = capability.and_then(cores_per_multiprocessor);
    DeviceFacts {
        capability,
        memory_bytes: device.memory_info().ok().map(|memory| memory.total),
        multiprocessors: device.num_cores().ok().zip(per_multiprocessor).map(|(cores, each)| cores / each),
    }
}

/// NVML counts CUDA cores; how many a multiprocessor has is in CUDA's programming guide.
fn cores_per_multiprocessor((major, minor): (u32, u32)) -> Option<u32> {
    match (major, minor) {
        (6, 0) | (7, _) | (8, 0) => Some(64),
        (5, _) | (6, _) | (8, _) | (9, _) | (10, _) | (12, _) => Some(128),
        _ => None,
    }
}

/// Where the active links of a GPU end.
fn remote_ends(device: &Device<'_>) -> Vec<String> {
    (0..MAX_NVLINKS)
        .map(|link| device.link_wrapper_for(link))
        .filter(|link| link.is_active().unwrap_or(false))
        .filter_map(|link| link.remote_pci_info().ok())
        .map(|info| address(&info))
        .collect()
}

fn peer_access(a: &Device<'_>, b: &Device<'_>) -> Vec<PeerAccess> {
    let kinds = [
        ("read", P2pCapabilitiesIndex::Read),
        ("write", P2pCapabilitiesIndex::Write),
        ("nvlink", P2pCapabilitiesIndex::NvLink),
        ("atomics", P2pCapabilitiesIndex::Atomics),
    ];
    let known = kinds.into_iter().filter_map(|(kind, index)| {
        let status = match a.p2p_status(b, index).ok()? {
            P2pStatus::Ok => "ok",
            P2pStatus::ChipsetNotSupported => "chipset not supported",
            P2pStatus::GpuNotSupported => "GPU not supported",
            P2pStatus::IohTopologyNotSupported => "topology not supported",
            P2pStatus::DisabledByRegkey => "disabled by a driver setting",
            P2pStatus::NotSupported => "not supported",
            _ => "unknown",
        };
        Some(PeerAccess { kind: kind.to_owned(), status: status.to_owned() })
    });
    known.collect()
}

/// In sysfs format: NVML's domain has eight digits.
pub(crate) fn address(info: &PciInfo) -> String {
    format!("{:04x}:{:02x}:{:02x}.0", info.domain, info.bus, info.device)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a driver it returns data, without one it returns an error; it never panics.
    #[test]
    fn without_a_driver_there_is_an_error_message() {
        match wiring() {
            Ok(wiring) => {
                let known = |gpu: &DriverGpu| gpu.facts.memory_bytes.is_some() && gpu.name.is_some();
                assert!(!wiring.gpus.is_empty() && wiring.gpus.iter().all(known), "{:?}", wiring.gpus);
            }
            Err(sentence) => assert!(sentence.starts_with("NVML"), "{sentence}"),
        }
    }
}
