//! How long would each copy and kernel take without contention for the link or the device?

use busbound_trace::Direction;

use super::Model;
use crate::Time;
use crate::graph::WorkId;
use crate::sharing::{Sharing, rate};

pub(super) fn set(model: &mut Model, sharing: &Sharing) {
    for device in model.devices() {
        set_on(model, device, sharing);
    }
}

/// Goes through all starts and ends in time order, and sums the progress of each kernel and copy between them.
fn set_on(model: &mut Model, device: i32, sharing: &Sharing) {
    let mut marks: Vec<(Time, bool, WorkId)> = Vec::new();
    for (id, work) in model.work.iter().enumerate() {
        let counts = work.kind.is_kernel() || work.kind.bus().is_some();
        if counts && model.stream_device[work.stream] == device && work.end > work.start {
            marks.extend([(work.start, true, id), (work.end, false, id)]);
        }
    }
    // Ends come before starts at the same time.
    marks.sort_unstable();
    let mut active: Vec<WorkId> = Vec::new();
    let mut done: Vec<(WorkId, f64)> = Vec::new();
    let mut got = vec![0.0; model.work.len()];
    let mut last = 0;
    for (time, starts, id) in marks {
        let count = |wanted: Option<Direction>| {
            active.iter().filter(|work| model.work[**work].kind.bus() == wanted).count()
        };
        let (up, down) = (count(Some(Direction::HostToDevice)), count(Some(Direction::DeviceToHost)));
        let kernels = count(None);
        for work in &active {
            let kind = model.work[*work].kind;
            let share = match kind.bus() {
                Some(Direction::HostToDevice) => rate(up, down, sharing.duplex),
                Some(_) => rate(down, up, sharing.duplex),
                None => 1.0 / (kernels as f64 * sharing.slowdown(kind, up + down)),
            };
            got[*work] += (time - last) as f64 * share;
        }
        last = time;
        if starts {
            active.push(id);
        } else {
            active.retain(|work| *work != id);
            done.push((id, got[id]));
        }
    }
    for (work, alone) in done {
        model.work[work].alone = alone;
    }
}
