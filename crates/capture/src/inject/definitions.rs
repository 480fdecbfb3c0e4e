//! What must come first in every file: facts about the process, names, threads, GPUs. Kept apart from the events, so that a
//! file can begin at any time and events can be forgotten without the names of others.
//!
//! Programs may invent names without end ("step 1", "step 2"). After [`LARGEST`] bytes a new generation begins: names are
//! defined again when they are used again, and the old definitions are kept only as long as events that use them.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::format::{ChunkWriter, Record};

/// Definitions of one generation, in bytes.
const LARGEST: usize = 2 << 20;

/// Definitions as chunks of a file.
#[derive(Default)]
struct Part {
    open: ChunkWriter,
    closed: Vec<Vec<u8>>,
}

impl Part {
    fn bytes(&self) -> usize {
        self.open.len() + self.closed.iter().map(Vec::len).sum::<usize>()
    }
}

/// A GPU, by what is written about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) id: u32,
    pub(super) name: Vec<u8>,
    pub(super) memory: u64,
    pub(super) multiprocessors: u32,
    pub(super) capability: (u32, u32),
}

#[derive(Default)]
pub(super) struct Definitions {
    /// Facts and notes.
    always: Part,
    /// The last one is in use; the first has the number `forgotten`.
    generations: VecDeque<Part>,
    forgotten: u64,
    names: HashMap<Vec<u8>, u32>,
    last_id: u32,
    calls: HashMap<(bool, u32), u32>,
    threads: HashSet<u32>,
    gpus: Vec<Described>,
    /// Closed chunks that [`fresh`](Self::fresh) has not returned yet.
    fresh: Vec<Vec<u8>>,
}

impl Definitions {
    fn current(&mut self) -> &mut ChunkWriter {
        if self.generations.is_empty() {
            self.generations.push_back(Part::default());
        }
        let last = self.generations.len() - 1;
        &mut self.generations[last].open
    }

    pub(super) fn fact(&mut self, key: &[u8], value: &[u8]) {
        self.always.open.add(&Record::Fact { key, value });
    }

    pub(super) fn note(&mut self, text: &str) {
        self.always.open.add(&Record::Note { text: text.as_bytes() });
    }

    pub(super) fn name(&mut self, text: &[u8]) -> u32 {
        if let Some(&id) = self.names.get(text) {
            return id;
        }
        self.last_id = self.last_id.saturating_add(1);
        let id = self.last_id;
        self.current().add(&Record::Name { id, text });
        self.names.insert(text.to_vec(), id);
        id
    }

    /// The name of a call, which `text` gives the first time.
    pub(super) fn call(&mut self, call: (bool, u32), text: impl FnOnce() -> Vec<u8>) -> u32 {
        if let Some(&id) = self.calls.get(&call) {
            return id;
        }
        let id = self.name(&text());
        self.calls.insert(call, id);
        id
    }

    pub(super) fn thread(&mut self, id: u32) {
        if self.threads.insert(id)
            && let Ok(text) = std::fs::read(format!("/proc/self/task/{id}/comm"))
        {
            let name = self.name(text.trim_ascii_end());
            self.current().add(&Record::Thread { id, name });
        }
    }

    pub(super) fn gpu(&mut self, gpu: Described) {
        if !self.gpus.contains(&gpu) {
            self.define_gpu(&gpu);
            self.gpus.push(gpu);
        }
    }

    fn define_gpu(&mut self, gpu: &Described) {
        let name = self.name(&gpu.name);
        let Described { id, memory, multiprocessors, capability, .. } = *gpu;
        self.current().add(&Record::Gpu { id, name, memory, multiprocessors, capability });
    }

    /// The number of the generation in use.
    pub(super) fn generation(&self) -> u64 {
        self.forgotten + self.generations.len().saturating_sub(1) as u64
    }

    pub(super) fn bytes(&self) -> usize {
        self.always.bytes() + self.generations.iter().map(Part::bytes).sum::<usize>()
    }

    /// New definitions since the last call, as chunks: a file that has all before needs only these.
    pub(super) fn fresh(&mut self) -> Vec<Vec<u8>> {
        self.close();
        std::mem::take(&mut self.fresh)
    }

    fn close(&mut self) {
        for part in std::iter::once(&mut self.always).chain(self.generations.back_mut()) {
            if let Some(chunk) = part.open.take() {
                self.fresh.push(chunk.clone());
                part.closed.push(chunk);
            }
        }
    }

    /// Everything that is kept, as chunks.
    pub(super) fn all(&self) -> impl Iterator<Item = &Vec<u8>> {
        std::iter::once(&self.always).chain(&self.generations).flat_map(|part| &part.closed)
    }

    /// Forgets generations before this one, and begins a new one if the last is large. All events so far must have been
    /// cut off: later ones use new names.
    pub(super) fn renew(&mut self, oldest_in_use: Option<u64>) {
        let oldest = oldest_in_use.unwrap_or_else(|| self.generation());
        while self.forgotten < oldest && self.generations.len() > 1 {
            self.generations.pop_front();
            self.forgotten += 1;
        }
        if self.generations.back().is_some_and(|part| part.bytes() > LARGEST) {
            self.close();
            self.names.clear();
            self.calls.clear();
            self.threads.clear();
            self.generations.push_back(Part::default());
            for gpu in self.gpus.clone() {
                self.define_gpu(&gpu);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Chunk, ChunkReader, MAGIC, Records};

    fn names(definitions: &mut Definitions) -> Vec<(u32, String)> {
        definitions.fresh();
        let file: Vec<u8> =
            MAGIC.iter().chain(definitions.all().flat_map(|chunk| chunk.iter())).copied().collect();
        let mut reader = ChunkReader::new(file.as_slice());
        let mut names = Vec::new();
        while let Ok(Some(Chunk::Whole { payload, .. })) = reader.next_chunk() {
            names.extend(Records::of(&payload).filter_map(|record| match record {
                Record::Name { id, text } => Some((id, String::from_utf8_lossy(text).into_owned())),
                _ => None,
            }));
        }
        names
    }

    #[test]
    fn names_without_end_are_bounded_and_those_in_use_are_kept() {
        let mut definitions = Definitions::default();
        definitions.gpu(Described {
            id: 0,
            name: b"H200".to_vec(),
            memory: 1,
            multiprocessors: 132,
            capability: (9, 0),
        });
        let mut number = 0;
        while definitions.generation() == 0 {
            number += 1;
            definitions.name(format!("step {number:0100}").as_bytes());
            definitions.renew(Some(0));
        }
        assert!(definitions.bytes() > LARGEST, "events use the first generation");
        let second = definitions.name(b"gemm");
        assert_eq!(definitions.name(b"gemm"), second);
        definitions.renew(Some(1));
        assert!(definitions.bytes() < LARGEST);
        let left = names(&mut definitions);
        assert_eq!(left, [(second - 1, "H200".to_owned()), (second, "gemm".to_owned())]);
    }

    #[test]
    fn fresh_definitions_are_returned_once() {
        let mut definitions = Definitions::default();
        definitions.fact(b"process", b"7");
        definitions.name(b"gemm");
        assert_eq!(definitions.fresh().len(), 2);
        assert_eq!(definitions.fresh().len(), 0);
        definitions.name(b"copy");
        assert_eq!(definitions.fresh().len(), 1);
        assert_eq!(definitions.all().count(), 3);
    }
}
