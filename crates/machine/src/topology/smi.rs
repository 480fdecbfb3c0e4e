//! What does `nvidia-smi topo -m` show? Device pairs and CPU affinity.

use super::{Connection, DeviceKind, Found, Pair, PciDevice};

/// Reads the printed table; `None` if the text is something else.
pub fn from_smi(text: &str) -> Option<Found> {
    let plain = without_escapes(text);
    let header = plain.lines().find(|line| line.trim_start().starts_with("GPU0"))?;
    // Columns are separated by tabs; titles such as `CPU Affinity` contain spaces.
    let columns: Vec<&str> = header.split('\t').map(str::trim).filter(|title| !title.is_empty()).collect();
    // Device columns come before the affinity columns, whatever the devices are called.
    let named: Vec<&str> = columns.iter().copied().take_while(|title| !title.contains(' ')).collect();
    let mut found = Found { source: "nvidia-smi topo -m".to_owned(), ..Found::default() };
    let mut nodes = Vec::new();
    let rows = plain.lines().skip_while(|line| *line != header).skip(1);
    for line in rows.take_while(|line| !line.trim_start().starts_with("Legend")) {
        let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
        let Some(name) = cells.first().filter(|name| named.contains(*name)) else { continue };
        let is_gpu = name.starts_with("GPU");
        let after = |title: &str| {
            let at = columns.iter().position(|column| *column == title)?;
            cells.get(at + 1).copied().filter(|cell| !cell.is_empty() && *cell != "N/A")
        };
        // An affinity to several nodes does not parse: the node is unknown.
        let numa = after("NUMA Affinity").and_then(|text| text.parse().ok());
        nodes.extend(numa);
        found.devices.push(PciDevice {
            address: (*name).to_owned(),
            kind: if is_gpu { DeviceKind::Gpu } else { DeviceKind::Nic },
            name: None,
            parent: None,
            host_bridge: String::new(),
            numa,
            cpus: after("CPU Affinity").map(str::to_owned),
            link: None,
            acs: None,
        });
        for (other, cell) in named.iter().zip(&cells[1..]) {
            let known = found.printed_pairs.iter().any(|pair| pair.a == *other && pair.b == *name);
            if let Some(connection) = Connection::parse(cell).filter(|_| !known) {
                let (a, b) = ((*name).to_owned(), (*other).to_owned());
                found.printed_pairs.push(Pair { a, b, connection, peer_access: Vec::new() });
            }
        }
    }
    nodes.sort_unstable();
    nodes.dedup();
    found.numa_nodes = u32::try_from(nodes.len()).ok().filter(|n| *n > 0);
    found.driver = true;
    (!found.devices.is_empty()).then_some(found)
}

/// Newer versions underline the header.
fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            // Skip up to the letter that ends the sequence.
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        } else {
            plain.push(c);
        }
    }
    plain
}
