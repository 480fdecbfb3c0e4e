//! Snapshots of `busbound top`.

use busbound_machine::live::{Limits, Log, Snapshot, Watch};
use busbound_machine::{Machine, MachineProfile};

use super::fixture_path;

/// The log from the fixtures, compared with the measured H200, with its warnings.
pub(crate) fn replayed() -> Vec<Snapshot> {
    let text = std::fs::read_to_string(fixture_path("top/made.jsonl")).unwrap();
    let profile = std::fs::read_to_string(fixture_path("machines/h200.json")).unwrap();
    let machine = Machine::measured(MachineProfile::parse(&profile).unwrap());
    let mut watch = Watch::with(Limits::default());
    let mut snapshots = Log::parse(&text).unwrap().snapshots;
    for snapshot in &mut snapshots {
        snapshot.compare_with_peak(&machine);
        snapshot.signs = watch.see(snapshot);
    }
    snapshots
}
