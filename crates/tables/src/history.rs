//! The recordings of jobs as Parquet files, in folders by job, rank and day: `job=…/rank=…/day=…/recordings.parquet`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use busbound_diagnosis::FigureId;
use busbound_fleet::{Job, RankSummary};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::parquet::WriteError;

const DAY_MS: i64 = 86_400_000;

/// The times of a recording that are columns, in milliseconds per step.
const FIGURES: [FigureId; 13] = [
    FigureId::SpanMs,
    FigureId::ComputeMs,
    FigureId::ExposedCommMs,
    FigureId::ExposedCopyMs,
    FigureId::ExposedBusCopyMs,
    FigureId::IdleMs,
    FigureId::IdleInputMs,
    FigureId::IdleLaunchMs,
    FigureId::IdleSyncMs,
    FigureId::IdleCopyMs,
    FigureId::IdleHostMs,
    FigureId::CommMs,
    FigureId::CopyMs,
];

/// Writes the recordings that say when they were made, and returns how many. Replaces existing files with these names.
///
/// # Errors
/// If a folder or a file cannot be written.
pub fn write_history(folder: &Path, jobs: &[Job]) -> Result<usize, WriteError> {
    let mut written = 0;
    for job in jobs {
        let mut parts: BTreeMap<(String, i64), Vec<(i64, &RankSummary)>> = BTreeMap::new();
        for one in &job.recordings {
            let Some(at) = one.recorded_ms else { continue };
            parts.entry((one.label().short(), at.div_euclid(DAY_MS))).or_default().push((at, one));
        }
        for ((rank, day), mut rows) in parts {
            rows.sort_by(|(at, one), (other_at, other)| (at, &one.path).cmp(&(other_at, &other.path)));
            let names = [("job", job.name.clone()), ("rank", rank), ("day", date(day))];
            let part = names
                .iter()
                .fold(folder.to_owned(), |path, (key, value)| path.join(format!("{key}={}", escaped(value))));
            write(&part, &rows)?;
            written += rows.len();
        }
    }
    Ok(written)
}

fn schema() -> SchemaRef {
    let mut fields = vec![
        Field::new("recorded_ms", DataType::Int64, false),
        Field::new("host", DataType::Utf8, true),
        Field::new("verdict", DataType::Utf8, false),
        Field::new("complete", DataType::Boolean, false),
        Field::new("trace", DataType::Utf8, false),
    ];
    fields.extend(FIGURES.iter().map(|figure| Field::new(figure.name(), DataType::Float64, true)));
    Arc::new(Schema::new(fields))
}

fn write(folder: &Path, rows: &[(i64, &RankSummary)]) -> Result<(), WriteError> {
    fs::create_dir_all(folder).map_err(|source| WriteError::Io { path: folder.to_owned(), source })?;
    let path = folder.join("recordings.parquet");
    let parquet = |source| WriteError::Parquet { path: path.clone(), source };
    let each = || rows.iter().map(|(_, one)| *one);
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|(at, _)| *at))),
        Arc::new(each().map(|one| one.host.as_deref()).collect::<StringArray>()),
        Arc::new(each().map(|one| Some(one.verdict.bound.id())).collect::<StringArray>()),
        Arc::new(each().map(|one| Some(one.complete)).collect::<BooleanArray>()),
        Arc::new(each().map(|one| Some(one.path.as_str())).collect::<StringArray>()),
    ];
    for figure in FIGURES {
        columns.push(Arc::new(each().map(|one| one.figure(figure)).collect::<Float64Array>()));
    }
    let batch = RecordBatch::try_new(schema(), columns)
        .map_err(|source| WriteError::Arrow { path: path.clone(), source })?;
    let properties = WriterProperties::builder()
        .set_created_by(concat!("busbound ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::SNAPPY)
        .build();
    let file = File::create(&path).map_err(|source| WriteError::Io { path: path.clone(), source })?;
    let mut writer = ArrowWriter::try_new(file, schema(), Some(properties)).map_err(parquet)?;
    writer.write(&batch).map_err(parquet)?;
    writer.close().map_err(parquet)?;
    Ok(())
}

/// As readers of such folders expect it: what may not be part of a name is `%` and its code.
fn escaped(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_dots = value.bytes().all(|byte| byte == b'.');
    let one = |byte: u8| {
        if plain(byte) && !is_dots { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    value.bytes().map(one).collect()
}

/// `2026-11-03` of a number of days since 1970, by Howard Hinnant's `civil_from_days`.
fn date(days: i64) -> String {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year_of_era + era * 400 + next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (days, wanted) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_758, "2026-11-01"),
            (-1, "1969-12-31"),
        ] {
            assert_eq!(date(days), wanted);
        }
    }

    #[test]
    fn names_stay_in_their_folder() {
        assert_eq!(escaped("../job a/é"), "..%2Fjob%20a%2F%C3%A9");
        assert_eq!(escaped(".."), "%2E%2E");
    }
}
