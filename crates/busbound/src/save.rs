//! Writing an answer to a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use busbound_report::{Format, RenderError, Report, Style};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::Error;

/// Writes an answer to a file, compressed if its name ends in `.gz`.
///
/// # Errors
/// If the file cannot be written, or the format does not support this answer.
pub fn save(report: &dyn Report, format: Format, style: &Style, path: &Path) -> Result<(), Error> {
    let file = File::create(path).map_err(Error::io(path))?;
    write(report, format, style, path, file).map_err(|error| match error {
        RenderError::Io(error) => Error::Io { path: path.to_owned(), error },
        error => Error::Render { path: path.to_owned(), error },
    })
}

fn write(
    report: &dyn Report,
    format: Format,
    style: &Style,
    path: &Path,
    file: File,
) -> Result<(), RenderError> {
    let mut out = BufWriter::new(file);
    if path.extension().is_some_and(|extension| extension == "gz") {
        // A viewer decompresses it only once, so fast writing matters more than size.
        let mut packed = GzEncoder::new(out, Compression::fast());
        report.write(format, style, &mut packed)?;
        out = packed.finish()?;
    } else {
        report.write(format, style, &mut out)?;
    }
    Ok(out.flush()?)
}
