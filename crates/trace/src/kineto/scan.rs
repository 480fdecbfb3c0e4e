//! Where are the events? Walks a stretch of the file from a known region, takes in every whole
//! event, and finds the way back after damage.
//!
//! A pure function of (region, bytes): stretches may be scanned on several threads under the guess
//! that they begin between events, and again if the guess turns out wrong.

use memchr::memchr;

use crate::kineto::batch::Batch;
use crate::kineto::cursor::{Backslash, Cursor, Fault, Scan};
use crate::kineto::envelope::Envelope;
use crate::kineto::event::{Draft, read_event};
use crate::model::stats::{LossKind, Repair};

/// Where in the document a byte lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
    /// Nothing but white space so far.
    Start,
    /// Between members of the outermost object, before or after its list of events.
    Members { events_seen: bool },
    /// Between events. `bare` if the list itself is the outermost value.
    Events { bare: bool },
    /// After the outermost value.
    Finished,
}

/// One value that is longer than this is taken for damage: no profiler writes such a thing, and
/// the reader must not hold what it cannot use.
pub(crate) const LONGEST_VALUE: usize = 16 << 20;

/// Finding the way back after damage may read bytes again; this many times the stretch, no more,
/// so that no input can make the scan slower than linear.
const EFFORT: usize = 64;

/// What scanning a stretch gave, beside the batch it filled.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The region at `consumed`.
    pub(crate) region: Region,
    /// Bytes dealt with. The rest begins a value that the stretch does not hold whole.
    pub(crate) consumed: usize,
    pub(crate) envelope: Envelope,
}

/// Scans `bytes`, which lie at `offset` in the file, into `batch`. `last` says that none follow.
#[inline(never)] // Its name is what the instruction count goes by.
pub(crate) fn scan(region: Region, bytes: &[u8], offset: u64, last: bool, batch: &mut Batch) -> Outcome {
    let mut scanner =
        Scanner { bytes, offset, last, batch, region, pos: 0, effort: 0, envelope: Envelope::default() };
    let consumed = scanner.run();
    let Scanner { region, envelope, .. } = scanner;
    batch.stats.json_bytes += consumed as u64;
    batch.finish();
    Outcome { region, consumed, envelope }
}

struct Scanner<'a, 'b> {
    bytes: &'a [u8],
    offset: u64,
    last: bool,
    batch: &'b mut Batch,
    region: Region,
    pos: usize,
    /// Bytes read in vain so far.
    effort: usize,
    envelope: Envelope,
}

/// Whether the scan of this stretch goes on.
enum Step {
    Next,
    /// The value at this position needs bytes the stretch does not have.
    Incomplete(usize),
    Done,
}

impl Scanner<'_, '_> {
    fn run(&mut self) -> usize {
        loop {
            let step = match self.region {
                Region::Start => self.start(),
                Region::Members { events_seen } => self.member(events_seen),
                Region::Events { bare } => self.events(bare),
                Region::Finished => self.after(),
            };
            match step {
                Step::Next => {}
                Step::Done => return self.bytes.len(),
                Step::Incomplete(from) if !self.last && self.bytes.len() - from < LONGEST_VALUE => {
                    return from;
                }
                Step::Incomplete(from) => self.give_up_on(from),
            }
        }
    }

    fn at(&self, pos: usize) -> u64 {
        self.offset + pos as u64
    }

    fn start(&mut self) -> Step {
        if self.offset == 0 && self.pos == 0 && self.bytes.starts_with(b"\xef\xbb\xbf") {
            self.pos = 3;
        }
        let mut cursor = Cursor::at(self.bytes, self.pos);
        match cursor.next_token() {
            Err(_) => Step::Done,
            Ok(b'[') => {
                self.pos = cursor.pos() + 1;
                self.region = Region::Events { bare: true };
                Step::Next
            }
            // One event after the other with no list around them.
            Ok(b'{') if self.is_event(cursor.pos()) => {
                self.pos = cursor.pos();
                self.region = Region::Events { bare: true };
                Step::Next
            }
            Ok(b'{') => {
                self.pos = cursor.pos() + 1;
                self.region = Region::Members { events_seen: false };
                Step::Next
            }
            Ok(_) => self.recover(cursor.pos(), LossKind::DamagedMetadata),
        }
    }

    /// Whether a whole event stands here.
    fn is_event(&self, brace: usize) -> bool {
        let mut draft = Draft::default();
        begins_event(self.bytes, brace)
            && read_event(&mut Cursor::at(self.bytes, brace), &mut draft).is_ok()
            && draft.phase != 0
    }

    /// Whether the list here holds events, whatever damage has made of its key.
    fn is_list_of_events(&self, bracket: usize) -> bool {
        let mut cursor = Cursor::at(self.bytes, bracket + 1);
        cursor.next_token() == Ok(b'{') && self.is_event(cursor.pos())
    }

    /// One member of the outermost object.
    fn member(&mut self, events_seen: bool) -> Step {
        let from = self.pos;
        let mut cursor = Cursor::at(self.bytes, from);
        match self.read_member(&mut cursor, events_seen) {
            Ok(region) => {
                self.pos = cursor.pos();
                self.region = region;
                Step::Next
            }
            Err(Fault::End) => {
                let mut rest = Cursor::at(self.bytes, from);
                match rest.next_token() {
                    Ok(_) => Step::Incomplete(from),
                    // Nothing but white space after the last member: not an unfinished value.
                    Err(_) => self.end_of_stretch(),
                }
            }
            Err(Fault::Malformed) => self.recover(from, LossKind::DamagedMetadata),
        }
    }

    fn read_member(&mut self, cursor: &mut Cursor<'_>, events_seen: bool) -> Scan<Region> {
        let Some(key) = cursor.next_key()? else { return Ok(Region::Finished) };
        let is_list = cursor.next_token()? == b'[';
        if is_list && (key == b"traceEvents" || self.is_list_of_events(cursor.pos())) {
            self.envelope.is_trace = true;
            cursor.advance();
            return Ok(Region::Events { bare: false });
        }
        let value = cursor.skip_value()?;
        cursor.end_member()?;
        self.envelope.member(key, value);
        Ok(Region::Members { events_seen })
    }

    fn events(&mut self, bare: bool) -> Step {
        let bytes = self.bytes;
        let mut cursor = Cursor::at(bytes, self.pos);
        let mut draft = Draft::default();
        loop {
            match cursor.next_token() {
                Ok(b',') => cursor.advance(),
                Ok(b'{') => {
                    let from = cursor.pos();
                    match read_event(&mut cursor, &mut draft) {
                        Ok(()) if draft.phase == 0 && self.holds_events(from, cursor.pos()) => {
                            return self.recover(from, LossKind::StrayBytes);
                        }
                        Ok(()) => self.take(&draft, from),
                        Err(fault) => return self.unreadable_event(from, fault, cursor.pos()),
                    }
                }
                Ok(b']') => {
                    self.pos = cursor.pos() + 1;
                    self.region = if bare { Region::Finished } else { Region::Members { events_seen: true } };
                    return Step::Next;
                }
                Ok(_) => return self.recover(cursor.pos(), LossKind::StrayBytes),
                Err(_) => {
                    self.pos = bytes.len();
                    return self.end_of_stretch();
                }
            }
        }
    }

    /// Whether the object from `from` to `to`, which is no event, has events inside.
    fn holds_events(&mut self, from: usize, to: usize) -> bool {
        self.find_event(from + 1).is_some_and(|at| at < to)
    }

    fn take(&mut self, draft: &Draft<'_>, from: usize) {
        // `{}` closes some lists, so that every event may end in a comma.
        if draft.phase == 0 && draft.timestamp.is_none() && draft.name.bytes.is_empty() {
            self.batch.stats.objects += 1;
            *self.batch.stats.not_kept.entry("empty objects".to_owned()).or_default() += 1;
            return;
        }
        self.batch.push(draft, self.at(from));
    }

    /// The event at `from` did not end, or is not JSON at `stopped`.
    fn unreadable_event(&mut self, from: usize, fault: Fault, stopped: usize) -> Step {
        if fault == Fault::End && !self.last {
            return Step::Incomplete(from);
        }
        let mut lax = Cursor::at(self.bytes, from).with_backslash(Backslash::MayEndString);
        let mut draft = Draft::default();
        if read_event(&mut lax, &mut draft).is_ok() && draft.phase != 0 {
            self.batch.stats.repair(Repair::StrayBackslash);
            self.take(&draft, from);
            self.pos = lax.pos();
            return Step::Next;
        }
        self.effort += 2 * (stopped - from);
        if fault == Fault::End {
            return Step::Incomplete(from);
        }
        self.batch.stats.objects += 1;
        self.recover(from, LossKind::DamagedEvent)
    }

    /// After the outermost value: another document may follow.
    fn after(&mut self) -> Step {
        let mut cursor = Cursor::at(self.bytes, self.pos);
        match cursor.next_token() {
            Err(_) => Step::Done,
            Ok(b'{' | b'[') => {
                self.pos = cursor.pos();
                self.region = Region::Start;
                Step::Next
            }
            Ok(_) => {
                // Commas, brackets and NUL padding after the end hurt nobody; events would.
                let from = cursor.pos();
                match self.find_event(from) {
                    Some(_) => self.recover(from, LossKind::StrayBytes),
                    None => Step::Done,
                }
            }
        }
    }

    /// The stretch ends between values. If the file does too, it was cut.
    fn end_of_stretch(&mut self) -> Step {
        if self.last {
            let what = match self.region {
                Region::Events { .. } => Some(LossKind::EndsBetweenEvents),
                Region::Members { events_seen: true } => Some(LossKind::EndsAfterEvents),
                Region::Members { events_seen: false } => Some(LossKind::EndsBeforeEvents),
                Region::Start | Region::Finished => None,
            };
            if let Some(what) = what {
                self.batch.stats.lose(what, self.at(self.bytes.len()), 0);
            }
        }
        Step::Done
    }

    /// A value that the file does not hold whole, or that is absurdly long.
    fn give_up_on(&mut self, from: usize) {
        if let Some(next) = self.find_event(from + 1) {
            // It had lost its end; later events are still there.
            let what = match self.region {
                Region::Events { .. } => LossKind::DamagedEvent,
                _ => LossKind::DamagedMetadata,
            };
            self.resume(from, next, what);
            return;
        }
        let what = match self.region {
            Region::Events { .. } => LossKind::EndsInsideEvent,
            Region::Members { events_seen: true } => LossKind::EndsAfterEvents,
            _ => LossKind::EndsBeforeEvents,
        };
        self.batch.stats.lose(what, self.at(self.bytes.len()), (self.bytes.len() - from) as u64);
        self.pos = self.bytes.len();
        // What remains, if anything does, is looked at as if nothing had been seen.
        self.region = if self.last { Region::Finished } else { Region::Events { bare: false } };
    }

    /// Counts the loss at `from` and goes on at the next readable event, if this stretch has one.
    fn recover(&mut self, from: usize, what: LossKind) -> Step {
        match self.find_event(from + 1) {
            Some(next) => {
                self.resume(from, next, what);
                Step::Next
            }
            None => {
                self.batch.stats.lose(what, self.at(from), (self.bytes.len() - from) as u64);
                self.pos = self.bytes.len();
                if self.region != Region::Start {
                    self.region = Region::Events { bare: false };
                }
                Step::Done
            }
        }
    }

    fn resume(&mut self, from: usize, next: usize, what: LossKind) {
        self.batch.stats.lose(what, self.at(from), (next - from) as u64);
        self.pos = next;
        // Whether the list was bare matters only at its end; a lost answer costs nothing there.
        if !matches!(self.region, Region::Events { .. }) {
            self.region = Region::Events { bare: self.region == Region::Start };
        }
    }

    /// The next position at or after `from` where an event can be read whole, or begins and is cut
    /// off by the end of the stretch.
    fn find_event(&mut self, from: usize) -> Option<usize> {
        let mut at = from;
        let mut draft = Draft::default();
        while let Some(found) = self.bytes.get(at..).and_then(|rest| memchr(b'{', rest)) {
            let brace = at + found;
            at = brace + 1;
            if !begins_event(self.bytes, brace) {
                continue;
            }
            let mut cursor = Cursor::at(self.bytes, brace);
            match read_event(&mut cursor, &mut draft) {
                Ok(()) if draft.phase != 0 => return Some(brace),
                Err(Fault::End) if !self.last && follows_a_separator(self.bytes, brace) => {
                    return Some(brace);
                }
                _ => self.effort += cursor.pos() - brace,
            }
            if self.effort > EFFORT * self.bytes.len() {
                return None;
            }
        }
        None
    }
}

/// Whether the brace at `brace` opens an object whose first key is one that events have.
pub(crate) fn begins_event(bytes: &[u8], brace: usize) -> bool {
    let mut cursor = Cursor::at(bytes, brace + 1);
    cursor.skip_space();
    let Some(rest) = bytes.get(cursor.pos()..) else { return false };
    [&b"\"ph\""[..], b"\"name\"", b"\"cat\"", b"\"pid\"", b"\"tid\"", b"\"ts\"", b"\"args\""]
        .iter()
        .any(|key| rest.starts_with(key))
}

/// Whether the brace stands where an element of a list may begin: after a comma or `[`.
pub(crate) fn follows_a_separator(bytes: &[u8], brace: usize) -> bool {
    let before = bytes.get(..brace).unwrap_or_default();
    matches!(before.iter().rev().find(|b| !b.is_ascii_whitespace()), Some(b',' | b'[') | None)
}
