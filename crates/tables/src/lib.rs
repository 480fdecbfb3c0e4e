//! The trace as tables: Arrow record batches of its events, copies, collectives, gaps and steps, and Parquet files of them.
//!
//! ```
//! use busbound_diagnosis::{Options, Source, diagnose_and_itemize};
//! use busbound_machine::Machine;
//! use busbound_tables::{Table, Tables};
//! use busbound_trace::TraceBuilder;
//!
//! let mut trace = TraceBuilder::default();
//! let stream = trace.stream(0, 7);
//! trace.kernel(stream, "gemm", 1_000..201_000);
//! let trace = trace.finish();
//! let source = Source::named("run.json");
//! let (_, items) = diagnose_and_itemize(&trace, &source, &Machine::default(), &Options::default());
//! let tables = Tables::of(&trace, items);
//! assert_eq!(tables.rows(Table::Events), 1);
//! let batch = tables.batch(Table::Events, 0..1)?;
//! assert_eq!(batch.schema().field(3).name(), "start_ns");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Times are 64-bit integers of nanoseconds instead of Arrow timestamps: they are on the profiler's own clock
//! (CUPTI's), whose zero is not a date. Times of different traces cannot be compared.

mod collectives;
mod column;
mod columns;
mod copies;
mod events;
mod gaps;
mod history;
mod parquet;
mod schema;
mod steps;
mod tables;
mod words;

pub use crate::column::{Column, ColumnType};
pub use crate::history::write_history;
pub use crate::parquet::{Provenance, WriteError, write_parquet};
pub use crate::schema::{TABLES_SCHEMA, Table};
pub use crate::tables::{Batches, Tables};
