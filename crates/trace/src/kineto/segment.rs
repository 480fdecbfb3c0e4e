//! Where can a file be split so that its segments can be read in parallel? Before something that looks like an event.
//! A wrong guess is detected when the segments are merged, and only costs time.

use std::io::Read;

use memchr::memrchr;

use crate::kineto::cursor::{begins_event, follows_a_separator};
use crate::kineto::scan::LONGEST_VALUE;
use crate::model::stats::{ImportStats, LossKind};
use crate::reader::read_some;

/// Bytes per segment: small enough to stay in a core's cache from inflating to scanning.
const SEGMENT: usize = 1 << 20;

/// A segment of the JSON text.
#[derive(Debug, Default)]
pub(crate) struct Segment {
    /// Longer than `len` if the buffer is reused.
    buffer: Vec<u8>,
    len: usize,
    /// Where it begins in the JSON text.
    pub(crate) offset: u64,
    pub(crate) last: bool,
}

impl Segment {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// The buffer for reuse, unless it has grown: many large buffers would stay allocated without need.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        if self.buffer.len() > 2 * SEGMENT { Vec::new() } else { self.buffer }
    }

    /// This segment with the unread end of the previous one in front.
    pub(crate) fn preceded_by(self, rest: &[u8]) -> Self {
        let mut buffer = Vec::with_capacity(rest.len() + self.len);
        buffer.extend_from_slice(rest);
        buffer.extend_from_slice(self.bytes());
        Self { len: buffer.len(), buffer, offset: self.offset - rest.len() as u64, last: self.last }
    }
}

/// Splits a stream into segments.
pub(crate) struct Cutter<R> {
    source: R,
    /// Already read, but belongs to the next segment.
    carry: Vec<u8>,
    offset: u64,
    ended: bool,
    pub(crate) stats: ImportStats,
}

impl<R: Read> Cutter<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, carry: Vec::new(), offset: 0, ended: false, stats: ImportStats::default() }
    }

    /// The next segment, in a buffer that may be a reused one; `None` after the last.
    pub(crate) fn next(&mut self, mut buffer: Vec<u8>) -> Option<Segment> {
        if self.ended {
            return None;
        }
        let mut len = self.carry.len();
        // The end of a segment depends only on the bytes, never on the buffer that holds them.
        let mut end = len + SEGMENT;
        if buffer.len() < end {
            buffer.resize(end, 0);
        }
        buffer[..len].copy_from_slice(&self.carry);
        self.carry.clear();
        loop {
            len = self.fill(&mut buffer[..end], len);
            if self.ended {
                break;
            }
            if let Some(cut) = last_event_start(&buffer[..len]) {
                self.carry.extend_from_slice(&buffer[cut..len]);
                len = cut;
                break;
            }
            if len >= LONGEST_VALUE {
                break;
            }
            end = len * 2;
            if buffer.len() < end {
                buffer.resize(end, 0);
            }
        }
        let offset = self.offset;
        self.offset += len as u64;
        Some(Segment { buffer, len, offset, last: self.ended })
    }

    fn fill(&mut self, buffer: &mut [u8], mut len: usize) -> usize {
        while len < buffer.len() {
            match read_some(&mut self.source, &mut buffer[len..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => len += read,
                Err(_) => {
                    self.stats.lose(LossKind::ReadError, self.offset + len as u64, 0);
                    self.ended = true;
                    break;
                }
            }
        }
        len
    }
}

fn last_event_start(bytes: &[u8]) -> Option<usize> {
    let mut end = bytes.len();
    loop {
        let brace = memrchr(b'{', &bytes[..end])?;
        if brace > 0 && begins_event(bytes, brace) && follows_a_separator(bytes, brace) {
            return Some(brace);
        }
        end = brace;
    }
}
