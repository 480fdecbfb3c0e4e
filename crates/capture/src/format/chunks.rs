//! Chunks: how records are written as complete units, and how they are found again in a damaged file.

use std::io::{self, Read};

use super::{LONGEST, MAGIC, Record, crc32};

const WORD: &[u8; 4] = b"CHNK";
const HEAD: usize = 12;

/// Collects records into one chunk.
#[derive(Debug, Default)]
pub struct ChunkWriter {
    payload: Vec<u8>,
    before: u64,
}

impl ChunkWriter {
    pub fn add(&mut self, record: &Record<'_>) {
        record.write(&mut self.payload, &mut self.before);
    }

    pub fn len(&self) -> usize {
        self.payload.len()
    }

    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// The bytes of the chunk, to write in one call; `None` if nothing was added.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if self.payload.is_empty() {
            return None;
        }
        self.before = 0;
        let payload = std::mem::take(&mut self.payload);
        let mut chunk = Vec::with_capacity(HEAD + payload.len());
        chunk.extend_from_slice(WORD);
        chunk.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
        chunk.extend_from_slice(&crc32(&payload).to_le_bytes());
        chunk.extend_from_slice(&payload);
        Some(chunk)
    }
}

/// What a file contains, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Chunk {
    /// A payload with a matching checksum.
    Whole { at: u64, payload: Vec<u8> },
    /// Bytes that are not a chunk.
    Damaged(Damage),
    /// The file ends inside a chunk.
    Cut(Damage),
}

/// Where something could not be read, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    pub at: u64,
    pub bytes: u64,
}

/// Reads a file chunk by chunk; after damage it continues at the next intact chunk.
#[derive(Debug)]
pub struct ChunkReader<R> {
    source: R,
    buffer: Vec<u8>,
    /// File offset of the buffer's first byte.
    at: u64,
    ended: bool,
}

impl<R: Read> ChunkReader<R> {
    pub fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), at: 0, ended: false }
    }

    /// At least this many bytes in the buffer, or all that are left.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        while self.buffer.len() < wanted && !self.ended {
            let have = self.buffer.len();
            // Reads what is needed in small parts: a damaged length can be any number.
            self.buffer.resize((have + (1 << 20)).min(wanted.max(have + 4096)), 0);
            let read = loop {
                match self.source.read(&mut self.buffer[have..]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => break other,
                }
            };
            let read = read.inspect_err(|_| self.buffer.truncate(have))?;
            self.buffer.truncate(have + read);
            self.ended = read == 0;
        }
        Ok(self.buffer.len() >= wanted)
    }

    fn pass(&mut self, bytes: usize) {
        self.buffer.drain(..bytes);
        self.at += bytes as u64;
    }

    /// The payload length, if the buffer begins with a chunk header.
    fn length(&self) -> Option<usize> {
        let word = self.buffer.get(..4)?;
        let length = u32::from_le_bytes(self.buffer.get(4..8)?.try_into().ok()?) as usize;
        (word == WORD && length <= LONGEST).then_some(length)
    }

    fn is_whole(&self, length: usize) -> bool {
        let sum = self.buffer.get(8..HEAD).and_then(|sum| sum.try_into().ok()).map(u32::from_le_bytes);
        let payload = self.buffer.get(HEAD..HEAD + length);
        payload.is_some_and(|payload| sum == Some(crc32(payload)))
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// Those of the source.
    pub fn next_chunk(&mut self) -> io::Result<Option<Chunk>> {
        if self.at == 0 && self.fill(MAGIC.len())? && self.buffer.starts_with(MAGIC) {
            self.pass(MAGIC.len());
        }
        let damaged_at = self.at;
        loop {
            if !self.fill(HEAD)? {
                let bytes = self.at - damaged_at + self.buffer.len() as u64;
                self.pass(self.buffer.len());
                return Ok((bytes > 0).then_some(Chunk::Cut(Damage { at: damaged_at, bytes })));
            }
            if let Some(length) = self.length() {
                let is_there = self.fill(HEAD + length)?;
                if self.is_whole(length) {
                    if self.at > damaged_at {
                        let bytes = self.at - damaged_at;
                        return Ok(Some(Chunk::Damaged(Damage { at: damaged_at, bytes })));
                    }
                    let payload = self.buffer[HEAD..HEAD + length].to_vec();
                    let at = self.at;
                    self.pass(HEAD + length);
                    return Ok(Some(Chunk::Whole { at, payload }));
                }
                // Nothing that looks like a chunk follows: the file ends inside this one.
                if !is_there && find(&self.buffer[4..], WORD).is_none() {
                    let bytes = self.at - damaged_at + self.buffer.len() as u64;
                    self.pass(self.buffer.len());
                    return Ok(Some(Chunk::Cut(Damage { at: damaged_at, bytes })));
                }
            }
            // Continue at the next position that looks like a chunk.
            let next = find(&self.buffer[1..], WORD).map_or(self.buffer.len() - 3, |next| next + 1);
            self.pass(next.max(1));
        }
    }
}

fn find(bytes: &[u8], word: &[u8; 4]) -> Option<usize> {
    bytes.windows(4).position(|window| window == word)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::record::{Launch, Stream};
    use super::super::{MAGIC, Records};
    use super::*;

    fn any_record() -> impl Strategy<Value = Record<'static>> {
        let times = (1u64 << 40..1 << 62, 0u64..1 << 40);
        let text = prop::sample::select(vec![&b""[..], b"gemm", b"CHNK", "h\u{e9}".as_bytes(), b"<script>"]);
        let on = (any::<u32>(), any::<u32>()).prop_map(|(device, stream)| Stream { device, stream });
        let ids = (any::<u32>(), any::<u32>());
        prop_oneof![
            (any::<u32>(), text.clone()).prop_map(|(id, text)| Record::Name { id, text }),
            (text.clone(), text.clone()).prop_map(|(key, value)| Record::Fact { key, value }),
            (times.clone(), on.clone(), ids, any::<[u32; 3]>()).prop_map(
                |((start, length), on, (correlation, name), grid)| Record::Kernel {
                    start,
                    end: start + length,
                    on,
                    correlation,
                    name,
                    launch: Launch { grid, block: [1, 2, u32::MAX], registers: 255, shared_memory: 0 },
                }
            ),
            (times.clone(), on.clone(), any::<u64>(), any::<[u8; 4]>()).prop_map(
                |((start, length), on, bytes, [kind, from, to, flags])| Record::Copy {
                    start,
                    end: start + length,
                    on,
                    correlation: 7,
                    bytes,
                    kind,
                    from,
                    to,
                    flags,
                }
            ),
            (times.clone(), ids, any::<bool>()).prop_map(|((start, length), (thread, name), is_driver)| {
                Record::Call {
                    start,
                    end: start + length,
                    thread,
                    correlation: 1,
                    name,
                    is_driver,
                    result: 0,
                }
            }),
            (times.clone(), any::<i64>(), ids).prop_map(|((start, length), stream, (kind, event))| {
                Record::Sync { start, end: start + length, correlation: 3, stream, kind, event }
            }),
            times.clone().prop_map(|(start, length)| Record::KernelsOff { start, end: start + length }),
            (times, ids).prop_map(|((at, _), (id, name))| Record::RangeStart { at, id, thread: 9, name }),
            text.prop_map(|text| Record::Note { text }),
            ids.prop_map(|(correlation, node)| Record::HostNode { correlation, node }),
            (ids, any::<(u64, u64)>(), 0..4u8).prop_map(|((correlation, _), (to, from), stream)| {
                Record::Access { correlation, stream, to, from }
            }),
            ids.prop_map(|(correlation, stream)| Record::OtherWait { correlation, stream }),
            Just(Record::End),
        ]
    }

    fn file(chunks: &[Vec<Record<'_>>]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for records in chunks {
            let mut writer = ChunkWriter::default();
            records.iter().for_each(|record| writer.add(record));
            bytes.extend(writer.take().unwrap_or_default());
        }
        bytes
    }

    /// Every record that can be read, as text, and the bytes that could not.
    fn read(bytes: &[u8]) -> (Vec<String>, u64) {
        let mut reader = ChunkReader::new(bytes);
        let (mut records, mut lost) = (Vec::new(), 0);
        while let Ok(Some(chunk)) = reader.next_chunk() {
            match chunk {
                Chunk::Whole { payload, .. } => {
                    records.extend(Records::of(&payload).map(|record| format!("{record:?}")));
                }
                Chunk::Damaged(damage) | Chunk::Cut(damage) => lost += damage.bytes,
            }
        }
        (records, lost)
    }

    proptest! {
        #[test]
        fn written_records_are_read_back(chunks in prop::collection::vec(prop::collection::vec(any_record(), 1..20), 0..6)) {
            let all: Vec<String> = chunks.iter().flatten().map(|record| format!("{record:?}")).collect();
            prop_assert_eq!(read(&file(&chunks)), (all, 0));
        }

        #[test]
        fn a_cut_file_gives_every_complete_chunk_before_the_cut(
            chunks in prop::collection::vec(prop::collection::vec(any_record(), 1..10), 1..6),
            share in 0.0..1.0f64,
        ) {
            let bytes = file(&chunks);
            let cut = (bytes.len() as f64 * share) as usize;
            let mut whole = 0;
            for number in 0..=chunks.len() {
                if file(&chunks[..number]).len() <= cut {
                    whole = number;
                }
            }
            let wanted: Vec<String> =
                chunks[..whole].iter().flatten().map(|record| format!("{record:?}")).collect();
            let (records, lost) = read(&bytes[..cut]);
            prop_assert_eq!(records, wanted);
            // A part of the file's magic number is not a chunk either.
            let kept = if cut < MAGIC.len() { 0 } else { file(&chunks[..whole]).len() };
            prop_assert_eq!(lost as usize, cut - kept);
        }

        #[test]
        fn a_damaged_byte_loses_at_most_one_chunk(
            chunks in prop::collection::vec(prop::collection::vec(any_record(), 1..10), 2..6),
            at in 8usize..10_000,
            change in 1u8..,
        ) {
            let mut bytes = file(&chunks);
            let at = 8 + (at - 8) % (bytes.len() - 8);
            bytes[at] ^= change;
            let number = (0..chunks.len()).find(|number| file(&chunks[..=*number]).len() > at).unwrap_or(0);
            let wanted: Vec<String> = chunks
                .iter()
                .enumerate()
                .filter(|(i, _)| *i != number)
                .flat_map(|(_, records)| records)
                .map(|record| format!("{record:?}"))
                .collect();
            prop_assert_eq!(read(&bytes).0, wanted);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
            let (_, lost) = read(&bytes);
            prop_assert!(lost as usize <= bytes.len());
            for _ in Records::of(&bytes) {}
        }
    }
}
