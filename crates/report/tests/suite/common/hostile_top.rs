//! A snapshot of `busbound top` from somebody who wants to harm the terminal.

use busbound_machine::live::{GpuNow, OwnProcess, Snapshot};

use super::replayed::replayed;

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
    let window = &mut snapshot.windows[0];
    (window.run, window.verdict, window.because, window.unit) = (evil(), evil(), evil(), evil());
    window.steps.as_mut().unwrap().found = Some(evil());
    window.change.as_mut().unwrap().verdict = evil();
    let window = &mut snapshot.windows[1];
    (window.rank, window.process) = (None, Some(OwnProcess { name: evil(), number: 1 }));
    window.phases.insert(evil(), 0.5);
    snapshot.signs[0].evidence = evil();
    snapshot.signs[0].statement = evil();
    snapshot
}
