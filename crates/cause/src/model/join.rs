//! How do the models of several ranks run together? As one model in which a collective starts when its last rank has arrived.
//!
//! Each rank gets an operation without length in front of each collective: its arrival. The collective itself waits for the
//! arrivals of all ranks and then takes its transfer time on each.

use std::collections::BTreeMap;

use super::{HostCall, Model, Work};
use crate::Time;
use crate::few::Few;
use crate::graph::{Awaited, HostAction, WorkId, WorkKind};

/// One rank of a job.
#[derive(Debug, Clone, Copy)]
pub struct JoinedRank<'m> {
    pub model: &'m Model,
    /// The collectives that ranks have to arrive at, each with a key that is the same on all ranks.
    pub collectives: &'m [(u64, WorkId)],
}

/// Devices of different ranks get different numbers.
const DEVICES_PER_RANK: i32 = 1 << 16;

impl Model {
    /// One model of all ranks, which all begin at the same time. `transfer` is how long the collective with a key takes once all
    /// have arrived; those without are left as they are.
    pub fn joined(ranks: &[JoinedRank<'_>], transfer: &BTreeMap<u64, Time>) -> Self {
        let latency = ranks.iter().map(|rank| rank.model.latency).min().unwrap_or(0);
        let steps = ranks.iter().map(|rank| rank.model.steps).max().unwrap_or(0);
        let end = ranks.iter().map(|rank| rank.model.end).max().unwrap_or(0);
        let whole_steps = ranks.iter().map(|rank| rank.model.whole_steps).min().unwrap_or(0);
        let mut all = Self { latency, steps, whole_steps, end, ..Self::default() };
        let mut arrivals: BTreeMap<u64, Vec<(WorkId, WorkId)>> = BTreeMap::new();
        for (number, rank) in ranks.iter().enumerate() {
            let work = all.work.len();
            all.append(rank.model, number);
            for (key, id) in rank.collectives.iter().filter(|(key, _)| transfer.contains_key(key)) {
                arrivals
                    .entry(*key)
                    .or_default()
                    .extend(all.split_arrival(work + id).map(|of| (of, work + id)));
            }
        }
        for (key, arrived) in arrivals.iter().filter(|(_, arrived)| arrived.len() > 1) {
            all.meet(arrived, transfer[key]);
        }
        all
    }

    fn append(&mut self, other: &Self, rank: usize) {
        let (calls, work, streams) = (self.calls.len(), self.work.len(), self.streams.len());
        let device = |device: i32| device + DEVICES_PER_RANK * (rank as i32 + 1);
        let action = |action: &HostAction| match action {
            HostAction::Issue(issued) => HostAction::Issue(issued.iter().map(|id| id + work).collect()),
            HostAction::IssueBlocking(id) => HostAction::IssueBlocking(id + work),
            HostAction::Wait { awaited, copy } => HostAction::Wait {
                awaited: match awaited {
                    Awaited::Stream(stream) => Awaited::Stream(stream + streams),
                    Awaited::Device(of) => Awaited::Device(device(*of)),
                    Awaited::Work(id) => Awaited::Work(id + work),
                    Awaited::None => Awaited::None,
                },
                copy: copy.map(|id| id + work),
            },
            HostAction::EndStep => HostAction::EndStep,
            HostAction::Nothing => HostAction::Nothing,
        };
        self.calls.extend(other.calls.iter().map(|call| HostCall {
            action: action(&call.action),
            after: call.after.map(|(id, delay)| (id + calls, delay)),
            after_work: call.after_work.map(|id| id + work),
            ..call.clone()
        }));
        self.threads.extend(other.threads.iter().map(|thread| thread.iter().map(|id| id + calls).collect()));
        self.tracks.extend(&other.tracks);
        self.work.extend(other.work.iter().map(|one| Work {
            stream: one.stream + streams,
            call: one.call.map(|id| id + calls),
            after_call: one.after_call + other.latency - self.latency,
            waits: one.waits.iter().map(|(id, delay)| (id + work, *delay)).collect(),
            ..one.clone()
        }));
        self.streams.extend(other.streams.iter().map(|stream| stream.iter().map(|id| id + work).collect()));
        self.stream_device.extend(other.stream_device.iter().map(|of| device(*of)));
    }

    /// Adds the arrival in front of a collective; `None` if its call issues it in a way that cannot be split.
    fn split_arrival(&mut self, id: WorkId) -> Option<WorkId> {
        if self.work[id].dropped {
            return None;
        }
        let arrival = self.work.len();
        if let Some(call) = self.work[id].call {
            let HostAction::Issue(issued) = &mut self.calls[call].action else { return None };
            let at = issued.iter().position(|other| *other == id)?;
            issued.push(arrival);
            issued[at..].rotate_right(1);
        }
        let stream = self.work[id].stream;
        let at = self.streams[stream].iter().position(|other| *other == id)?;
        self.streams[stream].insert(at, arrival);
        let collective = &mut self.work[id];
        let before = Work { kind: WorkKind::Memset, alone: 0.0, ..collective.clone() };
        collective.after_work = 0;
        collective.waits = Few::default();
        self.work.push(before);
        Some(arrival)
    }

    /// Lets the collectives of these arrivals start together.
    fn meet(&mut self, arrived: &[(WorkId, WorkId)], transfer: Time) {
        let meeting = self.work.len();
        let stream = self.streams.len();
        let Some(first) = arrived.first().map(|(_, id)| self.work[*id].clone()) else { return };
        self.streams.push(vec![meeting]);
        self.stream_device.push(-1);
        self.work.push(Work {
            kind: WorkKind::Memset,
            stream,
            call: None,
            alone: 0.0,
            after_call: 0,
            after_work: 0,
            waits: arrived.iter().map(|(arrival, _)| (*arrival, 0)).collect(),
            ..first
        });
        for (_, id) in arrived {
            self.work[*id].waits.push((meeting, 0));
            self.work[*id].alone = transfer as f64;
        }
    }
}
