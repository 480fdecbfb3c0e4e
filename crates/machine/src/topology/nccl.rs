//! What topology did NCCL detect (`NCCL_TOPO_DUMP_FILE`)?

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::{DeviceFacts, DeviceIndex, DeviceKind, Found, HopLink, PciDevice, generation_of, kind_of};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NcclError {
    #[error("is not XML: {0}")]
    Xml(String),
    #[error("has no <system>: it is not what NCCL_TOPO_DUMP_FILE writes")]
    NoSystem,
}

/// Reads a topology file.
///
/// # Errors
/// If the text is not XML, or not an NCCL topology.
pub fn from_nccl(text: &str) -> Result<Found, NcclError> {
    let mut walk = Walk::default();
    let mut reader = Reader::from_str(text);
    loop {
        match reader.read_event().map_err(|error| NcclError::Xml(error.to_string()))? {
            Event::Eof => break,
            Event::Start(tag) => walk.enter(&tag, true),
            Event::Empty(tag) => walk.enter(&tag, false),
            Event::End(tag) if tag.name().as_ref() == b"pci" => {
                walk.open.pop();
            }
            _ => {}
        }
    }
    if !walk.is_system {
        return Err(NcclError::NoSystem);
    }
    let mut nodes = walk.nodes;
    nodes.sort_unstable();
    nodes.dedup();
    Ok(Found {
        source: "NCCL topology file".to_owned(),
        nvlinks: nvlinks(&walk.links),
        numa_nodes: u32::try_from(nodes.len()).ok().filter(|n| *n > 0),
        devices: walk.devices,
        ranks: walk.ranks,
        processor: walk.processor,
        facts: walk.facts,
        ..Found::default()
    })
}

/// What has been read so far.
#[derive(Debug, Default)]
struct Walk {
    is_system: bool,
    devices: Vec<PciDevice>,
    ranks: Vec<(DeviceIndex, u32)>,
    facts: Vec<(DeviceIndex, DeviceFacts)>,
    /// The NUMA node of the open `<cpu>`, the nodes of all of them, and their count.
    numa: Option<u32>,
    nodes: Vec<u32>,
    cpus: u32,
    processor: Option<String>,
    /// The open `<pci>` devices, outermost first.
    open: Vec<DeviceIndex>,
    links: Vec<NvLinks>,
}

/// A GPU's NVLinks to one target.
#[derive(Debug)]
struct NvLinks {
    gpu: String,
    target: String,
    count: u32,
    to_switch: bool,
}

impl Walk {
    fn enter(&mut self, tag: &BytesStart<'_>, has_children: bool) {
        match tag.name().as_ref() {
            b"system" => self.is_system = true,
            b"cpu" => {
                self.numa = attribute(tag, "numaid").and_then(|text| text.parse().ok());
                self.nodes.extend(self.numa);
                self.cpus += 1;
                self.processor = attribute(tag, "vendor").or(self.processor.take());
            }
            b"pci" => {
                let bridge = format!("cpu {}", self.cpus.max(1) - 1);
                let Some(device) = device(tag, self.open.last().copied(), &bridge, self.numa) else { return };
                self.devices.push(device);
                if has_children {
                    self.open.push(self.devices.len() - 1);
                }
            }
            name => {
                if let Some(&device) = self.open.last() {
                    self.within(name, tag, device);
                }
            }
        }
    }

    /// Handles a tag inside a device.
    fn within(&mut self, name: &[u8], tag: &BytesStart<'_>, device: DeviceIndex) {
        match name {
            b"gpu" => {
                self.devices[device].kind = DeviceKind::Gpu;
                // NCCL writes -1 for an unknown rank.
                let rank = attribute(tag, "rank").and_then(|text| text.parse().ok());
                self.ranks.extend(rank.map(|rank| (device, rank)));
                // `sm="90"` is compute capability 9.0.
                let capability = attribute(tag, "sm").and_then(|text| text.parse::<u32>().ok());
                let capability = capability.map(|sm| (sm / 10, sm % 10));
                self.facts.push((device, DeviceFacts { capability, ..DeviceFacts::default() }));
            }
            b"nic" | b"net" => self.devices[device].kind = DeviceKind::Nic,
            b"nvlink" => self.links.push(NvLinks {
                gpu: self.devices[device].address.clone(),
                target: attribute(tag, "target").unwrap_or_default().to_ascii_lowercase(),
                count: attribute(tag, "count").and_then(|text| text.parse().ok()).unwrap_or(1),
                to_switch: attribute(tag, "tclass").is_some_and(|class| class.starts_with("0x0680")),
            }),
            _ => {}
        }
    }
}

/// Links to NVSwitches connect every pair of GPUs that have them; other links go to one GPU.
fn nvlinks(links: &[NvLinks]) -> Vec<(String, String, u32)> {
    let mut to_switch: Vec<(&str, u32)> = Vec::new();
    for NvLinks { gpu, count, .. } in links.iter().filter(|links| links.to_switch) {
        match to_switch.iter_mut().find(|(known, _)| *known == gpu) {
            Some((_, sum)) => *sum += count,
            None => to_switch.push((gpu, *count)),
        }
    }
    let mut pairs: Vec<(String, String, u32)> = Vec::new();
    for (i, (a, of_a)) in to_switch.iter().enumerate() {
        for (b, of_b) in &to_switch[i + 1..] {
            pairs.push(((*a).to_owned(), (*b).to_owned(), *of_a.min(of_b)));
        }
    }
    for NvLinks { gpu: a, target: b, count, .. } in links.iter().filter(|links| !links.to_switch) {
        // Both ends list the same link.
        let known = pairs.iter().any(|(x, y, _)| x == b && y == a || x == a && y == b);
        if !known {
            pairs.push((a.clone(), b.clone(), *count));
        }
    }
    pairs
}

fn device(tag: &BytesStart<'_>, parent: Option<usize>, bridge: &str, numa: Option<u32>) -> Option<PciDevice> {
    let hexadecimal = |name: &str| {
        attribute(tag, name).and_then(|text| u32::from_str_radix(text.trim_start_matches("0x"), 16).ok())
    };
    let generation = attribute(tag, "link_speed").as_deref().and_then(generation_of);
    // NCCL writes 0 for an unknown width.
    let lanes = attribute(tag, "link_width").and_then(|text| text.parse::<u8>().ok()).filter(|n| *n > 0);
    let link = generation.zip(lanes).map(|(generation, lanes)| HopLink {
        generation,
        lanes,
        max_generation: generation,
        max_lanes: lanes,
    });
    Some(PciDevice {
        address: attribute(tag, "busid")?.to_ascii_lowercase(),
        kind: kind_of(hexadecimal("class").unwrap_or(0), hexadecimal("vendor").unwrap_or(0)),
        name: None,
        parent,
        host_bridge: bridge.to_owned(),
        numa,
        cpus: None,
        link,
        acs: None,
    })
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    Some(tag.try_get_attribute(name).ok()??.unescape_value().ok()?.into_owned())
}
