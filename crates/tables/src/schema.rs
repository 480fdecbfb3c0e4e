//! Which tables are there, and which columns do they have? docs/tables.md is checked against this.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};

use crate::column::Column;
use crate::{copies, events, gaps, steps};

/// What the columns are; a column that changes its meaning changes the number.
pub const TABLES_SCHEMA: &str = "busbound.tables/2";

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
