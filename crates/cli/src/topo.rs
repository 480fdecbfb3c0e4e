//! `busbound topo`.

use std::fs;
use std::path::Path;

use anyhow::Context;
use busbound_diagnosis::advice_of_topology;
use busbound_machine::topology::{Found, Topology, from_nccl, from_smi, from_sysfs};
use busbound_report::{markdown_as_html, topology_as_json, topology_as_markdown, topology_as_terminal};

use crate::args::{Format, TopoArgs};
use crate::failure::Failure;
use crate::output::{write_advice, write_answer};
use crate::request::resolve_output;

pub(crate) fn run(args: &TopoArgs) -> Result<(), Failure> {
    let topology = read(args)?;
    let output = resolve_output(&args.output);
    if let Some(emit) = args.emit.emit {
        return write_advice(&advice_of_topology(&topology), emit, &output);
    }
    let text = match output.format {
        Format::Terminal => topology_as_terminal(&topology, output.width),
        Format::Markdown => topology_as_markdown(&topology),
        Format::Html => markdown_as_html("What is this machine?", &topology_as_markdown(&topology)),
        Format::Json => topology_as_json(&topology).map_err(|error| Failure::Output(error.into()))?,
    };
    write_answer(&text, &output)
}

fn read(args: &TopoArgs) -> Result<Topology, Failure> {
    let text = |path: &Path| {
        fs::read_to_string(path).with_context(|| path.display().to_string()).map_err(Failure::Unreadable)
    };
    let unreadable =
        |path: &Path, why: String| Failure::Unreadable(anyhow::anyhow!("{} {why}", path.display()));
    if let Some(path) = &args.from_nccl {
        let found = from_nccl(&text(path)?).map_err(|error| unreadable(path, error.to_string()))?;
        return Ok(found.topology());
    }
    if let Some(path) = &args.from_smi {
        let found = from_smi(&text(path)?);
        let why = || unreadable(path, "is not what `nvidia-smi topo -m` prints".to_owned());
        return Ok(found.ok_or_else(why)?.topology());
    }
    if cfg!(not(target_os = "linux")) && args.root.is_none() {
        let why = "how a machine is wired is read from Linux's /sys: give --from-nccl, --from-smi or --root";
        return Err(Failure::Usage(anyhow::anyhow!(why)));
    }
    let root = args.root.as_deref().unwrap_or(Path::new("/"));
    let found = from_sysfs(root);
    // Another root is another machine: the driver here knows nothing of it.
    Ok(if args.root.is_some() { found } else { ask_driver(found) }.topology())
}

fn ask_driver(found: Found) -> Found {
    match busbound_gpu::wiring() {
        Ok(wiring) => found.with_driver(wiring.nvlinks, wiring.pairs, &wiring.names),
        Err(_) => found,
    }
}
