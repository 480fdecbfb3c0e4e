//! How is a gzip file read that is cut off, damaged or made of several members? Every byte that can be inflated is
//! used; problems are counted and are never an error.
//!
//! The header and trailer are read here and crc32fast computes the checksum: the one in zlib-rs took a third of the
//! inflating thread's time.

use std::io::{self, Read};

use crc32fast::Hasher;
use flate2::{Decompress, FlushDecompress, Status};
use memchr::memmem;

use crate::model::stats::{ImportStats, LossKind};
use crate::reader::read_some;

pub(crate) const MAGIC: &[u8] = b"\x1f\x8b\x08";

const INPUT: usize = 256 << 10;

/// Checksum and length at the end of a member.
const TRAILER: usize = 8;

/// Enough for any header that a program writes: a file name, perhaps a comment.
const LONGEST_HEADER: usize = 64 << 10;

/// Inflates all members of a gzip stream. After damage it continues at the next member.
pub(crate) struct Gzip<R> {
    source: R,
    input: Vec<u8>,
    /// The part of `input` not yet inflated.
    from: usize,
    to: usize,
    /// Compressed bytes before `input`.
    offset: u64,
    source_ended: bool,
    state: State,
    pub(crate) stats: ImportStats,
}

enum State {
    /// At the expected beginning of a member.
    Between,
    Inflating(Box<Member>),
    /// After a member's data: checksum and length follow.
    Trailer(Box<Member>),
    /// Looking for the next member after damage.
    Searching,
    Ended,
}

/// A member that is being inflated.
struct Member {
    inflater: Decompress,
    checksum: Hasher,
}

/// The length of the header at the head of `bytes`; `None` if they do not hold all of it.
fn header_length(bytes: &[u8]) -> Option<usize> {
    const CHECKSUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    let flags = *bytes.get(3)?;
    let mut at = 10;
    if flags & EXTRA != 0 {
        let length = bytes.get(at..at + 2)?;
        at += 2 + usize::from(u16::from_le_bytes([length[0], length[1]]));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            at += memchr::memchr(0, bytes.get(at..)?)? + 1;
        }
    }
    if flags & CHECKSUM != 0 {
        at += 2;
    }
    (at <= bytes.len()).then_some(at)
}

impl<R: Read> Gzip<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            input: vec![0; INPUT],
            from: 0,
            to: 0,
            offset: 0,
            source_ended: false,
            state: State::Between,
            stats: ImportStats::default(),
        }
    }

    fn position(&self) -> u64 {
        self.offset + self.from as u64
    }

    fn pending(&self) -> &[u8] {
        &self.input[self.from..self.to]
    }

    /// Makes at least `want` bytes pending, unless the source ends first.
    fn fill(&mut self, want: usize) -> io::Result<()> {
        while self.to - self.from < want && !self.source_ended {
            if self.from > 0 {
                self.input.copy_within(self.from..self.to, 0);
                self.offset += self.from as u64;
                self.to -= self.from;
                self.from = 0;
            }
            let read = read_some(&mut self.source, &mut self.input[self.to..])?;
            self.source_ended = read == 0;
            self.to += read;
        }
        Ok(())
    }

    fn lose(&mut self, what: LossKind) {
        let at = self.position();
        self.stats.lose(what, at, 0);
    }

    /// Decides what the bytes after a member are.
    fn begin_member(&mut self) -> io::Result<State> {
        self.fill(MAGIC.len())?;
        if self.pending().starts_with(MAGIC) {
            // Names in headers are short; one that fills the buffer is damage.
            self.fill(LONGEST_HEADER)?;
            return Ok(match header_length(self.pending()) {
                Some(length) => {
                    self.from += length;
                    State::Inflating(Box::new(Member {
                        inflater: Decompress::new(false),
                        checksum: Hasher::new(),
                    }))
                }
                None if self.source_ended => {
                    self.from = self.to;
                    self.lose(LossKind::GzipTruncated);
                    State::Ended
                }
                None => {
                    self.lose(LossKind::GzipDamaged);
                    self.from += 1;
                    State::Searching
                }
            });
        }
        // Tapes and block devices pad with zeros; gzip skips them too.
        while let Some(&0) = self.pending().first() {
            self.from += 1;
            self.fill(1)?;
        }
        if self.pending().is_empty() {
            return Ok(State::Ended);
        }
        if self.pending().starts_with(MAGIC) {
            return Ok(State::Between);
        }
        if MAGIC.starts_with(self.pending()) {
            // Only the first byte or two of another member.
            self.lose(LossKind::GzipTruncated);
            return Ok(State::Ended);
        }
        self.lose(LossKind::GzipTrailingBytes);
        Ok(State::Searching)
    }

    fn search_member(&mut self) -> io::Result<State> {
        loop {
            // A header has ten bytes; flags above 0x1f are reserved.
            self.fill(10)?;
            if self.to - self.from < 10 {
                return Ok(State::Ended);
            }
            match memmem::find(self.pending(), MAGIC) {
                Some(0) if self.pending()[3] & 0xe0 == 0 => return Ok(State::Between),
                Some(0) => self.from += 1,
                Some(ahead) => self.from += ahead,
                None => self.from = self.to - (MAGIC.len() - 1),
            }
        }
    }

    /// Inflates some bytes, and says what comes next.
    fn inflate(&mut self, mut member: Box<Member>, out: &mut [u8]) -> io::Result<(usize, State)> {
        self.fill(1)?;
        if self.pending().is_empty() {
            self.lose(LossKind::GzipTruncated);
            return Ok((0, State::Ended));
        }
        let inflater = &mut member.inflater;
        let (in_before, out_before) = (inflater.total_in(), inflater.total_out());
        let result = inflater.decompress(self.pending(), out, FlushDecompress::None);
        self.from += (inflater.total_in() - in_before) as usize;
        let produced = (inflater.total_out() - out_before) as usize;
        member.checksum.update(&out[..produced]);
        let next = match result {
            Ok(Status::StreamEnd) => State::Trailer(member),
            Ok(_) => State::Inflating(member),
            Err(_) => {
                self.lose(LossKind::GzipDamaged);
                State::Searching
            }
        };
        Ok((produced, next))
    }

    /// All bytes of the member have been used by now; a wrong checksum can only be counted.
    fn end_member(&mut self, member: Member) -> io::Result<State> {
        self.fill(TRAILER)?;
        let Some(trailer) = self.pending().first_chunk::<TRAILER>() else {
            self.lose(LossKind::GzipTruncated);
            return Ok(State::Ended);
        };
        let [a, b, c, d, e, f, g, h] = *trailer;
        let checksum = u32::from_le_bytes([a, b, c, d]);
        let length = u32::from_le_bytes([e, f, g, h]);
        // The length is kept modulo 2^32.
        if checksum != member.checksum.finalize() || length != member.inflater.total_out() as u32 {
            self.lose(LossKind::GzipChecksum);
            // If bytes of the member were lost, the next one begins before this position. The trailer is not skipped,
            // so that it can still be found.
            return Ok(State::Searching);
        }
        self.from += TRAILER;
        Ok(State::Between)
    }
}

impl<R: Read> Read for Gzip<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            self.state = match std::mem::replace(&mut self.state, State::Ended) {
                State::Between => self.begin_member()?,
                State::Searching => self.search_member()?,
                State::Ended => return Ok(0),
                State::Trailer(member) => self.end_member(*member)?,
                State::Inflating(member) => {
                    let (produced, next) = self.inflate(member, out)?;
                    self.state = next;
                    if produced > 0 {
                        return Ok(produced);
                    }
                    continue;
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn member(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn inflate(bytes: &[u8]) -> (Vec<u8>, Vec<LossKind>) {
        let mut gzip = Gzip::new(bytes);
        let mut out = Vec::new();
        gzip.read_to_end(&mut out).unwrap();
        (out, gzip.stats.losses.iter().map(|loss| loss.what).collect())
    }

    fn text(seed: u64) -> Vec<u8> {
        (0..60_000u64).map(|i| b'a' + ((i * i + seed * i) % 23) as u8).collect()
    }

    #[test]
    fn several_members_and_zero_padding_are_one_stream() {
        let mut file = member(b"one ");
        file.extend(member(b"two"));
        file.extend([0; 512]);
        assert_eq!(inflate(&file), (b"one two".to_vec(), vec![]));
    }

    #[test]
    fn a_cut_stream_gives_what_was_before_the_cut() {
        let whole = text(1);
        let file = member(&whole);
        let (out, losses) = inflate(&file[..file.len() / 2]);
        assert!(out.len() > 1000 && whole.starts_with(&out));
        assert_eq!(losses, [LossKind::GzipTruncated]);
    }

    #[test]
    fn a_bad_checksum_is_counted_and_the_bytes_are_used() {
        let whole = text(2);
        let mut file = member(&whole);
        let crc = file.len() - 8;
        file[crc] ^= 0xff;
        assert_eq!(inflate(&file), (whole, vec![LossKind::GzipChecksum]));
    }

    #[test]
    fn reading_continues_at_the_member_after_a_damaged_one() {
        let (first, second) = (text(3), text(4));
        let mut file = member(&first);
        let middle = file.len() / 2;
        file[middle..middle + 16].fill(0xff);
        file.extend(member(&second));
        let (out, losses) = inflate(&file);
        assert!(out.ends_with(&second));
        assert_eq!(losses.len(), 1, "{losses:?}");
    }
}
