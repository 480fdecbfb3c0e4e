//! The event table: one column per fact, one row per event.
//!
//! Facts that only some kinds have (bytes of a copy, geometry of a launch) are in separate tables, found through the
//! `detail` column.

use std::num::NonZeroU32;

use crate::hash::HashMap;
use crate::model::collective::Collective;
use crate::model::column::{Absent as _, Durations, Ids, Numbers, SmallNumbers, Trailing};
use crate::model::copy_operator::CopyOperator;
use crate::model::kind::EventKind;
use crate::model::launch::Launch;
use crate::model::managed::{Faults, Migration};
use crate::model::names::NameId;
use crate::model::size::Bytes;
use crate::model::sync::Synchronization;
use crate::model::time::{Nanos, Timestamp};
use crate::model::track::TrackId;
use crate::model::transfer::Transfer;

/// The id of an event: its row in the table, in file order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(
    /// One more than the row, so that an optional id takes no more memory than an id.
    NonZeroU32,
);

const _: () = assert!(size_of::<Option<EventId>>() == 4);

impl EventId {
    pub(crate) const MAX: usize = u32::MAX as usize - 1;

    /// Of a row up to `MAX`; all later rows have the same id, so readers stop there.
    pub(crate) fn of_row(row: usize) -> Self {
        let row = u32::try_from(row).unwrap_or(u32::MAX);
        Self(NonZeroU32::MIN.saturating_add(row))
    }

    #[inline]
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// The id of the same event after this many others.
    fn after(self, rows: usize) -> Self {
        Self::of_row(self.index() + rows)
    }
}

/// One event before it is added to the columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) kind: EventKind,
    pub(crate) name: NameId,
    pub(crate) track: TrackId,
    pub(crate) start: Timestamp,
    pub(crate) duration: Nanos,
    pub(crate) correlation: Option<u64>,
    pub(crate) external: Option<u64>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Events {
    pub(crate) kind: Vec<EventKind>,
    name: Numbers,
    track: SmallNumbers,
    pub(crate) start: Vec<Timestamp>,
    pub(crate) duration: Durations,
    pub(crate) correlation: Ids,
    external: Ids,
    detail: Trailing<u32>,
    transfers: Vec<Transfer>,
    /// Each one once: programs launch the same kernels again and again.
    launches: Vec<Launch>,
    launch_rows: HashMap<Launch, u32>,
    syncs: Vec<Synchronization>,
    copy_operators: Vec<CopyOperator>,
    /// Sparse, ordered by event: both operators and kernels may have one in addition to their own detail.
    collectives: Vec<(EventId, Collective)>,
    /// Also sparse: few programs use managed memory.
    migrations: Vec<(EventId, Migration)>,
    faults: Vec<(EventId, Faults)>,
    /// Also sparse: only of large operands.
    operand_bytes: Vec<(EventId, Bytes)>,
}

impl Events {
    pub(crate) fn len(&self) -> usize {
        self.kind.len()
    }

    pub(crate) fn reserve(&mut self, rows: usize) {
        self.kind.reserve_exact(rows);
        self.name.reserve(rows);
        self.track.reserve(rows);
        self.start.reserve_exact(rows);
        self.duration.reserve(rows);
    }

    /// Makes room for what only the first of all events have.
    pub(crate) fn reserve_ids(&mut self, rows: usize) {
        self.correlation.reserve(rows);
        self.detail.reserve(rows);
    }

    #[inline]
    pub(crate) fn name(&self, row: usize) -> NameId {
        NameId::of_number(self.name.get(row))
    }

    #[inline]
    pub(crate) fn track(&self, row: usize) -> TrackId {
        TrackId::of_number(self.track.get(row))
    }

    pub(crate) fn rename(&mut self, row: usize, name: NameId) {
        self.name.set(row, name.number());
    }

    pub(crate) fn push(&mut self, row: Row) {
        self.kind.push(row.kind);
        self.name.push(row.name.number());
        self.track.push(row.track.number());
        self.start.push(row.start);
        self.duration.push(row.duration);
        // The columns of ids end before this event: there is nothing to set for none.
        if row.correlation.is_some() {
            self.set_correlation(row.correlation);
        }
        if row.external.is_some() {
            self.set_external(row.external);
        }
    }

    // The setters below apply to the event pushed last.

    pub(crate) fn set_external(&mut self, id: Option<u64>) {
        self.external.set(self.last().index(), id);
    }

    pub(crate) fn set_correlation(&mut self, id: Option<u64>) {
        self.correlation.set(self.last().index(), id);
    }

    pub(crate) fn set_transfer(&mut self, transfer: Transfer) {
        self.transfers.push(transfer);
        self.point_detail_at(self.transfers.len());
    }

    pub(crate) fn set_launch(&mut self, launch: Launch) {
        let row = self.launch_row(launch);
        self.detail.set(self.last().index(), Some(row));
    }

    fn launch_row(&mut self, launch: Launch) -> u32 {
        *self.launch_rows.entry(launch).or_insert_with(|| {
            self.launches.push(launch);
            u32::try_from(self.launches.len() - 1).unwrap_or(u32::ABSENT)
        })
    }

    pub(crate) fn set_sync(&mut self, sync: Synchronization) {
        self.syncs.push(sync);
        self.point_detail_at(self.syncs.len());
    }

    pub(crate) fn set_copy_operator(&mut self, operator: CopyOperator) {
        self.copy_operators.push(operator);
        self.point_detail_at(self.copy_operators.len());
    }

    pub(crate) fn set_collective(&mut self, collective: Collective) {
        self.collectives.push((self.last(), collective));
    }

    /// Of events that may be anywhere, none of which has one yet.
    pub(crate) fn set_collectives(&mut self, of_rows: Vec<(usize, Collective)>) {
        self.collectives
            .extend(of_rows.into_iter().map(|(row, collective)| (EventId::of_row(row), collective)));
        self.collectives.sort_by_key(|(event, _)| *event);
    }

    pub(crate) fn set_migration(&mut self, migration: Migration) {
        self.migrations.push((self.last(), migration));
    }

    pub(crate) fn set_faults(&mut self, faults: Faults) {
        self.faults.push((self.last(), faults));
    }

    pub(crate) fn set_operand_bytes(&mut self, bytes: Bytes) {
        self.operand_bytes.push((self.last(), bytes));
    }

    pub(crate) fn last(&self) -> EventId {
        EventId::of_row(self.len().saturating_sub(1))
    }

    fn point_detail_at(&mut self, rows: usize) {
        self.detail.set(self.last().index(), u32::try_from(rows - 1).ok());
    }

    fn detail<'a, T>(&self, id: EventId, table: &'a [T]) -> Option<&'a T> {
        table.get(self.detail.get(id.index())? as usize)
    }

    pub(crate) fn external(&self, id: EventId) -> Option<u64> {
        self.external.get(id.index())
    }

    pub(crate) fn transfer(&self, id: EventId) -> Option<&Transfer> {
        matches!(self.kind[id.index()], EventKind::Copy | EventKind::Memset)
            .then(|| self.detail(id, &self.transfers))
            .flatten()
    }

    pub(crate) fn launch(&self, id: EventId) -> Option<&Launch> {
        (self.kind[id.index()] == EventKind::Kernel).then(|| self.detail(id, &self.launches)).flatten()
    }

    pub(crate) fn sync(&self, id: EventId) -> Option<&Synchronization> {
        (self.kind[id.index()] == EventKind::Synchronization).then(|| self.detail(id, &self.syncs)).flatten()
    }

    pub(crate) fn copy_operator(&self, id: EventId) -> Option<&CopyOperator> {
        (self.kind[id.index()] == EventKind::Operator)
            .then(|| self.detail(id, &self.copy_operators))
            .flatten()
    }

    pub(crate) fn collective(&self, id: EventId) -> Option<&Collective> {
        sparse(&self.collectives, id)
    }

    pub(crate) fn migration(&self, id: EventId) -> Option<&Migration> {
        sparse(&self.migrations, id)
    }

    pub(crate) fn faults(&self, id: EventId) -> Option<&Faults> {
        sparse(&self.faults, id)
    }

    pub(crate) fn has_operand_bytes(&self) -> bool {
        !self.operand_bytes.is_empty()
    }

    pub(crate) fn operand_bytes(&self, id: EventId) -> Option<Bytes> {
        sparse(&self.operand_bytes, id).copied()
    }

    /// Appends another table, with its names and tracks renumbered.
    pub(crate) fn append(&mut self, other: &Self, names: &[NameId], tracks: &[TrackId]) {
        let rows = self.len();
        let base = |rows: usize| u32::try_from(rows).unwrap_or(u32::MAX);
        let launches: Vec<u32> = other.launches.iter().map(|launch| self.launch_row(*launch)).collect();
        let transfers = base(self.transfers.len());
        let (syncs, copies) = (base(self.syncs.len()), base(self.copy_operators.len()));
        let name = |id: NameId| names[id.index()];

        self.external.append(rows, &other.external);
        self.kind.extend_from_slice(&other.kind);
        self.name.extend(other.name.iter().map(|id| names[id as usize].number()));
        self.track.extend(other.track.iter().map(|id| tracks[id as usize].number()));
        self.start.extend_from_slice(&other.start);
        self.duration.append(&other.duration);
        self.correlation.append(rows, &other.correlation);
        let details = other.kind.iter().zip(other.detail.as_slice());
        self.detail.append(
            rows,
            details.map(|(kind, &detail)| match kind {
                _ if detail == u32::ABSENT => detail,
                EventKind::Copy | EventKind::Memset => detail + transfers,
                EventKind::Kernel => launches[detail as usize],
                EventKind::Synchronization => detail + syncs,
                _ => detail + copies,
            }),
        );
        self.transfers.extend_from_slice(&other.transfers);
        self.syncs.extend_from_slice(&other.syncs);
        self.copy_operators.extend(other.copy_operators.iter().map(|op| CopyOperator {
            shape: name(op.shape),
            src_dtype: name(op.src_dtype),
            dst_dtype: name(op.dst_dtype),
            ..*op
        }));
        self.collectives
            .extend(other.collectives.iter().map(|&(event, c)| (event.after(rows), c.with_names(name))));
        fn shifted<T: Copy>(sparse: &[(EventId, T)], rows: usize) -> impl Iterator<Item = (EventId, T)> {
            sparse.iter().map(move |&(event, fact)| (event.after(rows), fact))
        }
        self.migrations.extend(shifted(&other.migrations, rows));
        self.faults.extend(shifted(&other.faults, rows));
        self.operand_bytes.extend(shifted(&other.operand_bytes, rows));
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        fn of<T>(column: &Vec<T>) -> usize {
            column.capacity() * size_of::<T>()
        }
        of(&self.kind)
            + self.name.heap_bytes()
            + self.track.heap_bytes()
            + of(&self.start)
            + self.duration.heap_bytes()
            + self.correlation.heap_bytes()
            + self.external.heap_bytes()
            + self.detail.heap_bytes()
            + of(&self.transfers)
            + of(&self.launches)
            + self.launch_rows.capacity() * (size_of::<(Launch, u32)>() + 1)
            + of(&self.syncs)
            + of(&self.copy_operators)
            + of(&self.collectives)
            + of(&self.migrations)
            + of(&self.faults)
            + of(&self.operand_bytes)
    }

    /// Frees what the columns that grow row by row do not use.
    pub(crate) fn shrink(&mut self) {
        self.correlation.shrink();
        self.external.shrink();
        self.detail.shrink();
        self.transfers.shrink_to_fit();
        self.syncs.shrink_to_fit();
        self.launch_rows = HashMap::default();
    }

    pub(crate) fn clear(&mut self) {
        self.kind.clear();
        self.name.clear();
        self.track.clear();
        self.start.clear();
        self.duration.clear();
        self.correlation.clear();
        self.external.clear();
        self.detail.clear();
        self.transfers.clear();
        self.launches.clear();
        self.launch_rows.clear();
        self.syncs.clear();
        self.copy_operators.clear();
        self.collectives.clear();
        self.migrations.clear();
        self.faults.clear();
        self.operand_bytes.clear();
    }
}

fn sparse<T>(facts: &[(EventId, T)], id: EventId) -> Option<&T> {
    let at = facts.binary_search_by_key(&id, |(event, _)| *event).ok()?;
    Some(&facts[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::builder::TraceBuilder;
    use crate::model::managed::MigrationCause;
    use crate::model::trace::Trace;
    use crate::model::transfer::{MemoryKind, Transfer};

    #[test]
    fn appending_keeps_migrations_and_faults() {
        let migration = Migration { address: Some(0x7f00), cause: MigrationCause::Fault };
        let faults = Faults { address: Some(0x7f00), count: 3 };
        let part = || {
            let mut part = TraceBuilder::default();
            let device = part.stream(0, -1);
            let moved =
                Transfer { dst: MemoryKind::Managed, ..Transfer::host_to_device(MemoryKind::Managed, 4096) };
            part.copy(device, moved, 0..10).migration(migration);
            part.page_fault(device, "GPU page faults", faults, 0..10);
            part.trace
        };
        let (mut all, other) = (part(), part());
        let names: Vec<_> = other.names.iter().map(|text| all.names.intern(text)).collect();
        let tracks: Vec<_> = other.tracks.iter().map(|(_, place)| all.tracks.intern(place)).collect();
        all.events.append(&other.events, &names, &tracks);
        let found: Vec<_> = Trace::from(all)
            .events()
            .map(|event| (event.migration().copied(), event.faults().copied()))
            .collect();
        let (moved, faulted) = ((Some(migration), None), (None, Some(faults)));
        assert_eq!(found, [moved, faulted, moved, faulted]);
    }
}
