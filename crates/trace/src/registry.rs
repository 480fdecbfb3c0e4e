//! Which formats are supported? The only list of readers: sniffing, discovery, help texts and Python use it.

use crate::capture::Capture;
use crate::kineto::Kineto;
use crate::model::format::Format;
use crate::nsight::Nsight;
use crate::nsight::report::NsightReport;
use crate::reader::Reader;
use crate::stage_log::StageLog;
use crate::xplane::XPlane;

/// Every reader. If two are equally sure about a file, the later one reads it.
static READERS: [&dyn Reader; 6] = [&Kineto, &Capture, &Nsight, &NsightReport, &XPlane, &StageLog];

/// Every reader, in the order in which texts list them.
pub fn readers() -> &'static [&'static dyn Reader] {
    &READERS
}

/// The format with this id, as in JSON output.
pub fn format(id: &str) -> Option<&'static Format> {
    READERS.iter().map(|reader| reader.format()).find(|format| format.id == id)
}

/// The file name suffixes of all supported formats.
pub fn suffixes() -> impl Iterator<Item = &'static str> {
    READERS.iter().flat_map(|reader| reader.format().suffixes).copied()
}
