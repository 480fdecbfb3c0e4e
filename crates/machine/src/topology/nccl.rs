//! The machine as NCCL saw it (`NCCL_TOPO_DUMP_FILE`).

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::{DeviceKind, Found, HopLink, PciDevice, generation_of, kind_of};

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
/// If it is not XML, or XML of something else.
pub fn from_nccl(text: &str) -> Result<Found, NcclError> {
    let mut found = Found { source: "NCCL topology file".to_owned(), ..Found::default() };
    let mut reader = Reader::from_str(text);
    let mut is_system = false;
    let mut numa: Option<u32> = None;
    let (mut nodes, mut cpus) = (Vec::new(), 0u32);
    // The devices that are open, outermost first, and what GPUs say of NVLinks.
    let mut open: Vec<usize> = Vec::new();
    let mut links: Vec<(String, String, u32, bool)> = Vec::new();
    loop {
        let event = reader.read_event().map_err(|error| NcclError::Xml(error.to_string()))?;
        match event {
            Event::Eof => break,
            Event::Start(tag) | Event::Empty(tag) if tag.name().as_ref() == b"system" => is_system = true,
            Event::Start(ref tag) | Event::Empty(ref tag) if tag.name().as_ref() == b"cpu" => {
                numa = attribute(tag, "numaid").and_then(|text| text.parse().ok());
                nodes.extend(numa);
                cpus += 1;
            }
            Event::Start(ref tag) | Event::Empty(ref tag) if tag.name().as_ref() == b"pci" => {
                let parent = open.last().copied();
                let bridge = format!("cpu {}", cpus.max(1) - 1);
                let Some(device) = device(tag, parent, &bridge, numa) else { continue };
                found.devices.push(device);
                if matches!(event, Event::Start(_)) {
                    open.push(found.devices.len() - 1);
                }
            }
            Event::Start(ref tag) | Event::Empty(ref tag) => {
                let Some(&device) = open.last() else { continue };
                match tag.name().as_ref() {
                    b"gpu" => {
                        found.devices[device].kind = DeviceKind::Gpu;
                        // NCCL writes -1 where it does not know.
                        let rank = attribute(tag, "rank").and_then(|text| text.parse().ok());
                        found.ranks.extend(rank.map(|rank| (device, rank)));
                    }
                    b"nic" | b"net" => found.devices[device].kind = DeviceKind::Nic,
                    b"nvlink" => {
                        let count = attribute(tag, "count").and_then(|text| text.parse().ok()).unwrap_or(1);
                        let target = attribute(tag, "target").unwrap_or_default().to_ascii_lowercase();
                        let to_switch =
                            attribute(tag, "tclass").is_some_and(|class| class.starts_with("0x0680"));
                        links.push((found.devices[device].address.clone(), target, count, to_switch));
                    }
                    _ => {}
                }
            }
            Event::End(tag) if tag.name().as_ref() == b"pci" => {
                open.pop();
            }
            _ => {}
        }
    }
    if !is_system {
        return Err(NcclError::NoSystem);
    }
    found.nvlinks = nvlinks(&links);
    nodes.sort_unstable();
    nodes.dedup();
    found.numa_nodes = u32::try_from(nodes.len()).ok().filter(|n| *n > 0);
    Ok(found)
}

/// Links to switches join every two GPUs that have them; others go to one GPU.
fn nvlinks(links: &[(String, String, u32, bool)]) -> Vec<(String, String, u32)> {
    let mut to_switch: Vec<(&str, u32)> = Vec::new();
    for (gpu, _, count, _) in links.iter().filter(|(.., switch)| *switch) {
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
    for (a, b, count, _) in links.iter().filter(|(.., switch)| !switch) {
        // Both ends say the same.
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
    // NCCL writes 0 where the width was not told.
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
