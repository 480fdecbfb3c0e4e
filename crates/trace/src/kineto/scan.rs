//! Where are the events? Scans a segment of the file from a known region, reads every complete event, and
//! resynchronizes after damage.
//!
//! A pure function of (region, bytes): segments may be scanned on several threads under the assumption that they
//! begin between events, and again if that was wrong.

use memchr::memchr;

use crate::kineto::batch::Batch;
use crate::kineto::cursor::{Backslash, Cursor, Fault, PATIENCE, Scan, begins_event, follows_a_separator};
use crate::kineto::envelope::Envelope;
use crate::kineto::event::{Draft, read_event};
use crate::model::stats::{LossKind, Repair};

/// What contains the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    /// A member of the outermost object.
    Member,
    /// A list that is itself the outermost value.
    Bare,
    /// Nothing: one event after another.
    Lines,
}

/// Which part of the document a byte is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
    /// Only white space so far.
    Start,
    /// Between members of the outermost object, before or after its list of events.
    Members { events_seen: bool },
    /// Between events.
    Events(List),
    /// After the outermost value.
    Finished,
}

/// A value longer than this is treated as damage: profilers do not write such values, and the reader must not buffer
/// what it cannot use.
pub(crate) const LONGEST_VALUE: usize = 16 << 20;

/// Resynchronizing after damage may read bytes again. Beyond this many times the segment size, a value is abandoned
/// as soon as something like an event begins in it. Beyond four times that, the rest of the segment is abandoned. So
/// the scan stays linear for any input.
const EFFORT: usize = 32;

/// The result of scanning a segment, in addition to the batch it filled.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The region at `consumed`.
    pub(crate) region: Region,
    /// Bytes processed. The rest begins a value that continues after the segment.
    pub(crate) consumed: usize,
    /// Whether a list of events ended in the segment, even if another one began after it.
    pub(crate) left_list: bool,
    pub(crate) envelope: Envelope,
}

/// Scans `bytes`, which begin at `offset` in the file, into `batch`. `last` means that no more bytes follow.
#[inline(never)] // The instruction count finds the function by name.
pub(crate) fn scan(region: Region, bytes: &[u8], offset: u64, last: bool, batch: &mut Batch) -> Outcome {
    let mut scanner = Scanner {
        bytes,
        offset,
        last,
        batch,
        region,
        pos: 0,
        effort: 0,
        left_list: false,
        envelope: Envelope::default(),
    };
    let consumed = scanner.run();
    let Scanner { region, left_list, envelope, .. } = scanner;
    batch.stats.json_bytes += consumed as u64;
    batch.finish();
    Outcome { region, consumed, left_list, envelope }
}

struct Scanner<'a, 'b> {
    bytes: &'a [u8],
    offset: u64,
    last: bool,
    batch: &'b mut Batch,
    region: Region,
    pos: usize,
    /// Bytes read without result so far.
    effort: usize,
    left_list: bool,
    envelope: Envelope,
}

/// Whether the scan of this segment continues.
enum Step {
    Next,
    /// The value at this position needs bytes after the segment.
    Incomplete(usize),
    Done,
}

impl Scanner<'_, '_> {
    fn run(&mut self) -> usize {
        loop {
            let step = match self.region {
                Region::Start => self.start(),
                Region::Members { events_seen } => self.member(events_seen),
                Region::Events(list) => self.events(list),
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
                self.region = Region::Events(List::Bare);
                Step::Next
            }
            // One event after another without a list around them.
            Ok(b'{') if self.is_event(cursor.pos()) => {
                self.pos = cursor.pos();
                self.region = Region::Events(List::Lines);
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

    /// Whether a complete event begins here.
    fn is_event(&self, brace: usize) -> bool {
        let mut draft = Draft::default();
        begins_event(self.bytes, brace)
            && read_event(&mut Cursor::at(self.bytes, brace), &mut draft).is_ok()
            && draft.phase != 0
            && (draft.timestamp.is_some() || draft.phase == b'M')
    }

    /// Whether the list here contains events, even if its key is damaged.
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
                    // Only white space after the last member: not an unfinished value.
                    Err(_) => self.end_of_segment(),
                }
            }
            // This may itself be an event, after a stray bracket.
            Err(Fault::Malformed) => self.recover_at(from, from, LossKind::DamagedMetadata),
        }
    }

    fn read_member(&mut self, cursor: &mut Cursor<'_>, events_seen: bool) -> Scan<Region> {
        let Some(key) = cursor.next_key()? else { return Ok(Region::Finished) };
        let is_list = cursor.next_token()? == b'[';
        if is_list && (key == b"traceEvents" || self.is_list_of_events(cursor.pos())) {
            self.envelope.is_trace = true;
            cursor.advance();
            return Ok(Region::Events(List::Member));
        }
        self.envelope.saw(key);
        let at = cursor.pos();
        let value = cursor.skip_value()?;
        cursor.end_member()?;
        if !self.envelope.member(key, value) {
            self.batch.stats.lose(LossKind::DamagedMetadata, self.at(at), value.len() as u64);
        }
        Ok(Region::Members { events_seen })
    }

    fn events(&mut self, list: List) -> Step {
        let bytes = self.bytes;
        let mut cursor = Cursor::at(bytes, self.pos).with_patience(self.patience());
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
                        // It contains complete events: two brackets are missing, not one.
                        Ok(()) if cursor.nested_event().is_some_and(|at| self.is_event(at)) => {
                            return self.recover(from, LossKind::DamagedEvent);
                        }
                        Ok(()) => self.take(&draft, from),
                        Err(fault) => return self.unreadable_event(from, fault, cursor.pos()),
                    }
                }
                Ok(b']') => {
                    self.pos = cursor.pos() + 1;
                    self.left_list = true;
                    self.region = match list {
                        List::Member => Region::Members { events_seen: true },
                        List::Bare | List::Lines => Region::Finished,
                    };
                    return Step::Next;
                }
                Ok(_) => return self.recover(cursor.pos(), LossKind::StrayBytes),
                Err(_) => {
                    self.pos = bytes.len();
                    return self.end_of_segment();
                }
            }
        }
    }

    /// Whether the object from `from` to `to`, which is not an event, contains events.
    fn holds_events(&mut self, from: usize, to: usize) -> bool {
        self.find_event_before(from + 1, to).is_some()
    }

    fn take(&mut self, draft: &Draft<'_>, from: usize) {
        // Some writers close the list with `{}`, so that every event can end in a comma.
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
        let mut lax = Cursor::at(self.bytes, from)
            .with_backslash(Backslash::MayEndString)
            .with_patience(self.patience());
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
                // Commas, brackets and NUL padding after the end are harmless; events are not.
                let from = cursor.pos();
                match self.find_event(from) {
                    Some(_) => self.recover(from, LossKind::StrayBytes),
                    None => Step::Done,
                }
            }
        }
    }

    /// The segment ends between values. If the file ends here too, it was cut.
    fn end_of_segment(&mut self) -> Step {
        if self.last {
            let what = match self.region {
                Region::Events(List::Lines) => None,
                Region::Events(_) => Some(LossKind::EndsBetweenEvents),
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

    /// A value that is incomplete in the file, or far too long.
    fn give_up_on(&mut self, from: usize) {
        if let Some(next) = self.find_event(from + 1) {
            // It lost its end; later events can still be read.
            let what = match self.region {
                Region::Events(_) => LossKind::DamagedEvent,
                _ => LossKind::DamagedMetadata,
            };
            self.resume(from, next, what);
            return;
        }
        if matches!(self.region, Region::Events(_)) {
            self.batch.stats.objects += 1;
        }
        let (what, at) = match self.region {
            // The file continues; this value is too long to buffer.
            _ if !self.last => (LossKind::TooLong, from),
            Region::Events(_) => (LossKind::EndsInsideEvent, self.bytes.len()),
            Region::Members { events_seen: true } => (LossKind::EndsAfterEvents, self.bytes.len()),
            _ => (LossKind::EndsBeforeEvents, self.bytes.len()),
        };
        self.batch.stats.lose(what, self.at(at), (self.bytes.len() - from) as u64);
        self.pos = self.bytes.len();
        // Any remaining bytes are scanned as if at the start of the file.
        self.region = if self.last { Region::Finished } else { Region::Events(List::Member) };
    }

    /// Counts the loss at `from` and continues at the next readable event in this segment, if any.
    fn recover(&mut self, from: usize, what: LossKind) -> Step {
        self.recover_at(from, from + 1, what)
    }

    /// Like [`recover`](Self::recover), but starts searching at `search`.
    fn recover_at(&mut self, from: usize, search: usize, what: LossKind) -> Step {
        match self.find_event(search) {
            Some(next) => {
                self.resume(from, next, what);
                Step::Next
            }
            None => {
                self.batch.stats.lose(what, self.at(from), (self.bytes.len() - from) as u64);
                self.pos = self.bytes.len();
                if self.region != Region::Start {
                    self.region = Region::Events(List::Member);
                }
                Step::Done
            }
        }
    }

    fn resume(&mut self, from: usize, next: usize, what: LossKind) {
        self.batch.stats.lose(what, self.at(from), (next - from) as u64);
        self.pos = next;
        // What contains the list matters only at its end; not knowing it costs nothing there.
        self.region = match self.region {
            Region::Events(list) => Region::Events(list),
            Region::Start => Region::Events(List::Bare),
            Region::Members { .. } | Region::Finished => Region::Events(List::Member),
        };
    }

    /// The next position at or after `from` with an event that is complete, or that is cut off by the end of the
    /// segment.
    fn find_event(&mut self, from: usize) -> Option<usize> {
        self.find_event_before(from, self.bytes.len())
    }

    /// Like [`find_event`](Self::find_event), for events that begin before `limit`.
    fn find_event_before(&mut self, from: usize, limit: usize) -> Option<usize> {
        let mut at = from;
        let mut draft = Draft::default();
        while let Some(found) = self.bytes.get(at..limit).and_then(|rest| memchr(b'{', rest)) {
            let brace = at + found;
            at = brace + 1;
            if !begins_event(self.bytes, brace) {
                continue;
            }
            let mut cursor = Cursor::at(self.bytes, brace).with_patience(self.patience());
            match read_event(&mut cursor, &mut draft) {
                Ok(()) if draft.phase != 0 => return Some(brace),
                Err(Fault::End) if !self.last && follows_a_separator(self.bytes, brace) => {
                    return Some(brace);
                }
                _ => self.effort += cursor.pos() - brace,
            }
            if self.effort > 4 * EFFORT * self.bytes.len() {
                return None;
            }
        }
        None
    }

    /// How long a value may continue after something like an event began in it.
    fn patience(&self) -> usize {
        if self.effort > EFFORT * self.bytes.len() { 0 } else { PATIENCE }
    }
}
