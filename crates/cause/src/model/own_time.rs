//! How long would each copy and kernel take without contention for the link or the device?

use std::collections::BTreeMap;

use super::Model;
use crate::Time;
use crate::graph::WorkId;
use crate::sharing::{LANES, Lane, Sharing};

/// When something starts (true) or ends on a device.
type Mark = (Time, bool, WorkId);

pub(super) fn set(model: &mut Model, sharing: &Sharing) {
    let mut by_device: BTreeMap<i32, Vec<Mark>> = BTreeMap::new();
    for (id, work) in model.work.iter().enumerate() {
        let counts = work.kind.is_kernel() || work.kind.bus().is_some();
        if counts && work.end > work.start {
            let marks = by_device.entry(model.stream_device[work.stream]).or_default();
            marks.extend([(work.start, true, id), (work.end, false, id)]);
        }
    }
    let mut started = vec![0.0; model.work.len()];
    for marks in by_device.into_values() {
        set_on(model, marks, &mut started, sharing);
    }
}

/// Goes through all starts and ends of a device in time order. Each lane has a clock that advances at the rate of its work: work
/// gets what the clock advances between its start and its end.
fn set_on(model: &mut Model, mut marks: Vec<Mark>, started: &mut [f64], sharing: &Sharing) {
    // Ends come before starts at the same time.
    marks.sort_unstable();
    let (mut running, mut clocks) = ([0; LANES], [0.0; LANES]);
    let mut last = 0;
    for (time, starts, id) in marks {
        let passed = (time - last) as f64;
        for (lane, rate) in sharing.rates(&running).into_iter().enumerate() {
            clocks[lane] = if running[lane] == 0 { 0.0 } else { clocks[lane] + passed * rate };
        }
        last = time;
        let lane = Lane::of(model.work[id].kind) as usize;
        if starts {
            running[lane] += 1;
            started[id] = clocks[lane];
        } else {
            running[lane] -= 1;
            model.work[id].alone = clocks[lane] - started[id];
        }
    }
}
