//! Snapshots of `busbound top`.

use busbound_machine::live::{GpuNow, Limits, Log, Snapshot, Watch};
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

/// The last snapshot, with escape sequences in every field that a log could put them in.
pub(crate) fn hostile() -> Snapshot {
    let mut snapshot = replayed().pop().unwrap();
    let evil = || "\u{1b}[2J\n".to_owned();
    snapshot.at = evil();
    snapshot.driver = Some(evil());
    snapshot.training[0].file = evil();
    let gpu: &mut GpuNow = &mut snapshot.gpus[0];
    (gpu.name, gpu.throttled_by) = (Some(evil()), Some(vec![evil()]));
    gpu.processes.as_mut().unwrap()[0].name = Some(evil());
    snapshot.signs[0].evidence = evil();
    snapshot.signs[0].statement = evil();
    snapshot
}
