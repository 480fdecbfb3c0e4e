//! Where may a file be cut so that its parts can be read side by side? Before something that looks
//! like an event. A wrong guess is found when the parts are laid together, and costs time only.

use std::io::Read;

use memchr::memrchr;

use crate::kineto::cursor::{begins_event, follows_a_separator};
use crate::kineto::scan::LONGEST_VALUE;
use crate::model::stats::{ImportStats, LossKind};
use crate::reader::read_some;

/// Bytes in a stretch: small enough to stay in a core's cache from inflating to scanning.
const STRETCH: usize = 1 << 20;

/// A part of the JSON text.
#[derive(Debug, Default)]
pub(crate) struct Stretch {
    /// Longer than `len` where the buffer is used again.
    buffer: Vec<u8>,
    len: usize,
    /// Where it begins in the JSON text.
    pub(crate) offset: u64,
    pub(crate) last: bool,
}

impl Stretch {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// The buffer for further use, unless it has grown: many large ones would outlive their need.
    pub(crate) fn into_buffer(self) -> Vec<u8> {
        if self.buffer.len() > 2 * STRETCH { Vec::new() } else { self.buffer }
    }

    /// This stretch with the unread end of its predecessor before it.
    pub(crate) fn preceded_by(self, rest: &[u8]) -> Self {
        let mut buffer = Vec::with_capacity(rest.len() + self.len);
        buffer.extend_from_slice(rest);
        buffer.extend_from_slice(self.bytes());
        Self { len: buffer.len(), buffer, offset: self.offset - rest.len() as u64, last: self.last }
    }
}

/// Cuts a stream into stretches.
pub(crate) struct Cutter<R> {
    source: R,
    /// Read already, belongs to the next stretch.
    carry: Vec<u8>,
    offset: u64,
    ended: bool,
    pub(crate) stats: ImportStats,
}

impl<R: Read> Cutter<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, carry: Vec::new(), offset: 0, ended: false, stats: ImportStats::default() }
    }

    /// The next stretch, in a buffer that may have served before; `None` after the last.
    pub(crate) fn next(&mut self, mut buffer: Vec<u8>) -> Option<Stretch> {
        if self.ended {
            return None;
        }
        let mut len = self.carry.len();
        // Where a stretch ends depends on the bytes alone, never on the buffer it comes to lie in.
        let mut end = len + STRETCH;
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
        Some(Stretch { buffer, len, offset, last: self.ended })
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
