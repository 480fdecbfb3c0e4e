//! Which tables are there, and what is in their columns? docs/tables.md is checked against this.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::{copies, events, gaps, steps};

/// What the columns are; a column that changes its meaning changes the number.
pub const TABLES_SCHEMA: &str = "busbound.tables/1";

/// One of the tables that a trace comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Events,
    Copies,
    Gaps,
    Steps,
}

impl Table {
    pub const ALL: [Self; 4] = [Self::Events, Self::Copies, Self::Gaps, Self::Steps];

    /// Its file is called so.
    pub fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Copies => "copies",
            Self::Gaps => "gaps",
            Self::Steps => "steps",
        }
    }

    /// In a sentence: what a row is.
    pub fn what(self) -> &'static str {
        match self {
            Self::Events => "Everything that was recorded, in the order of the file.",
            Self::Copies => "Every copy of a device, by device and stream, then in order of time.",
            Self::Gaps => {
                "Every time between two pieces of work of a device, by device, then in order of time."
            }
            Self::Steps => {
                "Every step, where steps are found. It lasts from the end of the one before to its own end; \
                 times are unions per device, summed over the devices."
            }
        }
    }

    pub fn columns(self) -> &'static [Column] {
        match self {
            Self::Events => events::COLUMNS,
            Self::Copies => copies::COLUMNS,
            Self::Gaps => gaps::COLUMNS,
            Self::Steps => steps::COLUMNS,
        }
    }

    pub fn schema(self) -> SchemaRef {
        let fields: Vec<Field> = self.columns().iter().map(Column::field).collect();
        let about = [("schema", TABLES_SCHEMA), ("table", self.name())];
        let about = about.map(|(key, value)| (format!("busbound.{key}"), value.to_owned()));
        Arc::new(Schema::new_with_metadata(fields, HashMap::from(about)))
    }
}

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

    fn field(&self) -> Field {
        let mut about = HashMap::from([("description".to_owned(), self.what.to_owned())]);
        if let Some(unit) = self.holds.unit() {
            about.insert("unit".to_owned(), unit.to_owned());
        }
        Field::new(self.name, self.holds.arrow(), self.nullable).with_metadata(about)
    }
}
