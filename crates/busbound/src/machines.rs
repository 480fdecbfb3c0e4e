//! Which machine did the user name, and what is its topology?

use std::fs;
use std::path::Path;

use busbound_machine::topology::{Found, Topology, from_sysfs, saved_topology};
use busbound_machine::{Machine, MachineProfile};

use crate::error::Error;

/// The machine of this name: a measured profile if it ends in `.json`, otherwise a link (`pcie4x16`), a GPU
/// (`h100-pcie`) or a rate in GB/s. Without a name, the GPU names in the trace determine the links.
///
/// # Errors
/// If the file does not exist, or the name is unknown.
///
/// ```
/// let machine = busbound::resolve_machine(Some("pcie4x16"))?;
/// assert_eq!(machine.link_of(None).name, "PCIe 4 x16");
/// assert!(busbound::resolve_machine(Some("pcie4x17")).is_err_and(|error| error.is_usage()));
/// # Ok::<(), busbound::Error>(())
/// ```
pub fn resolve_machine(name: Option<&str>) -> Result<Machine, Error> {
    let Some(name) = name else { return Ok(Machine::default()) };
    if !name.ends_with(".json") {
        return Ok(Machine::named(name)?);
    }
    let path = Path::new(name);
    let text = fs::read_to_string(path).map_err(Error::io(path))?;
    let profile = MachineProfile::parse(&text).map_err(|error| Error::content(path, error))?;
    Ok(Machine::measured(profile))
}

/// The topology of a machine, from a file that `busbound topo` or NCCL wrote, or from a directory with its `sys/` and
/// `proc/`.
///
/// # Errors
/// If it cannot be read.
pub fn read_topology(path: &Path) -> Result<Topology, Error> {
    if path.is_dir() {
        return Ok(read_root(path)?.topology());
    }
    let text = fs::read_to_string(path).map_err(Error::io(path))?;
    saved_topology(&text).map_err(|error| Error::content(path, error))
}

/// The devices of a machine, from a directory with its `sys/` and `proc/`: `/` is this machine.
///
/// # Errors
/// If there is no such directory, or it has no `sys/`.
pub fn read_root(path: &Path) -> Result<Found, Error> {
    let is_directory = fs::metadata(path).map_err(Error::io(path))?.is_dir();
    if !is_directory {
        let why = "is a file, not a directory with the sys/ and proc/ of a machine";
        return Err(Error::content(path, why));
    }
    if !path.join("sys").is_dir() {
        return Err(Error::content(
            path,
            "has no sys/: give the directory above the sys/ and proc/ of a machine",
        ));
    }
    Ok(from_sysfs(path))
}
