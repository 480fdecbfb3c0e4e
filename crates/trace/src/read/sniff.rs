//! What is this file? The first bytes decide; the name only counts if they do not.

use std::path::Path;

use crate::reader::{Confidence, Reader};
use crate::registry::readers;

/// What the first bytes and the name indicate.
pub(crate) enum Content {
    /// Compressed: the contents are known once they are inflated.
    Gzip,
    Read(&'static dyn Reader),
    /// A format that is not supported, and what to do about it.
    Unsupported {
        what: &'static str,
        hint: &'static str,
    },
}

/// Formats that are not supported, by their first bytes.
const FOREIGN: [(&[u8], &str, &str); 14] = [
    (b"\x28\xb5\x2f\xfd", "zstd-compressed", "decompress it first: zstd -d FILE"),
    (b"BZh", "bzip2-compressed", "decompress it first: bunzip2 FILE"),
    (b"\xfd7zXZ\0", "xz-compressed", "decompress it first: unxz FILE"),
    (b"PK\x03\x04", "a zip archive", "unpack it first: unzip FILE"),
    (b"\xff\xfe", "UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8 FILE"),
    (b"\xfe\xff", "UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8 FILE"),
    (b"\x7fELF", "a program", "pass the trace that the program wrote"),
    (b"\x89PNG", "a PNG image", "pass the trace itself, not a picture of it"),
    (b"\xff\xd8\xff", "a JPEG image", "pass the trace itself, not a picture of it"),
    (b"%PDF", "a PDF", "pass the trace itself"),
    (b"PAR1", "a Parquet file", "pass the trace that it was made from"),
    (b"\x93NUMPY", "a NumPy array", "pass the file that torch.profiler's export_chrome_trace wrote"),
    (b"\x80\x04", "a Python pickle", "pass the file that torch.profiler's export_chrome_trace wrote"),
    (b"<", "HTML or XML", "pass the JSON trace itself, not a web page"),
];

/// Formats that are not supported, by the end of the file's name: their first bytes could be anything.
const FOREIGN_NAMES: [(&str, &str, &str); 2] = [
    (".pftrace", "a Perfetto trace", "convert it first: traceconv json FILE FILE.json"),
    (".perfetto-trace", "a Perfetto trace", "convert it first: traceconv json FILE FILE.json"),
];

pub(crate) fn sniff(head: &[u8], path: &Path) -> Content {
    let Some((confidence, reader)) = surest(head, path) else {
        return Content::Unsupported { what: "in an unknown format", hint: "no reader is registered" };
    };
    if confidence > Confidence::Fallback {
        return Content::Read(reader);
    }
    if is_gzip(head) {
        return Content::Gzip;
    }
    let name = path.to_string_lossy().to_ascii_lowercase();
    if let Some(&(_, what, hint)) = FOREIGN_NAMES.iter().find(|(end, ..)| name.ends_with(end)) {
        return Content::Unsupported { what, hint };
    }
    match FOREIGN.iter().find(|(magic, ..)| head.starts_with(magic)) {
        Some(&(_, what, hint)) => Content::Unsupported { what, hint },
        None => Content::Read(reader),
    }
}

/// The reader with the highest confidence; if two are equal, the later one.
pub(crate) fn surest(head: &[u8], path: &Path) -> Option<(Confidence, &'static dyn Reader)> {
    let sniffed = readers().iter().map(|&reader| (reader.sniff(head, path), reader));
    sniffed.max_by_key(|(confidence, _)| *confidence)
}

/// Also accepts a head that is cut inside the magic number.
fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(super::gzip::MAGIC) || head == [0x1f] || head == [0x1f, 0x8b]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They were traces without profiler events.
    #[test]
    fn pictures_and_documents_are_called_what_they_are() {
        let what = |head: &[u8]| match sniff(head, Path::new("trace.json")) {
            Content::Unsupported { what, .. } => what,
            Content::Read(reader) => reader.format().id,
            Content::Gzip => "gzip",
        };
        assert_eq!(what(b"\x89PNG\r\n\x1a\n"), "a PNG image");
        assert_eq!(what(b"\xff\xd8\xff\xe0\0\x10JFIF"), "a JPEG image");
        assert_eq!(what(b"%PDF-1.7"), "a PDF");
        assert_eq!(what(b"PAR1\x15\x04"), "a Parquet file");
        assert_eq!(what(b"{\"traceEvents\": ["), "kineto-json");
    }
}
