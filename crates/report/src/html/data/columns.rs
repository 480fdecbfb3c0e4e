//! Encodes tables as LEB128 numbers, column by column, because columns compress better than rows.

/// The type of a column's values, how they are stored, and how to get one from a row.
pub(super) enum Values<T> {
    /// Any number from 0 to 2^53, stored unchanged.
    Number(fn(&T) -> u64),
    /// An index into a list, stored unchanged.
    Index(fn(&T) -> u32),
    /// A count of at least one, stored minus one.
    Count(fn(&T) -> u32),
    /// An optional number: 0 for none, otherwise the number plus one.
    Optional(fn(&T) -> Option<u64>),
    /// 1 for true, 0 for false.
    Flag(fn(&T) -> bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Nanoseconds,
    Bytes,
    None,
}

/// One column of rows of type `T`.
pub(super) struct Column<T: 'static> {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) doc: &'static str,
    pub(super) values: Values<T>,
}

pub(super) struct Table<T: 'static> {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    pub(super) columns: &'static [Column<T>],
}

/// The description of a table, independent of its row type.
pub(super) struct TableDescription {
    pub(super) name: &'static str,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "used by the generated TypeScript, which a test writes")
    )]
    pub(super) doc: &'static str,
    pub(super) columns: Vec<ColumnDescription>,
}

pub(super) struct ColumnDescription {
    pub(super) name: &'static str,
    pub(super) encoding: &'static str,
    pub(super) unit: &'static str,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "used by the generated TypeScript, which a test writes")
    )]
    pub(super) doc: &'static str,
}

impl<T> Values<T> {
    /// The name of the encoding, for the reader.
    pub(super) fn encoding(&self) -> &'static str {
        match self {
            Self::Number(_) => "number",
            Self::Index(_) => "index",
            Self::Count(_) => "count",
            Self::Optional(_) => "optional",
            Self::Flag(_) => "flag",
        }
    }

    fn stored(&self, row: &T) -> u64 {
        match self {
            Self::Number(value) => value(row),
            Self::Index(value) => u64::from(value(row)),
            Self::Count(value) => u64::from(value(row)).saturating_sub(1),
            Self::Optional(value) => value(row).map_or(0, |value| value + 1),
            Self::Flag(value) => u64::from(value(row)),
        }
    }
}

impl Unit {
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::Bytes => "bytes",
            Self::None => "",
        }
    }
}

impl<T> Table<T> {
    pub(super) fn description(&self) -> TableDescription {
        let column = |column: &Column<T>| ColumnDescription {
            name: column.name,
            encoding: column.values.encoding(),
            unit: column.unit.id(),
            doc: column.doc,
        };
        TableDescription {
            name: self.name,
            doc: self.doc,
            columns: self.columns.iter().map(column).collect(),
        }
    }

    /// Appends all columns of these rows.
    pub(super) fn write(&self, rows: &[T], bytes: &mut Vec<u8>) {
        for column in self.columns {
            for row in rows {
                leb128(column.values.stored(row), bytes);
            }
        }
    }
}

fn leb128(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_leb128() {
        let mut bytes = Vec::new();
        for value in [0u64, 127, 128, 300, 1 << 35] {
            leb128(value, &mut bytes);
        }
        assert_eq!(bytes, [0, 0x7f, 0x80, 1, 0xac, 2, 0x80, 0x80, 0x80, 0x80, 0x80, 1]);
    }

    #[test]
    fn common_values_are_stored_as_small_numbers() {
        let stored = |values: Values<u32>, row: u32| values.stored(&row);
        assert_eq!(stored(Values::Count(|row| *row), 1), 0);
        assert_eq!(stored(Values::Optional(|_| None), 9), 0);
        assert_eq!(stored(Values::Optional(|row| Some(u64::from(*row))), 0), 1);
        assert_eq!(stored(Values::Flag(|row| *row > 2), 3), 1);
    }
}
