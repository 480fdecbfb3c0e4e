//! Which machine is meant?

use std::fs;

use anyhow::Context;
use busbound_machine::{Machine, MachineProfile};

use crate::failure::Failure;

/// A profile where a file is named, else a link or a GPU.
///
/// # Errors
/// If there is no such file, or no such name.
pub fn resolve_machine(name: Option<&str>) -> Result<Machine, Failure> {
    let Some(name) = name else { return Ok(Machine::default()) };
    if name.ends_with(".json") {
        let text = fs::read_to_string(name).with_context(|| name.to_owned()).map_err(Failure::Unreadable)?;
        let profile = MachineProfile::parse(&text);
        let unreadable = |error| Failure::Unreadable(anyhow::anyhow!("{name} {error}"));
        return Ok(Machine::measured(profile.map_err(unreadable)?));
    }
    Machine::named(name).map_err(|error| Failure::Usage(error.into()))
}
