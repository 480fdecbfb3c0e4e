//! How long would the steps take without the profiler? Takes what recording cost out of the host's time.

use std::collections::BTreeMap;

use busbound_trace::Direction;

use super::{HostCall, Model};
use crate::Time;
use crate::graph::{HostAction, WorkKind};
use crate::thresholds::{ALWAYS_FRESH, OWN_SHARE, WORTH_FAULTS};

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
    /// Per pinned copy that follows another one of its direction on its stream, on the device.
    pub copy: f64,
    pub fresh: FreshPages,
}

/// D2H copies into pages that the process has not touched before: a recorded process gets such pages more often, because
/// the allocator hands out less of what was freed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FreshPages {
    /// The share of the time beyond a copy into touched pages that recording causes, 0 to 1.
    pub share: f64,
    /// The same for buffers whose size went up in the same step before: the program frees what it sent, and without recording the
    /// allocator hands out just that.
    pub share_of_freed: f64,
    /// A copy into touched pageable memory, in nanoseconds per byte.
    pub touched: f64,
}

impl FreshPages {
    pub const NONE: Self = Self { share: 0.0, share_of_freed: 0.0, touched: 0.0 };

    /// How long such a copy takes without recording, as a share of its recorded time.
    fn left(self, bytes: u64, was_freed: bool, recorded: f64) -> f64 {
        let share = if was_freed { self.share_of_freed } else { self.share };
        let beyond = (recorded - bytes as f64 * self.touched).max(0.0);
        let depends = (WORTH_FAULTS..=ALWAYS_FRESH).contains(&bytes) && recorded > 0.0;
        if depends { 1.0 - share * beyond / recorded } else { 1.0 }
    }
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
            copy: self.copy * factor,
            fresh: self.fresh,
        }
    }

    /// The same, but these shares of the time that fresh pages take are recording's.
    #[must_use]
    pub fn with_fresh_shares(self, share: f64, share_of_freed: f64) -> Self {
        Self { fresh: FreshPages { share, share_of_freed, ..self.fresh }, ..self }
    }

    /// What recording added before this call, and what it added before or in it.
    fn of(&self, call: &HostCall) -> (Time, Time) {
        let (since, works) = (&call.since, call.action.issued().len());
        // A graph launch records all of its work, but the host makes one call.
        let works = works.min(1) as f64;
        let steps = if call.action == HostAction::EndStep { self.step } else { 0.0 };
        let before =
            f64::from(since.operators) * self.operator + f64::from(since.frames) * self.frame + steps;
        (before as Time, (f64::from(since.calls) * self.call + works * self.work) as Time)
    }
}

impl Model {
    /// The same steps without the cost of recording them.
    pub fn without_profiler(&self, cost: &RecordingCost) -> Self {
        let mut model = self.clone();
        for call in &mut model.calls {
            let (before, with_calls) = cost.of(call);
            let added = before + with_calls;
            let (gap, own) = (call.gap(), call.cost);
            let less = |time: Time, by: Time| (time - by).max((time as f64 * OWN_SHARE) as Time);
            let new_gap = less(gap, added);
            if new_gap < gap {
                call.set_gap(new_gap);
            }
            if let Some((_, between)) = &mut call.after {
                *between = less(*between, added);
            }
            // Calls are recorded in part inside the call, operators are not. Some calls mostly wait or copy.
            if matches!(call.action, HostAction::Issue(_)) {
                call.cost = less(own, (added - (gap - new_gap)).min(with_calls));
            }
        }
        model.touch_fresh_pages_less(cost.fresh);
        for work in self.calls.iter().filter_map(|call| call.action.issued().get(1..)).flatten() {
            let gap = &mut model.work[*work].after_work;
            *gap = (*gap - cost.node as Time).max((*gap as f64 * OWN_SHARE) as Time);
        }
        model.follow_closer(cost.copy);
        model
    }

    /// Copies in a row follow each other closer by this time: first the gap between them shrinks, then the copy itself.
    fn follow_closer(&mut self, by: f64) {
        let is_pinned = |kind: WorkKind| matches!(kind, WorkKind::Copy { pageable: false, .. });
        for (copy, next) in self.copies_in_a_row() {
            if !is_pinned(self.work[copy].kind) || !is_pinned(self.work[next].kind) {
                continue;
            }
            let next = &mut self.work[next];
            let from_gap = (next.after_work as f64).clamp(0.0, by);
            next.after_work -= from_gap as Time;
            let from_copy = (by - from_gap).min(next.alone * OWN_SHARE);
            next.alone -= from_copy;
            next.end -= from_copy as Time;
        }
    }

    fn touch_fresh_pages_less(&mut self, fresh: FreshPages) {
        // Sizes of pageable memory that the step sent so far and did not get back yet.
        let (mut sent, mut step): (BTreeMap<u64, usize>, usize) = (BTreeMap::new(), 0);
        for call in &mut self.calls {
            if call.step != step {
                (step, sent) = (call.step, BTreeMap::new());
            }
            let Some(&copy) = call.action.issued().first() else { continue };
            let work = &mut self.work[copy];
            let WorkKind::Copy { direction, pageable: true, bytes } = work.kind else { continue };
            if direction == Direction::HostToDevice {
                *sent.entry(bytes).or_default() += 1;
            }
            if direction != Direction::DeviceToHost || !matches!(call.action, HostAction::IssueBlocking(_)) {
                continue;
            }
            let was_freed =
                sent.get_mut(&bytes).filter(|count| **count > 0).map(|count| *count -= 1).is_some();
            let left = fresh.left(bytes, was_freed, (work.after_call + call.cost) as f64 + work.alone);
            let scaled = |time: Time| (time as f64 * left) as Time;
            (work.alone, work.after_call) = (work.alone * left, scaled(work.after_call));
            work.end = work.start + scaled(work.end - work.start);
            call.cost = scaled(call.cost);
        }
    }
}
