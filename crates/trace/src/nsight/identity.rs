//! Whose event is it? Processes and threads in Nsight's numbering, and correlations that are unique per process.

use crate::hash::{HashMap, HashSet};
use crate::model::track::{Label, Place};

/// Nsight's serialized id: 8 bits of hardware, 8 of virtual machine, 24 of process, 24 of thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GlobalId(u64);

/// A process, distinct from processes with the same number on other machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Process(u64);

impl GlobalId {
    pub(super) fn of(raw: i64) -> Self {
        Self(raw.cast_unsigned())
    }

    pub(super) fn process(self) -> Process {
        Process(self.0 >> 24)
    }

    fn thread(self) -> i64 {
        (self.0 & 0xff_ffff).cast_signed()
    }
}

impl Process {
    pub(super) fn number(self) -> i64 {
        (self.0 & 0xff_ffff).cast_signed()
    }
}

/// The processes seen so far.
#[derive(Debug, Default)]
pub(super) struct Processes {
    ordinals: HashMap<Process, u64>,
    labels: HashMap<Process, Label>,
    numbers: HashSet<i64>,
    /// The process of the last correlation: most rows are of the same one.
    last: Option<(Process, u64)>,
}

impl Processes {
    /// The process by its number, or by its full id if another machine has a process with that number.
    pub(super) fn label(&mut self, process: Process) -> Label {
        let Self { labels, numbers, .. } = self;
        *labels.entry(process).or_insert_with(|| {
            let is_first = numbers.insert(process.number());
            Label::Number(if is_first { process.number() } else { process.0.cast_signed() })
        })
    }

    pub(super) fn thread(&mut self, id: GlobalId) -> Place {
        Place::Thread { process: self.label(id.process()), thread: Label::Number(id.thread()) }
    }

    /// The correlation of one process as a number that no other process uses. Those of the first process stay
    /// unchanged.
    pub(super) fn correlation(&mut self, process: Process, id: Option<i64>) -> Option<u64> {
        let id = id.and_then(|id| u32::try_from(id).ok())?;
        let ordinal = match self.last.filter(|(last, _)| *last == process) {
            Some((_, ordinal)) => ordinal,
            None => {
                let next = self.ordinals.len() as u64;
                *self.ordinals.entry(process).or_insert(next)
            }
        };
        self.last = Some((process, ordinal));
        Some(ordinal << 32 | u64::from(id))
    }
}

/// Who made the call of each correlation, for tables of device work that do not name the process.
#[derive(Debug, Default)]
pub(super) struct Callers {
    sole: Option<Process>,
    several: bool,
    /// `None` if several processes use the number: then the caller is ambiguous.
    by_correlation: HashMap<i64, Option<Process>>,
}

impl Callers {
    pub(super) fn add(&mut self, process: Process, correlation: i64) {
        self.several |= self.sole.is_some_and(|sole| sole != process);
        self.sole.get_or_insert(process);
        let caller = self.by_correlation.entry(correlation).or_insert(Some(process));
        if *caller != Some(process) {
            *caller = None;
        }
    }

    /// Whether more than one process made calls.
    pub(super) fn are_several(&self) -> bool {
        self.several
    }

    pub(super) fn of(&self, correlation: Option<i64>) -> Option<Process> {
        if !self.several {
            return self.sole;
        }
        *self.by_correlation.get(&correlation?)?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_machine_process_and_thread() {
        let id = GlobalId::of(281_486_150_337_178);
        assert_eq!((id.process().number(), id.thread()), (666, 666));
        assert_eq!(id.process(), GlobalId::of(281_486_150_336_512).process());
        assert_ne!(id.process(), GlobalId::of(666 << 24).process());
    }

    #[test]
    fn the_same_correlation_in_two_processes_is_two() {
        let (first, second) = (Process(7), Process(8));
        let mut processes = Processes::default();
        assert_eq!(processes.correlation(first, Some(41)), Some(41));
        assert_eq!(processes.correlation(second, Some(41)), Some(1 << 32 | 41));
        assert_eq!(processes.correlation(second, None), None);
    }

    #[test]
    fn work_without_a_process_is_joined_if_only_one_can_be_the_caller() {
        let mut callers = Callers::default();
        callers.add(Process(7), 1);
        assert_eq!(callers.of(None), Some(Process(7)));
        callers.add(Process(8), 1);
        callers.add(Process(8), 2);
        assert_eq!((callers.of(Some(1)), callers.of(Some(2))), (None, Some(Process(8))));
    }
}
