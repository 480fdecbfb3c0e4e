//! The rows of a table, copied out of SQLite so that several threads can read them.

use std::borrow::Cow;

use rusqlite::types::ValueRef;

/// Whether to read further rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Row,
    Stop,
}

/// Some rows of a table with the same columns.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// A row of which nothing is known yet.
    empty: Vec<Value>,
    count: usize,
    values: Vec<Value>,
    text: Vec<u8>,
}

/// A column that is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    /// Its position in the table.
    pub(super) position: usize,
    /// Where its value is in a row.
    pub(super) place: usize,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Null,
    Integer(i64),
    Real(f64),
    /// Where it begins in the text of all rows, and where it ends.
    Text(u32, u32),
    /// The same for bytes.
    Bytes(u32, u32),
    /// More text than fits.
    Other,
}

impl Rows {
    /// Room for rows with this many columns.
    pub(super) fn of(columns: usize) -> Self {
        Self { empty: vec![Value::Null; columns], ..Self::default() }
    }

    /// Adds an empty row; where its values begin.
    #[inline]
    fn add_row(&mut self) -> usize {
        let begin = self.values.len();
        self.values.extend_from_slice(&self.empty);
        self.count += 1;
        begin
    }

    /// Adds a row. Its first value is its number; those of these columns follow.
    pub(super) fn push(&mut self, row: &rusqlite::Row<'_>, stored: &[Stored]) {
        let begin = self.add_row();
        for (at, column) in stored.iter().enumerate() {
            let value = match row.get_ref(at + 1) {
                Ok(ValueRef::Integer(number)) => Value::Integer(number),
                Ok(ValueRef::Real(number)) => Value::Real(number),
                Ok(ValueRef::Text(text)) => self.keep(text, Value::Text),
                Ok(ValueRef::Blob(bytes)) => self.keep(bytes, Value::Bytes),
                Ok(ValueRef::Null) | Err(_) => Value::Null,
            };
            self.values[begin + column.place] = value;
        }
    }

    /// Adds a row as it is stored in the file. `wanted` has all columns that are kept, in the order of the table. `None` if the row
    /// lacks one of them, or is damaged.
    pub(super) fn push_record(&mut self, record: &[u8], wanted: &[Stored]) -> Option<()> {
        let (header, used) = varint(record)?;
        let header = usize::try_from(header).ok()?;
        let mut types = record.get(used..header)?;
        let begin = self.add_row();
        if self.fill_short((types, header), record, begin, wanted).is_some() {
            return Some(());
        }
        let (mut column, mut body) = (0, header);
        for stored in wanted {
            body = after(&mut types, stored.position - column, body)?;
            let (kind, bytes) = next_type(&mut types)?;
            let until = body.checked_add(bytes)?;
            let value = self.stored(kind, record.get(..until)?, body)?;
            *self.values.get_mut(begin + stored.place)? = value;
            (column, body) = (stored.position + 1, until);
        }
        // A row ends with its last column.
        let is_sound = !types.is_empty() || body == record.len();
        is_sound.then_some(())
    }

    /// Fills the row that begins at `begin` if it is like most rows: columns after the wanted ones, types of one byte, whole numbers
    /// and text. `None` if it is not, whatever is filled by then.
    #[inline]
    fn fill_short(
        &mut self,
        (types, mut body): (&[u8], usize),
        record: &[u8],
        begin: usize,
        wanted: &[Stored],
    ) -> Option<()> {
        // What is not short takes more bytes than there are.
        if wanted.last()?.position + 1 >= types.len() || record.len() >= ODD as usize {
            return None;
        }
        let mut column = 0;
        for stored in wanted {
            for kind in types.get(column..stored.position)? {
                body += SKIPPED[usize::from(*kind)] as usize;
            }
            let kind = *types.get(stored.position)?;
            let until = body + SKIPPED[usize::from(kind)] as usize;
            let bytes = record.get(..until)?;
            let value = match kind {
                0 => Value::Null,
                1..=6 => Value::Integer(integer(bytes, body)),
                8 | 9 => Value::Integer((kind - 8).into()),
                13.. if kind % 2 == 1 => self.keep(&bytes[body..], Value::Text),
                _ => return None,
            };
            *self.values.get_mut(begin + stored.place)? = value;
            (column, body) = (stored.position + 1, until);
        }
        Some(())
    }

    /// The value of this type that begins at `from` and takes all bytes after it.
    #[inline]
    fn stored(&mut self, kind: u64, bytes: &[u8], from: usize) -> Option<Value> {
        Some(match kind {
            0 => Value::Null,
            1..=6 => Value::Integer(integer(bytes, from)),
            7 => match f64::from_be_bytes(bytes[from..].try_into().ok()?) {
                number if number.is_nan() => Value::Null,
                number => Value::Real(number),
            },
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            kind if kind % 2 == 0 => self.keep(&bytes[from..], Value::Bytes),
            _ => self.keep(&bytes[from..], Value::Text),
        })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    fn keep(&mut self, bytes: &[u8], kind: fn(u32, u32) -> Value) -> Value {
        let from = u32::try_from(self.text.len());
        let (Ok(from), Ok(until)) = (from, u32::try_from(self.text.len() + bytes.len())) else {
            return Value::Other;
        };
        self.text.extend_from_slice(bytes);
        kind(from, until)
    }

    /// Replaces all rows by this one, and passes it on.
    pub(super) fn take_only(
        &mut self,
        row: &rusqlite::Row<'_>,
        stored: &[Stored],
        take: &mut dyn FnMut(&Row<'_>) -> Next,
    ) -> Next {
        self.count = 0;
        self.values.clear();
        self.text.clear();
        self.push(row, stored);
        take(&Row { values: &self.values, text: &self.text })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Row<'_>> {
        // Rows without columns have no values either.
        let each = self.values.chunks_exact(self.empty.len().max(1));
        each.map(|values| Row { values, text: &self.text })
    }
}

/// Where the values after this many columns begin, of values that begin at `body`.
#[inline]
fn after(types: &mut &[u8], columns: usize, body: usize) -> Option<usize> {
    let (skipped, rest) = types.split_at_checked(columns)?;
    let bytes: usize = skipped.iter().map(|kind| SKIPPED[usize::from(*kind)] as usize).sum();
    if bytes < ODD as usize {
        *types = rest;
        return body.checked_add(bytes);
    }
    (0..columns).try_fold(body, |body, _| body.checked_add(next_type(types)?.1))
}

/// More bytes than any number of columns with types of one byte takes.
const ODD: u32 = 1 << 24;

/// What [`stored_bytes`] says of types of one byte, and [`ODD`] for what begins longer ones and for what SQLite reserves.
const SKIPPED: [u32; 256] = {
    let mut all = [ODD; 256];
    let mut kind = 0;
    while kind < BYTES.len() {
        if BYTES[kind] != RESERVED {
            all[kind] = BYTES[kind] as u32;
        }
        kind += 1;
    }
    all
};

/// The next type of a row's values, and how many bytes such a value takes. `None` at their end, and for types that SQLite
/// reserves.
#[inline]
fn next_type(types: &mut &[u8]) -> Option<(u64, usize)> {
    // Almost all types are one byte: a table is faster than telling them apart.
    if let Some((&first, rest)) = types.split_first()
        && let Some(&bytes) = BYTES.get(usize::from(first))
    {
        *types = rest;
        return (bytes != RESERVED).then_some((first.into(), bytes.into()));
    }
    let (kind, used) = varint(types)?;
    *types = types.get(used..)?;
    Some((kind, stored_bytes(kind)?))
}

const RESERVED: u8 = u8::MAX;

/// What [`stored_bytes`] says of the types that are one byte.
const BYTES: [u8; 128] = {
    let mut all = [RESERVED; 128];
    let mut kind = 0;
    while kind < all.len() {
        if let Some(bytes) = stored_bytes(kind as u64) {
            all[kind] = bytes as u8;
        }
        kind += 1;
    }
    all
};

/// How many bytes a value of this type takes; `None` for types that SQLite reserves.
const fn stored_bytes(kind: u64) -> Option<usize> {
    match kind {
        0 | 8 | 9 => Some(0),
        1..=4 => Some(kind as usize),
        5 => Some(6),
        6 | 7 => Some(8),
        10 | 11 => None,
        _ => Some(((kind - 12) / 2) as usize),
    }
}

/// The number that begins at `from` and takes all bytes after it, at least one and at most eight. Its sign is that of the first.
#[inline]
fn integer(bytes: &[u8], from: usize) -> i64 {
    let sign_extended = |number: i64| {
        let unused = 64 - 8 * (bytes.len() - from) as u32;
        number << unused >> unused
    };
    // With the bytes before it, which mostly exist, it is read at once.
    match bytes.last_chunk() {
        Some(last) => sign_extended(i64::from_be_bytes(*last)),
        None => sign_extended(bytes.iter().fold(0, |number, byte| number << 8 | i64::from(*byte))),
    }
}

/// A number of one to nine bytes, and how many it takes.
#[inline]
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    match *bytes.first()? {
        first if first < 0x80 => Some((first.into(), 1)),
        first => long_varint(first, bytes),
    }
}

/// One that takes more than one byte.
#[inline(never)]
fn long_varint(first: u8, bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = u64::from(first & 0x7f);
    for (i, &byte) in bytes.get(1..)?.iter().take(8).enumerate() {
        if i == 7 {
            return Some((value << 8 | u64::from(byte), 9));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((value, i + 2));
        }
    }
    None
}

/// One row, with its values in the order in which they are asked for. A column that the table lacks is empty.
pub(super) struct Row<'a> {
    values: &'a [Value],
    text: &'a [u8],
}

impl Row<'_> {
    #[inline]
    fn value(&self, column: usize) -> Value {
        self.values.get(column).copied().unwrap_or(Value::Null)
    }

    fn bytes(&self, from: u32, until: u32) -> &[u8] {
        &self.text[from as usize..until as usize]
    }

    #[inline]
    pub(super) fn is_empty(&self, column: usize) -> bool {
        matches!(self.value(column), Value::Null)
    }

    #[inline]
    pub(super) fn integer(&self, column: usize) -> Option<i64> {
        match self.value(column) {
            Value::Integer(number) => Some(number),
            Value::Null => None,
            other => self.as_integer(other),
        }
    }

    #[cold]
    fn as_integer(&self, value: Value) -> Option<i64> {
        match value {
            // Some converters write integers as floats.
            Value::Real(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(number as i64),
            // Others give every column the type text.
            Value::Text(from, until) => {
                std::str::from_utf8(self.bytes(from, until)).ok()?.trim().parse().ok()
            }
            _ => None,
        }
    }

    pub(super) fn unsigned(&self, column: usize) -> Option<u64> {
        u64::try_from(self.integer(column)?).ok()
    }

    pub(super) fn text(&self, column: usize) -> Option<String> {
        self.text_ref(column).map(Cow::into_owned)
    }

    /// Bytes; also of a column whose bytes were stored as text.
    pub(super) fn data(&self, column: usize) -> Option<&[u8]> {
        match self.value(column) {
            Value::Bytes(from, until) => Some(self.bytes(from, until)),
            _ => self.text_bytes(column),
        }
    }

    /// As it is stored, sound or not.
    #[inline]
    pub(super) fn text_bytes(&self, column: usize) -> Option<&[u8]> {
        match self.value(column) {
            Value::Text(from, until) => Some(self.bytes(from, until)),
            _ => None,
        }
    }

    /// Without a copy, for rows that are many.
    pub(super) fn text_ref(&self, column: usize) -> Option<Cow<'_, str>> {
        match self.value(column) {
            Value::Text(from, until) => {
                // Text is mostly sound: to find that out is faster than to look for damage.
                let bytes = self.bytes(from, until);
                Some(
                    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed),
                )
            }
            Value::Integer(number) => Some(number.to_string().into()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_size_keep_their_sign() {
        for size in [1, 2, 3, 4, 6, 8] {
            for number in [0, 1, -1, i64::MIN >> (64 - 8 * size), i64::MAX >> (64 - 8 * size)] {
                let stored = &number.to_be_bytes()[8 - size..];
                assert_eq!(integer(stored, 0), number);
                // With other bytes before it.
                let record = [&[0xff, 0x7f, 0xff, 0x7f, 0xff, 0x7f, 0xff, 0x7f], stored].concat();
                assert_eq!(integer(&record, 8), number);
            }
        }
    }

    #[test]
    fn types_that_sqlite_reserves_are_not_read() {
        for (kind, bytes) in
            [(0, Some(0)), (5, Some(6)), (9, Some(0)), (10, None), (11, None), (13, Some(0)), (127, Some(57))]
        {
            assert_eq!(next_type(&mut &[kind][..]).map(|(_, bytes)| bytes), bytes, "{kind}");
        }
        // More than one byte: text of a hundred bytes.
        assert_eq!(next_type(&mut &[0x81, 0x55][..]), Some((213, 100)));
        assert_eq!(next_type(&mut &[][..]), None);
    }
}
