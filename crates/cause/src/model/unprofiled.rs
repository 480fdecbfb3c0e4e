//! How long would the steps take without the profiler? Takes what recording cost out of the host's time.

use super::{HostCall, Model};
use crate::Time;
use crate::graph::HostAction;
use crate::thresholds::OWN_SHARE;

/// Host time that recording adds, in nanoseconds per recorded event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecordingCost {
    pub operator: f64,
    pub call: f64,
    /// Per kernel, copy and memset.
    pub work: f64,
    /// Per Python frame.
    pub frame: f64,
    /// Per step.
    pub step: f64,
    /// Per kernel of a CUDA graph, on the device: recorded kernels start later.
    pub node: f64,
}

impl RecordingCost {
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            operator: self.operator * factor,
            call: self.call * factor,
            work: self.work * factor,
            frame: self.frame * factor,
            step: self.step * factor,
            node: self.node * factor,
        }
    }

    /// What recording added before and in this call.
    fn of(&self, call: &HostCall) -> Time {
        let (since, works) = (&call.since, call.action.issued().len());
        // A graph launch records all of its work, but the host makes one call.
        let works = works.min(1) as f64;
        let steps = if call.action == HostAction::EndStep { self.step } else { 0.0 };
        let events = f64::from(since.operators) * self.operator
            + f64::from(since.calls) * self.call
            + f64::from(since.frames) * self.frame;
        (events + works * self.work + steps) as Time
    }
}

impl Model {
    /// The same steps without the cost of recording them.
    pub fn without_profiler(&self, cost: &RecordingCost) -> Self {
        let mut model = self.clone();
        for call in &mut model.calls {
            let added = cost.of(call);
            let (gap, own) = (call.gap(), call.cost);
            let less = |time: Time, by: Time| (time - by).max((time as f64 * OWN_SHARE) as Time);
            let new_gap = less(gap, added);
            if new_gap < gap {
                call.set_gap(new_gap);
            }
            if let Some((_, between)) = &mut call.after {
                *between = less(*between, added);
            }
            // What the gap cannot give comes out of the call, unless the call mostly waits or copies.
            if matches!(call.action, HostAction::Issue(_)) {
                call.cost = less(own, added - (gap - new_gap));
            }
        }
        for work in self.calls.iter().filter_map(|call| call.action.issued().get(1..)).flatten() {
            let gap = &mut model.work[*work].after_work;
            *gap = (*gap - cost.node as Time).max((*gap as f64 * OWN_SHARE) as Time);
        }
        model
    }
}
