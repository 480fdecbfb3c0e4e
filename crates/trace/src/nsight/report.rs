//! Is it an Nsight Systems report? Only nsys reads these; this crate reads its exports.

use std::path::Path;

use crate::error::OpenError;
use crate::model::builder::TraceBuilder;
use crate::model::format::Format;
use crate::reader::{Confidence, ReadOptions, Reader, Source, Watch};

/// A report that must be exported before it can be read.
pub(crate) struct NsightReport;

pub(crate) static FORMAT: Format = Format {
    id: "nsys-report",
    files: ".nsys-rep, if nsys is installed to export it",
    suffixes: &[".nsys-rep", ".qdrep"],
    supersedes: &[],
    ..super::FORMAT
};

impl Reader for NsightReport {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    /// The format is not public and has no reliable magic number: the name decides, unless the first bytes match
    /// another format.
    fn sniff(&self, _: &[u8], path: &Path) -> Confidence {
        if is_named_like_report(path) { Confidence::ByName } else { Confidence::No }
    }

    fn read(
        &self,
        source: Source<'_>,
        _: &mut TraceBuilder,
        _: &ReadOptions,
        _: &mut Watch<'_>,
    ) -> Result<(), OpenError> {
        Err(OpenError::NsightReport { path: source.path.to_owned() })
    }
}

pub(crate) fn is_named_like_report(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    FORMAT.suffixes.iter().any(|suffix| name.ends_with(suffix))
}
