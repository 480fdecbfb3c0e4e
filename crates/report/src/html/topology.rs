//! The machine as a picture: NUMA nodes, switches and GPUs, with the rate of each link and what is wrong with it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use busbound_machine::topology::{Connection, DeviceKind, GpuPlace, HopLink, Pair, Topology};

use super::escape::escaped;
use super::{page, prose};
use crate::error::RenderError;
use crate::markdown::topology::topology_as_markdown;

/// The picture, then the words.
pub(super) fn topology_as_html(topology: &Topology) -> Result<String, RenderError> {
    let body = prose::article_with("run-0", &topology_as_markdown(topology), &picture(topology));
    page("How are the GPUs connected?", &body, false)
}

const WIDTH: f64 = 132.0;
const BOX: f64 = 42.0;
const GAP: f64 = 16.0;
const LEVEL: f64 = 86.0;
/// The text of a link begins at the middle of its box and ends beyond it by at most this.
const OVERHANG: f64 = 32.0;

/// A box of the picture, and what is below it.
struct Node {
    lines: [String; 2],
    class: &'static str,
    link: Option<HopLink>,
    /// Where a GPU's NVLinks go; empty without NVLink.
    nvlinks: String,
    below: Vec<Node>,
}

impl Node {
    fn width(&self) -> f64 {
        let below: f64 = self.below.iter().map(|node| node.width() + GAP).sum();
        (below - GAP).max(WIDTH)
    }

    fn depth(&self) -> usize {
        1 + self.below.iter().map(Self::depth).max().unwrap_or(0)
    }
}

/// Empty if the source says nothing about devices.
fn picture(topology: &Topology) -> String {
    let roots = nodes(topology);
    if roots.is_empty() {
        return String::new();
    }
    // NUMA nodes one below the other: a page is taller than wide.
    let tall = |node: &Node| (node.depth() - 1) as f64 * LEVEL + BOX + 2.0 * GAP;
    let width = roots.iter().map(Node::width).fold(0.0, f64::max) + 2.0 * GAP + OVERHANG;
    let height: f64 = roots.iter().map(tall).sum();
    let mut out = format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Picture of the machine\"><svg class=\"machine\" viewBox=\"0 0 {width:.0} {height:.0}\" style=\"width:{width:.0}px\" role=\"img\" aria-label=\"{}\">\n",
        escaped(&crate::text::topology::statement(topology))
    );
    let mut y = 0.0;
    for root in &roots {
        draw(&mut out, root, GAP, y + GAP, None);
        y += tall(root);
    }
    out.push_str("</svg></div>\n");
    out
}

/// One tree per host bridge that leads to a GPU, below its NUMA node.
fn nodes(topology: &Topology) -> Vec<Node> {
    let devices = &topology.devices;
    let mut numas: Vec<Node> = Vec::new();
    for (index, device) in devices.iter().enumerate().filter(|(_, device)| device.parent.is_none()) {
        let Some(branch) = branch(topology, index) else { continue };
        let name = device.numa.map_or("host".to_owned(), |numa| format!("NUMA node {numa}"));
        let at = numas.iter().position(|node| node.lines[0] == name).unwrap_or_else(|| {
            let cpus = device.cpus.as_ref().map_or(String::new(), |cpus| format!("CPUs {cpus}"));
            numas.push(Node {
                lines: [name, cpus],
                class: "numa",
                link: None,
                nvlinks: String::new(),
                below: Vec::new(),
            });
            numas.len() - 1
        });
        numas[at].below.push(branch);
    }
    numas
}

/// A device and what is below it; `None` if there is no GPU or NIC.
fn branch(topology: &Topology, index: usize) -> Option<Node> {
    let device = &topology.devices[index];
    let children = (0..topology.devices.len()).filter(|&i| topology.devices[i].parent == Some(index));
    let mut below: Vec<Node> = children.filter_map(|child| branch(topology, child)).collect();
    let gpu = topology.gpus.iter().find(|gpu| gpu.address == device.address);
    let (title, class) = match (device.kind, gpu) {
        (_, Some(gpu)) => (format!("GPU {}", gpu.index), "gpu"),
        (DeviceKind::Nic, _) => ("NIC".to_owned(), "nic"),
        _ if below.is_empty() => return None,
        // A port with one device below it is part of that device's link.
        _ if below.len() == 1 => {
            let mut only = below.remove(0);
            only.link = narrower(only.link, device.link);
            return Some(only);
        }
        _ => ("switch".to_owned(), "switch"),
    };
    let nvlinks = gpu.map(|gpu| nvlinks(topology, gpu)).unwrap_or_default();
    let about = device.name.clone().unwrap_or_else(|| device.address.clone());
    Some(Node { lines: [title, about], class, link: device.link, nvlinks, below })
}

/// `NV18 to all GPUs`, or the peers by number.
fn nvlinks(topology: &Topology, gpu: &GpuPlace) -> String {
    let peer = |pair: &Pair| match pair.connection {
        Connection::NvLink(links) if pair.a == gpu.address => Some((links, pair.b.clone())),
        Connection::NvLink(links) if pair.b == gpu.address => Some((links, pair.a.clone())),
        _ => None,
    };
    let mut peers: BTreeMap<Reverse<u32>, Vec<String>> = BTreeMap::new();
    for (links, address) in topology.pairs.iter().filter_map(peer) {
        let place = topology.gpus.iter().find(|other| other.address == address);
        peers.entry(Reverse(links)).or_default().extend(place.map(|place| place.index.to_string()));
    }
    let words = |(links, names): (&Reverse<u32>, &Vec<String>)| {
        let all = names.len() + 1 == topology.gpus.len();
        let to = if all { "all GPUs".to_owned() } else { format!("GPU {}", names.join(", ")) };
        format!("{} to {to}", Connection::NvLink(links.0).word())
    };
    peers.iter().map(words).collect::<Vec<_>>().join("; ")
}

fn narrower(a: Option<HopLink>, b: Option<HopLink>) -> Option<HopLink> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.under_load_gbps() < a.under_load_gbps() { b } else { a }),
        (a, b) => a.or(b),
    }
}

fn draw(out: &mut String, node: &Node, left: f64, top: f64, above: Option<(f64, f64)>) {
    let middle = left + node.width() / 2.0;
    if let Some((x, y)) = above {
        draw_link(out, node.link, (x, y), (middle, top));
    }
    let _ = writeln!(
        out,
        "<rect class=\"{}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{WIDTH}\" height=\"{BOX}\" rx=\"6\"/><text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-weight=\"600\">{}</text><text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        node.class,
        middle - WIDTH / 2.0,
        top + 17.0,
        escaped(&node.lines[0]),
        top + 34.0,
        escaped(&short(&node.lines[1]))
    );
    if !node.nvlinks.is_empty() {
        let _ = writeln!(
            out,
            "<text class=\"nvlink\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            top + BOX + 14.0,
            escaped(&node.nvlinks)
        );
    }
    let mut x = left;
    for below in &node.below {
        draw(out, below, x, top + LEVEL, Some((middle, top + BOX)));
        x += below.width() + GAP;
    }
}

/// Red and dashed if the link has fewer lanes than it could. A lower speed is normal while it is idle.
fn draw_link(out: &mut String, link: Option<HopLink>, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
    let is_narrow = link.is_some_and(|link| link.lanes < link.max_lanes);
    let class = if is_narrow { "link trouble" } else { "link" };
    let bend = y1 + 14.0;
    let _ = writeln!(
        out,
        "<polyline class=\"{class}\" points=\"{x1:.1},{y1:.1} {x1:.1},{bend:.1} {x2:.1},{bend:.1} {x2:.1},{y2:.1}\"/>"
    );
    if let Some(link) = link {
        let of = if is_narrow { format!(" (of x{})", link.max_lanes) } else { String::new() };
        let text = format!("{:.1} GB/s, x{}{of}", link.under_load_gbps(), link.lanes);
        let _ = writeln!(
            out,
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
            x2 + 5.0,
            y2 - 8.0
        );
    }
}

/// As much of a name as fits into a box.
fn short(name: &str) -> String {
    const MOST: usize = 19;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
