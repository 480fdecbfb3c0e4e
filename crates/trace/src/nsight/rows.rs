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
