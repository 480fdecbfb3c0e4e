//! Which tables exist, and which columns do they have? docs/tables.md is checked against this.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};

use crate::column::Column;
use crate::{collectives, copies, events, gaps, steps};

/// The version of the columns; it increases when a column changes its meaning.
pub const TABLES_SCHEMA: &str = "busbound.tables/2";

/// One of the tables of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Events,
    Copies,
    Collectives,
    Gaps,
    Steps,
}

impl Table {
    pub const ALL: [Self; 5] = [Self::Events, Self::Copies, Self::Collectives, Self::Gaps, Self::Steps];

    /// Also the name of its file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Copies => "copies",
            Self::Collectives => "collectives",
            Self::Gaps => "gaps",
            Self::Steps => "steps",
        }
    }

    /// One sentence: what a row is.
    pub fn what(self) -> &'static str {
        match self {
            Self::Events => "All recorded events, in file order.",
            Self::Copies => "All copies, by device and stream, then in time order.",
            Self::Collectives => "All communication kernels, by device and stream, then in time order.",
            Self::Gaps => "All gaps between work on a device, by device, then in time order.",
            Self::Steps => {
                "All steps, if steps are found. A step lasts from the end of the previous one to its own end; \
                 times are unions per device, summed over the devices."
            }
        }
    }

    pub fn columns(self) -> &'static [Column] {
        match self {
            Self::Events => events::COLUMNS,
            Self::Copies => copies::COLUMNS,
            Self::Collectives => collectives::COLUMNS,
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
