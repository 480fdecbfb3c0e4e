//! Which work ended last before a moment?

use std::sync::OnceLock;

use busbound_trace::hash::HashMap;

use super::{Graph, WorkId};
use crate::Time;
use crate::search::first_after;
use crate::thresholds::FEW_STREAMS;

/// Work in the order of its end, computed when it is first needed.
#[derive(Debug, Clone, Default)]
pub(super) struct Ends(OnceLock<ByEnd>);

#[derive(Debug, Clone)]
struct ByEnd {
    all: Vec<WorkId>,
    of_device: HashMap<i32, Vec<WorkId>>,
}

impl Graph {
    /// The last work on a stream that ended by `end` and satisfies `wanted`; searches at most `depth` back.
    fn last_ended_on(
        &self,
        stream: usize,
        end: Time,
        depth: usize,
        wanted: impl Fn(WorkId) -> bool,
    ) -> Option<WorkId> {
        let order = &self.streams[stream].work;
        let upto = first_after(order, |work| self.work[work].start <= end);
        let ended = |work: &WorkId| self.work[*work].end <= end && wanted(*work);
        (order.start..upto).rev().take(depth).find(ended)
    }

    /// The same on all streams of one device, or of all devices.
    pub fn last_ended(
        &self,
        device: Option<i32>,
        end: Time,
        depth: usize,
        wanted: impl Fn(WorkId) -> bool,
    ) -> Option<WorkId> {
        if self.streams.len() <= FEW_STREAMS {
            let ended =
                self.streams_of(device).filter_map(|stream| self.last_ended_on(stream, end, depth, &wanted));
            return ended.max_by_key(|work| (self.work[*work].end, *work));
        }
        let ByEnd { all, of_device } = self.ends.0.get_or_init(|| self.by_end());
        let order = device.map_or(Some(all), |device| of_device.get(&device))?;
        let upto = order.partition_point(|work| self.work[*work].end <= end);
        order[..upto].iter().rev().take(depth).copied().find(|work| wanted(*work))
    }

    /// The last work on a stream that was issued before `issued` and ended by `end`.
    pub fn given_before(&self, stream: usize, issued: Time, end: Time, depth: usize) -> Option<WorkId> {
        self.last_ended_on(stream, end, depth, self.is_issued_before(issued))
    }

    /// Whether work was issued before this moment, as far as is known.
    pub fn is_issued_before(&self, moment: Time) -> impl Fn(WorkId) -> bool {
        move |work| self.issued_at(work).is_none_or(|at| at < moment)
    }

    fn by_end(&self) -> ByEnd {
        let mut all: Vec<WorkId> = (0..self.work.len()).collect();
        all.sort_by_key(|work| (self.work[*work].end, *work));
        let mut of_device: HashMap<i32, Vec<WorkId>> = HashMap::default();
        for work in &all {
            of_device.entry(self.device_of(*work)).or_default().push(*work);
        }
        ByEnd { all, of_device }
    }
}
