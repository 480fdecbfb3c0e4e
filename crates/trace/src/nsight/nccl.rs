//! What did each collective exchange? From the calls of NCCL, whose NVTX ranges have payloads.
//!
//! A call launches its kernel within its own range. Between `ncclGroupStart` and `ncclGroupEnd`, calls are only collected, and the range of the
//! last `ncclGroupEnd` launches one kernel for all of them. So that range gets the sum of their messages if they are alike.

use super::identity::{GlobalId, Process};
use super::payload::Payload;
use crate::hash::{HashMap, HashSet};
use crate::interval::Interval;
use crate::model::collective::Collective;
use crate::model::names::{NameId, Names};

/// What a range of NCCL's domain is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    GroupStart,
    GroupEnd,
    /// A new communicator, from which its calls are counted.
    Creation,
    Operation(Operation),
    /// Some of these say how many ranks a communicator has.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    Reduce,
    Gather,
    Scatter,
    Send,
    Recv,
    /// Sends and receives of one group.
    SendRecv,
}

impl CallKind {
    /// By the name of the function. `None` for ranges of others.
    pub(super) fn of(name: &str) -> Option<Self> {
        use Operation::{
            AllGather, AllReduce, AllToAll, Broadcast, Gather, Recv, Reduce, ReduceScatter, Scatter, Send,
        };
        // Not `CommInitAll`: then one process has several ranks, whose calls look the same.
        const CREATIONS: [&str; 4] = ["CommInitRank", "CommSplit", "CommShrink", "CommGrow"];
        // `ReduceScatter` before `Reduce`; newer versions have more functions of each kind, such as `ncclAllReduceConfig`.
        const OPERATIONS: [(&str, Operation); 10] = [
            ("AllReduce", AllReduce),
            ("AllGather", AllGather),
            ("ReduceScatter", ReduceScatter),
            ("AlltoAll", AllToAll),
            ("Broadcast", Broadcast),
            ("Reduce", Reduce),
            ("Gather", Gather),
            ("Scatter", Scatter),
            ("Send", Send),
            ("Recv", Recv),
        ];
        let name = name.strip_prefix("nccl")?;
        let operation = OPERATIONS.iter().find(|(start, _)| name.starts_with(start));
        Some(match operation {
            Some((_, operation)) => Self::Operation(*operation),
            None if name == "GroupStart" => Self::GroupStart,
            None if name == "GroupEnd" => Self::GroupEnd,
            None if CREATIONS.iter().any(|start| name.starts_with(start)) => Self::Creation,
            None => Self::Other,
        })
    }
}

impl Operation {
    /// As PyTorch names it.
    fn name(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::AllGather => "all_gather",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllToAll => "all_to_all",
            Self::Broadcast => "broadcast",
            Self::Reduce => "reduce",
            Self::Gather => "gather",
            Self::Scatter => "scatter",
            Self::Send => "send",
            Self::Recv => "recv",
            Self::SendRecv => "send_recv",
        }
    }

    /// Whether every rank of the communicator makes the same calls in the same order.
    fn is_collective(self) -> bool {
        !matches!(self, Self::Send | Self::Recv | Self::SendRecv)
    }

    /// What the rank passes in and gets back, if NCCL counts so many bytes. It counts one message: of an all-gather what one rank
    /// contributes, of a reduce-scatter what one rank gets, of an all-to-all what goes to one peer.
    fn buffers(self, bytes: u64, ranks: Option<u32>) -> (Option<u64>, Option<u64>) {
        let of_all = ranks.and_then(|ranks| bytes.checked_mul(ranks.into()));
        match self {
            Self::AllReduce | Self::Broadcast | Self::Reduce | Self::SendRecv => (Some(bytes), Some(bytes)),
            Self::AllGather | Self::Gather => (Some(bytes), of_all),
            Self::ReduceScatter | Self::Scatter => (of_all, Some(bytes)),
            Self::AllToAll => (of_all, of_all),
            Self::Send => (Some(bytes), None),
            Self::Recv => (None, Some(bytes)),
        }
    }
}

/// `ncclRedOp_t`; higher numbers are those of the program.
const REDUCTIONS: [&str; 5] = ["sum", "prod", "max", "min", "avg"];

/// A range of NCCL's domain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// The row of its event.
    pub(super) event: usize,
    pub(super) thread: GlobalId,
    pub(super) time: Interval,
    pub(super) kind: CallKind,
    pub(super) payload: Payload,
}

/// A call with what is known of it after all calls were read.
#[derive(Debug, Clone, Copy)]
struct Message {
    operation: Operation,
    payload: Payload,
    bytes_in: Option<u64>,
    bytes_out: Option<u64>,
    sequence: Option<u64>,
}

/// The messages of the ranges that launch kernels: the event, and what its kernel exchanges.
pub(super) fn messages(mut calls: Vec<Call>, names: &mut Names) -> Vec<(usize, Collective)> {
    let sizes = sizes(&calls);
    calls.sort_by_key(|call| (call.time.start, call.event));
    let numbers = numbers(&calls);
    let message = |(call, number): (&Call, Option<u64>)| {
        let CallKind::Operation(operation) = call.kind else { return None };
        let ranks = call.payload.communicator.and_then(|one| sizes.get(&one).copied().flatten());
        let payload = Payload { ranks, ..call.payload };
        let (bytes_in, bytes_out) = operation.buffers(payload.bytes?, ranks);
        Some(Message { operation, payload, bytes_in, bytes_out, sequence: number })
    };
    let known: Vec<Option<Message>> = calls.iter().zip(numbers).map(message).collect();
    let mut of_thread: Vec<usize> = (0..calls.len()).collect();
    of_thread.sort_by_key(|&at| calls[at].thread);
    let mut found = Vec::new();
    for thread in of_thread.chunk_by(|&a, &b| calls[a].thread == calls[b].thread) {
        launches(thread.iter().map(|&at| (&calls[at], known[at])), &mut found);
    }
    found.into_iter().map(|(event, message)| (event, message.collective(names))).collect()
}

/// How many ranks each communicator has. `None` if there are two answers.
fn sizes(calls: &[Call]) -> HashMap<u64, Option<u32>> {
    let mut sizes = HashMap::default();
    for call in calls {
        if let (Some(communicator), Some(ranks)) = (call.payload.communicator, call.payload.ranks) {
            let known = sizes.entry(communicator).or_insert(Some(ranks));
            *known = known.filter(|known| *known == ranks);
        }
    }
    sizes
}

/// The number of each collective within its communicator, which is the same on all ranks: only if the communicator's creation was
/// recorded, once, so that none is missing and the process is one of its ranks.
fn numbers(calls: &[Call]) -> Vec<Option<u64>> {
    let mut next: HashMap<(Process, u64), Option<u64>> = HashMap::default();
    let number = |call: &Call| {
        let key = (call.thread.process(), call.payload.communicator?);
        match call.kind {
            CallKind::Creation => {
                next.entry(key).and_modify(|number| *number = None).or_insert(Some(0));
                None
            }
            CallKind::Operation(operation) if operation.is_collective() => {
                let number = next.get_mut(&key)?.as_mut()?;
                *number += 1;
                Some(*number - 1)
            }
            _ => None,
        }
    };
    calls.iter().map(number).collect()
}

/// The ranges of one thread, in time order, that launch what a message describes.
fn launches<'a>(calls: impl Iterator<Item = (&'a Call, Option<Message>)>, found: &mut Vec<(usize, Message)>) {
    let (mut depth, mut group) = (0_u32, Vec::new());
    for (call, message) in calls {
        match call.kind {
            CallKind::GroupStart => depth += 1,
            CallKind::GroupEnd if depth == 1 => {
                depth = 0;
                let of_group = std::mem::take(&mut group);
                found.extend(together(&of_group).map(|message| (call.event, message)));
            }
            CallKind::GroupEnd => depth = depth.saturating_sub(1),
            CallKind::Operation(_) if depth > 0 => group.push(message),
            CallKind::Operation(_) => found.extend(message.map(|message| (call.event, message))),
            CallKind::Creation | CallKind::Other => {}
        }
    }
}

/// The calls of one group as one message: those of one communicator, with the same operation, or sends and receives.
fn together(group: &[Option<Message>]) -> Option<Message> {
    let all: Vec<Message> = group.iter().copied().collect::<Option<_>>()?;
    let (&first, rest) = all.split_first()?;
    if rest.is_empty() {
        return Some(first);
    }
    let is_point_to_point = all.iter().all(|one| !one.operation.is_collective());
    let about = |one: &Message| {
        let Payload { communicator, reduction, root, .. } = one.payload;
        (communicator, (!is_point_to_point).then_some((one.operation, reduction, root)))
    };
    if rest.iter().any(|one| about(one) != about(&first)) {
        return None;
    }
    let operation = match is_point_to_point {
        true if reaches_all(&all) => Operation::AllToAll,
        true => Operation::SendRecv,
        false => first.operation,
    };
    let sum = |of: fn(&Message) -> Option<u64>| {
        let mut known = all.iter().filter_map(of);
        let first = known.next()?;
        known.try_fold(first, u64::checked_add)
    };
    Some(Message {
        operation,
        payload: Payload { peer: None, ..first.payload },
        bytes_in: sum(|one| one.bytes_in),
        bytes_out: sum(|one| one.bytes_out),
        sequence: first.sequence,
    })
}

/// Whether a group sends every rank a message and gets one from each, also from itself: that is how all-to-all is made of them.
fn reaches_all(group: &[Message]) -> bool {
    let peers = |of: Operation| {
        let calls = group.iter().filter(move |one| one.operation == of);
        let peers: HashSet<u32> = calls.clone().filter_map(|one| one.payload.peer).collect();
        (peers.len() == calls.count()).then_some(peers.len())
    };
    let ranks = group[0].payload.ranks.map(|ranks| ranks as usize);
    ranks.is_some() && peers(Operation::Send) == ranks && peers(Operation::Recv) == ranks
}

impl Message {
    fn collective(&self, names: &mut Names) -> Collective {
        let Payload { communicator, ranks, root, peer, reduction, .. } = self.payload;
        let reduction = reduction.and_then(|number| REDUCTIONS.get(number as usize).copied());
        Collective {
            name: names.intern(self.operation.name()),
            // NCCL says bytes and not their type.
            dtype: NameId::EMPTY,
            element_bytes: Some(1),
            group: communicator.map_or(NameId::EMPTY, |one| names.intern(&format!("{one:#x}"))),
            group_size: ranks,
            sequence: self.sequence,
            elements_in: self.bytes_in,
            elements_out: self.bytes_out,
            reduction: reduction.map_or(NameId::EMPTY, |name| names.intern(name)),
            root,
            peer,
            ..Collective::default()
        }
    }
}
