//! A column of a table: its name, what its values are, and what they mean.

use std::collections::HashMap;

use arrow_schema::{DataType, Field};

/// One column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub holds: ColumnType,
    pub nullable: bool,
    /// In a sentence: what a value is, and what it means if there is none.
    pub what: &'static str,
}

/// What values are. Integers are signed, because Spark has no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    Nanoseconds,
    Bytes,
    GigabytesPerSecond,
    /// An identifier or a number of things.
    Number,
    /// A small one.
    Index,
    Flag,
    /// One of few distinct strings, each kept once.
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

    /// As SQL calls it.
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

    /// A column that may have none.
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
