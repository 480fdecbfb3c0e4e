//! On which GPU and stream did it run? CUDA numbers devices and streams per process.

use std::collections::{BTreeMap, BTreeSet};

use super::identity::Process;
use crate::hash::{HashMap, HashSet};
use crate::model::track::Place;

/// Offset between streams that have the same number but different owners.
const NEXT_OWNER: i64 = 100_000;

/// Nsight's "no stream", in 32 bits.
const NO_STREAM: i64 = 0xffff_ffff;

/// The stream number for what concerns a whole device.
const WHOLE_DEVICE: i64 = -1;

/// A stream of one process; each context numbers its streams separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Owner {
    process: Option<Process>,
    context: Option<i64>,
}

#[derive(Debug, Default)]
pub(super) struct Devices {
    /// The GPU of a process' device: the numbers differ if `CUDA_VISIBLE_DEVICES` hides some.
    gpus: HashMap<(i64, i64), i32>,
    streams: HashMap<(i32, i64, Owner), i64>,
    owners: HashMap<(i32, i64), i64>,
    /// Where the work of a context ran. Tables of waits always say device 0.
    of_context: HashMap<Owner, i32>,
    /// Every GPU that the file lists.
    listed: HashSet<i32>,
    users: BTreeMap<i32, Users>,
}

/// Whose work ran on a GPU.
#[derive(Debug, Default)]
struct Users {
    processes: HashSet<Process>,
    /// Some of it does not name its process.
    has_nobodys: bool,
    /// Some of it was attributed to this GPU only by its device number.
    is_guessed: bool,
}

impl Devices {
    pub(super) fn name_gpu(&mut self, process: i64, device: i64, gpu: i32) {
        self.gpus.insert((process, device), gpu);
    }

    pub(super) fn list_gpu(&mut self, gpu: i32) {
        self.listed.insert(gpu);
    }

    /// GPUs whose number may refer to different GPUs in different processes: they have work of more than one process,
    /// and no table maps all of it. `several_call`: work without a process may come from more than one.
    pub(super) fn ambiguous(&self, several_call: bool) -> BTreeSet<i32> {
        if self.listed.len() == 1 {
            return BTreeSet::new();
        }
        let is_ambiguous = |users: &Users| {
            users.is_guessed && (users.processes.len() > 1 || users.has_nobodys && several_call)
        };
        self.users.iter().filter(|(_, users)| is_ambiguous(users)).map(|(gpu, _)| *gpu).collect()
    }

    fn add_user(&mut self, process: Option<Process>, device: Option<i64>, gpu: i32) {
        let is_named =
            process.is_some_and(|process| self.gpus.contains_key(&(process.number(), device.unwrap_or(0))));
        let users = self.users.entry(gpu).or_default();
        users.is_guessed |= !is_named;
        users.has_nobodys |= process.is_none();
        users.processes.extend(process);
    }

    pub(super) fn gpu(&self, process: Option<Process>, device: Option<i64>) -> i32 {
        let device = device.unwrap_or(0);
        let named = process.and_then(|process| self.gpus.get(&(process.number(), device)).copied());
        named.or_else(|| i32::try_from(device).ok()).unwrap_or(0)
    }

    /// The place of device work. If two owners use the same stream number on a GPU, the second owner's stream gets
    /// another number.
    pub(super) fn stream(
        &mut self,
        process: Option<Process>,
        device: Option<i64>,
        context: Option<i64>,
        stream: Option<i64>,
    ) -> Place {
        let gpu = self.gpu(process, device);
        let owner = Owner { process, context };
        if self.of_context.insert(owner, gpu) != Some(gpu) {
            self.add_user(process, device, gpu);
        }
        Place::Stream { device: gpu, stream: self.number(gpu, owner, stream) }
    }

    /// The place of a wait.
    pub(super) fn waiting_stream(
        &mut self,
        process: Option<Process>,
        device: Option<i64>,
        context: Option<i64>,
        stream: Option<i64>,
    ) -> Place {
        let owner = Owner { process, context };
        let gpu = self.of_context.get(&owner).copied().unwrap_or_else(|| self.gpu(process, device));
        Place::Stream { device: gpu, stream: self.number(gpu, owner, stream) }
    }

    pub(super) fn whole(&mut self, process: Option<Process>, device: Option<i64>) -> Place {
        let gpu = self.gpu(process, device);
        self.add_user(process, device, gpu);
        Place::Stream { device: gpu, stream: WHOLE_DEVICE }
    }

    fn number(&mut self, gpu: i32, owner: Owner, stream: Option<i64>) -> i64 {
        let is_stream = |stream: &i64| (0..NO_STREAM).contains(stream);
        let Some(stream) = stream.filter(is_stream) else { return WHOLE_DEVICE };
        let owners = &mut self.owners;
        *self.streams.entry((gpu, stream, owner)).or_insert_with(|| {
            let before = owners.entry((gpu, stream)).or_default();
            let number = stream + NEXT_OWNER * *before;
            *before += 1;
            number
        })
    }
}
