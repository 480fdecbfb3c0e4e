//! A column of a table: its name, its type, and what its values mean.

use std::collections::HashMap;

use arrow_schema::{DataType, Field};

/// One column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub holds: ColumnType,
    pub nullable: bool,
    /// One sentence: what a value is, and what null means.
    pub what: &'static str,
}

/// The type of the values. Integers are signed, because Spark has no unsigned ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    Nanoseconds,
    Bytes,
    GigabytesPerSecond,
    /// An identifier or a count.
    Number,
    /// A small integer.
    Index,
    Flag,
    /// One of a few distinct strings, each stored once.
    Word,
}

impl ColumnType {
    pub fn unit(self) -> Option<&'static str> {
        match self {
            Self::Nanoseconds => Some("ns"),
            Self::Bytes => Some("B"),
            Self::GigabytesPerSecond => Some("GB/s"),
            Self::Number | Self::Index | Self::Flag | Self::Word => None,
        }
    }

    /// Its SQL type.
    pub fn sql(self) -> &'static str {
        match self {
            Self::Nanoseconds | Self::Bytes | Self::Number => "BIGINT",
            Self::GigabytesPerSecond => "DOUBLE",
            Self::Index => "INTEGER",
            Self::Flag => "BOOLEAN",
            Self::Word => "VARCHAR",
        }
    }

    fn arrow(self) -> DataType {
        match self {
            Self::Nanoseconds | Self::Bytes | Self::Number => DataType::Int64,
            Self::GigabytesPerSecond => DataType::Float64,
            Self::Index => DataType::Int32,
            Self::Flag => DataType::Boolean,
            Self::Word => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        }
    }
}

impl Column {
    /// A column that always has a value.
    pub(crate) const fn always(name: &'static str, holds: ColumnType, what: &'static str) -> Self {
        Self { name, holds, nullable: false, what }
    }

    /// A nullable column.
    pub(crate) const fn maybe(name: &'static str, holds: ColumnType, what: &'static str) -> Self {
        Self { name, holds, nullable: true, what }
    }

    pub(crate) fn field(&self) -> Field {
        let mut about = HashMap::from([("description".to_owned(), self.what.to_owned())]);
        if let Some(unit) = self.holds.unit() {
            about.insert("unit".to_owned(), unit.to_owned());
        }
        Field::new(self.name, self.holds.arrow(), self.nullable).with_metadata(about)
    }
}
