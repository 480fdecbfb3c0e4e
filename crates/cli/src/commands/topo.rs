//! `busbound topo`.

use std::fs;
use std::path::Path;

use busbound::diagnosis::advice_of_topology;
use busbound::machine::Reference;
use busbound::machine::topology::{Found, Topology, TrafficPlan, from_nccl, from_smi, from_sysfs};
use busbound::read_root;
use busbound::report::Plan;

use crate::args::topo::TopoArgs;
use crate::failure::Failure;
use crate::io::kind::{FileKind, not_a};
use crate::io::output::show;
use crate::request::{read_topology, resolve_output};

pub(crate) fn run(args: &TopoArgs) -> Result<(), Failure> {
    let output = resolve_output(&args.output)?;
    if args.list_links {
        return show(&Reference::links(), &output, "links.html");
    }
    if args.list_gpus {
        return show(&Reference::gpus(), &output, "gpus.html");
    }
    let topology = read(args)?;
    if args.traffic {
        let traffic =
            TrafficPlan::of(&topology).map_err(|why| Failure::Unreadable(format!("The topology {why}")))?;
        return show(&Plan::Traffic(Box::new(traffic)), &output, "plan.html");
    }
    match args.emit.emit {
        Some(format) => show(&advice_of_topology(&topology), &output.with_format(format), ""),
        None => show(&topology, &output, "topology.html"),
    }
}

fn read(args: &TopoArgs) -> Result<Topology, Failure> {
    let text = |path: &Path| {
        let bytes = fs::read(path).map_err(Failure::unreadable_at(path));
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    };
    let unreadable = |wanted: FileKind, path: &Path, why: String| {
        let why = not_a(wanted, path).unwrap_or_else(|| format!("{} {why}", path.display()));
        Failure::Unreadable(why)
    };
    if let Some(path) = &args.from.from {
        return read_topology(path);
    }
    if let Some(path) = &args.from.from_nccl {
        let found = from_nccl(&text(path)?)
            .map_err(|error| unreadable(FileKind::NcclTopology, path, error.to_string()))?;
        return Ok(found.topology());
    }
    if let Some(path) = &args.from.from_smi {
        let found = from_smi(&text(path)?);
        let why =
            || unreadable(FileKind::SmiTopology, path, "is not what `nvidia-smi topo -m` prints".to_owned());
        return Ok(found.ok_or_else(why)?.topology());
    }
    if cfg!(not(target_os = "linux")) && args.from.root.is_none() {
        let why =
            "the topology is read from Linux's /sys: on this system give --from-nccl, --from-smi or --root";
        return Err(Failure::usage(why));
    }
    // Another root is another machine: the driver here does not know it.
    Ok(match args.from.root.as_deref() {
        Some(root) => read_root(root)?,
        None => ask_driver(from_sysfs(Path::new("/"))),
    }
    .topology())
}

fn ask_driver(found: Found) -> Found {
    match busbound_gpu::wiring() {
        Ok(wiring) => found.with_driver(wiring.nvlinks, wiring.pairs, &wiring.gpus),
        Err(_) => found,
    }
}
