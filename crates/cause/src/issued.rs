//! What has been issued to each stream, and what a wait waits for: for what was issued last. Neither costs more with more streams.

use busbound_trace::hash::HashMap;

use crate::Time;
use crate::graph::{Awaited, CallId, HostAction, WorkId};
use crate::model::Model;
use crate::thresholds::AFTER_IDLE;

/// What was issued last to each stream, while a simulation runs.
#[derive(Debug)]
pub(crate) struct Issued {
    last: Vec<Option<WorkId>>,
    /// Per stream: its device, counted from 0.
    devices: Vec<usize>,
    numbers: HashMap<i32, usize>,
    /// Per device: its streams with work that may not be done.
    open: Vec<Vec<usize>>,
    is_open: Vec<bool>,
}

impl Issued {
    pub(crate) fn new(model: &Model) -> Self {
        let all = model.devices();
        let numbers: HashMap<i32, usize> = all.iter().copied().zip(0..).collect();
        Self {
            last: vec![None; model.streams.len()],
            devices: model.stream_device.iter().map(|device| numbers[device]).collect(),
            open: vec![Vec::new(); all.len()],
            numbers,
            is_open: vec![false; model.streams.len()],
        }
    }

    /// The device of a stream, counted from 0.
    pub(crate) fn device_of(&self, stream: usize) -> usize {
        self.devices[stream]
    }

    /// How many devices there are.
    pub(crate) fn devices(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn add(&mut self, stream: usize, work: WorkId) {
        self.last[stream] = Some(work);
        if !self.is_open[stream] {
            self.is_open[stream] = true;
            self.open[self.devices[stream]].push(stream);
        }
    }

    /// The work that a wait that begins now waits for.
    pub(crate) fn awaited(&mut self, on: Awaited, done: impl Fn(WorkId) -> bool) -> Vec<WorkId> {
        let is_left = |work: &WorkId| !done(*work);
        match on {
            Awaited::None => Vec::new(),
            Awaited::Work(work) => vec![work],
            Awaited::Stream(stream) => self.last[stream].into_iter().filter(is_left).collect(),
            Awaited::Device(device) => {
                let Some(number) = self.numbers.get(&device) else { return Vec::new() };
                let (last, is_open) = (&self.last, &mut self.is_open);
                self.open[*number].retain(|stream| {
                    is_open[*stream] = last[*stream].as_ref().is_some_and(is_left);
                    is_open[*stream]
                });
                self.open[*number].iter().filter_map(|stream| last[*stream]).collect()
            }
        }
    }
}

/// Per call: the work that it waits for. A wait for a device names only what no earlier wait of its thread has waited for; earlier
/// waits that are `avoidable` count only for others that are, so that the rest still holds without them.
pub(crate) fn awaited_work(model: &Model, avoidable: &[bool]) -> Vec<Vec<WorkId>> {
    let mut order: Vec<CallId> = (0..model.calls.len()).collect();
    order.sort_by_key(|call| (model.calls[*call].start, *call));
    let mut log = Log::new(model);
    let mut awaited = vec![Vec::new(); model.calls.len()];
    for call in order {
        match &model.calls[call].action {
            HostAction::Issue(issued) => issued.iter().for_each(|work| log.add(*work)),
            HostAction::IssueBlocking(work) => {
                log.add(*work);
                awaited[call].push(*work);
            }
            HostAction::Wait { awaited: on, .. } => awaited[call] = log.awaited(call, *on, avoidable[call]),
            HostAction::EndStep | HostAction::Nothing => {}
        }
    }
    awaited
}

/// How far a thread has waited for what was issued to a device.
#[derive(Debug, Default)]
struct Cursor {
    read: usize,
    /// What ended after the wait, by the clock.
    left: Vec<WorkId>,
}

/// Everything that was issued, per device and in order.
struct Log<'m> {
    model: &'m Model,
    last: Vec<Option<WorkId>>,
    issued: HashMap<i32, Vec<WorkId>>,
    /// Per call: its thread.
    threads: Vec<u32>,
    /// Per thread and device: how far its waits have come, all and without the avoidable ones.
    cursors: HashMap<(u32, i32), [Cursor; 2]>,
}

impl<'m> Log<'m> {
    fn new(model: &'m Model) -> Self {
        let mut threads = vec![0; model.calls.len()];
        for (thread, calls) in (0..).zip(&model.threads) {
            calls.iter().for_each(|call| threads[*call] = thread);
        }
        let last = vec![None; model.streams.len()];
        Self { model, last, issued: HashMap::default(), threads, cursors: HashMap::default() }
    }

    fn add(&mut self, work: WorkId) {
        let stream = self.model.work[work].stream;
        self.last[stream] = Some(work);
        self.issued.entry(self.model.stream_device[stream]).or_default().push(work);
    }

    fn awaited(&mut self, call: CallId, on: Awaited, is_avoidable: bool) -> Vec<WorkId> {
        // Clocks of host and device differ slightly; a call that returned did not wait for later work.
        let returned = self.model.calls[call].end + AFTER_IDLE;
        let ended = |work: &WorkId| self.model.work[*work].end <= returned;
        match on {
            Awaited::None => Vec::new(),
            Awaited::Work(work) => Some(work).into_iter().filter(ended).collect(),
            Awaited::Stream(stream) => self.last[stream].into_iter().filter(ended).collect(),
            Awaited::Device(device) => self.awaited_on(call, device, returned, is_avoidable),
        }
    }

    fn awaited_on(&mut self, call: CallId, device: i32, returned: Time, is_avoidable: bool) -> Vec<WorkId> {
        let Some(issued) = self.issued.get(&device) else { return Vec::new() };
        let [all, kept] = self.cursors.entry((self.threads[call], device)).or_default();
        let is_last = |work: &WorkId| self.last[self.model.work[*work].stream] == Some(*work);
        let read = |cursor: &mut Cursor| {
            let open = std::mem::take(&mut cursor.left).into_iter();
            let open = open.chain(issued[cursor.read..].iter().copied()).filter(is_last);
            let (ended, left) = open.partition(|work| self.model.work[*work].end <= returned);
            *cursor = Cursor { read: issued.len(), left };
            ended
        };
        let since_any: Vec<WorkId> = read(all);
        if is_avoidable { since_any } else { read(kept) }
    }
}
