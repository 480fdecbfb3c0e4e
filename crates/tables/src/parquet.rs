//! The tables as Parquet files, one each, with their provenance in the metadata.

use std::borrow::Borrow;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::ArrowError;
use busbound_diagnosis::Diagnosis;
use busbound_trace::Trace;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use crate::schema::{TABLES_SCHEMA, Table};
use crate::tables::{Batches, Tables};

/// Where the tables come from, as key-value metadata of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance(Vec<(String, String)>);

impl Provenance {
    pub fn of(diagnosis: &Diagnosis) -> Self {
        let source = &diagnosis.source;
        let gpus = serde_json::to_string(&diagnosis.machine.gpus).unwrap_or_default();
        let entries = [
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("schema", TABLES_SCHEMA.to_owned()),
            ("source", source.path.clone()),
            ("format", source.format.to_owned()),
            ("complete", source.complete.to_string()),
            ("gpus", gpus),
        ];
        Self(entries.map(|(key, value)| (format!("busbound.{key}"), value)).into())
    }
}

/// A file that could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Parquet { path: PathBuf, source: ParquetError },
    #[error("{}: {source}", path.display())]
    Arrow { path: PathBuf, source: ArrowError },
}

/// Rows buffered and compressed before they are written: readers skip whole groups.
const ROW_GROUP: usize = 1 << 20;

/// Writes `events.parquet`, `copies.parquet`, `gaps.parquet` and `steps.parquet` into a folder, which is created if
/// needed. Replaces existing files with these names.
///
/// # Errors
/// If the folder or a file in it cannot be written.
pub fn write_parquet<T: Borrow<Trace>>(
    folder: &Path,
    tables: &Arc<Tables<T>>,
    provenance: &Provenance,
) -> Result<(), WriteError> {
    fs::create_dir_all(folder).map_err(|source| WriteError::Io { path: folder.to_owned(), source })?;
    let about = provenance.0.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let properties = WriterProperties::builder()
        .set_created_by(concat!("busbound ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(about.collect()))
        // Every reader supports it, it is fast, and it needs no C compiler.
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .build();
    for table in Table::ALL {
        let path = folder.join(table.name()).with_extension("parquet");
        write(&path, Batches::of(tables, table), properties.clone())?;
    }
    Ok(())
}

fn write<T: Borrow<Trace>>(
    path: &Path,
    batches: Batches<T>,
    properties: WriterProperties,
) -> Result<(), WriteError> {
    let parquet = |source| WriteError::Parquet { path: path.to_owned(), source };
    let file = File::create(path).map_err(|source| WriteError::Io { path: path.to_owned(), source })?;
    let schema = arrow_array::RecordBatchReader::schema(&batches);
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).map_err(parquet)?;
    for batch in batches {
        let batch = batch.map_err(|source| WriteError::Arrow { path: path.to_owned(), source })?;
        writer.write(&batch).map_err(parquet)?;
    }
    writer.close().map_err(parquet)?;
    Ok(())
}
