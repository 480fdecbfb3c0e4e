//! The rows of a table, copied out of SQLite so that several threads can read them.

use std::borrow::Cow;

use rusqlite::types::ValueRef;

/// Whether to read further rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Row,
    Stop,
}

/// A column to read: its position in the table, and its place in the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stored {
    pub(super) column: usize,
    pub(super) place: usize,
}

/// Some rows of a table with the same columns.
#[derive(Debug, Default)]
pub(super) struct Rows {
    columns: usize,
    count: usize,
    values: Vec<Value>,
    text: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Null,
    Integer(i64),
    Real(f64),
    /// Where it begins in the text of all rows, and where it ends.
    Text(u32, u32),
    /// Bytes, which no column that is read has, or more text than fits.
    Other,
}

impl Rows {
    /// Room for rows with this many columns.
    pub(super) fn of(columns: usize) -> Self {
        Self { columns, ..Self::default() }
    }

    /// Adds a row. Its first value is its number.
    pub(super) fn push(&mut self, row: &rusqlite::Row<'_>) {
        for place in 1..=self.columns {
            let value = match row.get_ref(place) {
                Ok(ValueRef::Integer(number)) => Value::Integer(number),
                Ok(ValueRef::Real(number)) => Value::Real(number),
                Ok(ValueRef::Text(text)) => self.keep(text),
                Ok(ValueRef::Blob(_)) => Value::Other,
                Ok(ValueRef::Null) | Err(_) => Value::Null,
            };
            self.values.push(value);
        }
        self.count += 1;
    }

    /// Adds a row as it is stored in the file. `wanted` is in the order of the table's columns, and has all that are kept.
    /// `None` if the row lacks one of them, or is damaged.
    pub(super) fn push_record(&mut self, record: &[u8], wanted: &[Stored]) -> Option<()> {
        let (header, mut at) = varint(record)?;
        let header = usize::try_from(header).ok()?;
        let types = record.get(..header)?;
        let first = self.values.len();
        self.values.resize(first + self.columns, Value::Null);
        let (mut column, mut body) = (0, header);
        for stored in wanted {
            loop {
                let (kind, used) = varint(types.get(at..)?)?;
                let until = body.checked_add(stored_bytes(kind)?)?;
                (at, column) = (at + used, column + 1);
                let bytes = body..until;
                body = until;
                if column > stored.column {
                    self.values[first + stored.place] = self.stored(kind, record.get(bytes)?)?;
                    break;
                }
            }
        }
        // A row ends with its last column.
        let is_sound = at < types.len() || body == record.len();
        self.count += 1;
        is_sound.then_some(())
    }

    fn stored(&mut self, kind: u64, bytes: &[u8]) -> Option<Value> {
        Some(match kind {
            0 => Value::Null,
            1..=6 => {
                // The sign is that of the first byte.
                let sign = i64::from(bytes.first()?.cast_signed() >> 7);
                Value::Integer(bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte)))
            }
            7 => match f64::from_be_bytes(bytes.try_into().ok()?) {
                number if number.is_nan() => Value::Null,
                number => Value::Real(number),
            },
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            kind if kind % 2 == 0 => Value::Other,
            _ => self.keep(bytes),
        })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    fn keep(&mut self, text: &[u8]) -> Value {
        let from = u32::try_from(self.text.len());
        let (Ok(from), Ok(until)) = (from, u32::try_from(self.text.len() + text.len())) else {
            return Value::Other;
        };
        self.text.extend_from_slice(text);
        Value::Text(from, until)
    }

    /// Replaces all rows by this one, and passes it on.
    pub(super) fn take_only(
        &mut self,
        row: &rusqlite::Row<'_>,
        places: &[Option<usize>],
        take: &mut dyn FnMut(&Row<'_>) -> Next,
    ) -> Next {
        self.count = 0;
        self.values.clear();
        self.text.clear();
        self.push(row);
        take(&Row { values: &self.values, text: &self.text, places })
    }

    /// Each row; `places` says at which place in it a wanted column is.
    pub(super) fn iter<'a>(&'a self, places: &'a [Option<usize>]) -> impl Iterator<Item = Row<'a>> {
        (0..self.count).map(move |row| Row {
            values: &self.values[row * self.columns..(row + 1) * self.columns],
            text: &self.text,
            places,
        })
    }
}

/// How many bytes a value of this type takes; `None` for types that SQLite reserves.
fn stored_bytes(kind: u64) -> Option<usize> {
    match kind {
        0 | 8 | 9 => Some(0),
        1..=4 => usize::try_from(kind).ok(),
        5 => Some(6),
        6 | 7 => Some(8),
        10 | 11 => None,
        _ => usize::try_from((kind - 12) / 2).ok(),
    }
}

/// A number of one to nine bytes, and how many it takes.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((first.into(), 1));
    }
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

/// One row, with its values in the order of the requested columns. A column that the table lacks is empty.
pub(super) struct Row<'a> {
    values: &'a [Value],
    text: &'a [u8],
    places: &'a [Option<usize>],
}

impl Row<'_> {
    fn value(&self, column: usize) -> Value {
        let place = self.places.get(column).copied().flatten();
        place.and_then(|place| self.values.get(place).copied()).unwrap_or(Value::Null)
    }

    fn bytes(&self, from: u32, until: u32) -> &[u8] {
        &self.text[from as usize..until as usize]
    }

    pub(super) fn is_empty(&self, column: usize) -> bool {
        matches!(self.value(column), Value::Null)
    }

    pub(super) fn integer(&self, column: usize) -> Option<i64> {
        match self.value(column) {
            Value::Integer(number) => Some(number),
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

    /// Without a copy, for rows that are many.
    pub(super) fn text_ref(&self, column: usize) -> Option<Cow<'_, str>> {
        match self.value(column) {
            Value::Text(from, until) => Some(String::from_utf8_lossy(self.bytes(from, until))),
            Value::Integer(number) => Some(number.to_string().into()),
            _ => None,
        }
    }
}
