//! The pages of a database, read without SQLite: this takes a small part of the time of a query.
//!
//! Only what sound exports look like is read here, with at least the checks that SQLite makes. For everything else the answer
//! is `None`, and SQLite reads it.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;

use super::rows::{Rows, Stored, varint};

/// The longest row that is read here.
const LONGEST_ROW: usize = 1 << 20;

/// Bytes of text that are read at once; with more it is not read here, because several parts are in memory.
const MOST_TEXT: usize = 4 << 20;

/// More levels than any table has: each of them multiplies the rows.
const MOST_LEVELS: usize = 12;

/// Pages that are read at once if they follow each other in the file.
const PAGES_AT_ONCE: u32 = 64;

const INNER: u8 = 0x05;
const LEAF: u8 = 0x0d;

/// The file, and the pages of it that were read last.
pub(super) struct Pages {
    file: File,
    /// Bytes of a page, and how many of them are used.
    size: usize,
    usable: usize,
    count: u32,
    /// The number of the first page in `bytes`.
    first: u32,
    bytes: Vec<u8>,
}

/// A page of a table. Its rows have numbers after one number, up to and including another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    page: u32,
    after: i64,
    until: i64,
}

impl Pages {
    /// `None` if it is not a database in UTF-8 that has all of its pages.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        let mut header = [0; 100];
        file.read_exact(&mut header).ok()?;
        let size = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 65_536,
            size => usize::from(size),
        };
        let usable = size.checked_sub(header[20].into())?;
        let (format, encoding) = (number_at(&header, 44)?, number_at(&header, 56)?);
        let is_known = header.starts_with(b"SQLite format 3\0") && (1..=2).contains(&header[19]);
        let is_sound = size.is_power_of_two() && size >= 512 && usable >= 480;
        if !is_known || !is_sound || !(1..=4).contains(&format) || encoding != 1 {
            return None;
        }
        let count = number_at(&header, 28)?;
        let is_whole = file.metadata().ok()?.len() == u64::from(count) * size as u64;
        is_whole.then_some(Self { file, size, usable, count, first: 0, bytes: Vec::new() })
    }

    /// Reads a page, and as many pages after it as `more` says. Returns where it is in `bytes`.
    fn load(&mut self, page: u32, more: impl FnOnce() -> usize) -> Option<Range<usize>> {
        let known = self.bytes.len() / self.size;
        if page < self.first || (page - self.first) as usize >= known {
            let more = u32::try_from(more()).unwrap_or(u32::MAX);
            let more = more.min(self.count.saturating_sub(page)).min(PAGES_AT_ONCE - 1);
            self.bytes.resize((more as usize + 1) * self.size, 0);
            self.first = page;
            let mut bytes = std::mem::take(&mut self.bytes);
            self.read_at(page, &mut bytes)?;
            self.bytes = bytes;
        }
        let from = (page - self.first) as usize * self.size;
        Some(from..from + self.usable)
    }

    fn read_at(&self, page: u32, bytes: &mut [u8]) -> Option<()> {
        // The first page begins with the header of the file; no table of an export is there.
        let before = page.checked_sub(1).filter(|before| (1..self.count).contains(before))?;
        let mut file = &self.file;
        file.seek(SeekFrom::Start(u64::from(before) * self.size as u64)).ok()?;
        file.read_exact(bytes).ok()
    }

    /// The pages with the rows of a table, in order. The table begins at the page `root`.
    pub(super) fn leaves(&mut self, root: u32) -> Option<Vec<Node>> {
        let mut level = vec![Node { page: root, after: i64::MIN, until: i64::MAX }];
        for _ in 0..MOST_LEVELS {
            let first = level.first()?.page;
            let bytes = self.load(first, || 0)?;
            if self.bytes[bytes.start] == LEAF {
                return Some(level);
            }
            let mut below = Vec::new();
            for node in level {
                self.add_children(node, &mut below)?;
            }
            level = below;
        }
        None
    }

    fn add_children(&mut self, node: Node, children: &mut Vec<Node>) -> Option<()> {
        let bytes = self.load(node.page, || 0)?;
        let bytes = &self.bytes[bytes];
        let mut after = node.after;
        for cell in cells(bytes, INNER)? {
            let cell = cell?;
            let (until, _) = varint(cell.get(4..)?)?;
            let until = until.cast_signed();
            if until <= after || until > node.until {
                return None;
            }
            children.push(Node { page: number_at(cell, 0)?, after, until });
            after = until;
        }
        children.push(Node { page: number_at(bytes, 8)?, after, until: node.until });
        (children.len() <= self.count as usize).then_some(())
    }

    /// Adds the rows of some leaves. Their numbers must follow each other without a gap; returns the first one.
    pub(super) fn read(&mut self, leaves: &[Node], wanted: &[Stored], rows: &mut Rows) -> Option<i64> {
        let (mut first, mut next) = (None, None);
        for (i, leaf) in leaves.iter().enumerate() {
            let follows = |pair: &&[Node]| pair[0].page.checked_add(1) == Some(pair[1].page);
            let bytes = self.load(leaf.page, || leaves[i..].windows(2).take_while(follows).count())?;
            for cell in cells(&self.bytes[bytes], LEAF)? {
                let cell = cell?;
                let (length, used) = varint(cell)?;
                let length = usize::try_from(length).ok().filter(|length| *length <= LONGEST_ROW)?;
                let (number, more) = varint(cell.get(used..)?)?;
                let number = number.cast_signed();
                let is_next = next.is_none_or(|next| next == number);
                if !is_next || number <= leaf.after || number > leaf.until {
                    return None;
                }
                first.get_or_insert(number);
                next = Some(number.checked_add(1)?);
                let content = cell.get(used + more..)?;
                match self.kept_here(length) {
                    here if here == length => rows.push_record(content.get(..length)?, wanted)?,
                    here => rows.push_record(&self.whole(content, here, length)?, wanted)?,
                }
                if rows.text_bytes() > MOST_TEXT {
                    return None;
                }
            }
        }
        first
    }

    /// How many bytes of a row are on its own page; the rest is on other pages.
    fn kept_here(&self, length: usize) -> usize {
        let most = self.usable - 35;
        if length <= most {
            return length;
        }
        let least = (self.usable - 12) * 32 / 255 - 23;
        let kept = least + (length - least) % (self.usable - 4);
        if kept <= most { kept } else { least }
    }

    /// A row that continues on other pages.
    fn whole(&self, content: &[u8], here: usize, length: usize) -> Option<Vec<u8>> {
        let mut all = content.get(..here)?.to_vec();
        let mut next = number_at(content, here)?;
        let mut page = vec![0; self.usable];
        while all.len() < length {
            self.read_at(next, &mut page)?;
            next = number_at(&page, 0)?;
            let more = (length - all.len()).min(self.usable - 4);
            all.extend_from_slice(&page[4..4 + more]);
        }
        Some(all)
    }
}

/// The cells of a page of this kind, each up to the end of the page.
fn cells(page: &[u8], kind: u8) -> Option<impl Iterator<Item = Option<&[u8]>>> {
    let header = if kind == LEAF { 8 } else { 12 };
    let count = usize::from(u16::from_be_bytes([*page.get(3)?, *page.get(4)?]));
    let pointers = page.get(header..header + 2 * count)?;
    // Only the root of an empty table has none.
    let is_sound = page[0] == kind && count > 0;
    is_sound.then(|| {
        pointers.chunks_exact(2).map(move |pointer| {
            let at = usize::from(u16::from_be_bytes([pointer[0], pointer[1]]));
            // The smallest cell has four bytes; that of an inner page has five.
            let last = page.len() - if kind == LEAF { 4 } else { 5 };
            (header + 2 * count..=last).contains(&at).then(|| &page[at..])
        })
    })
}

fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
