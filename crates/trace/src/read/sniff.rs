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
const FOREIGN: [(&[u8], &str, &str); 16] = [
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
    (
        b"\"Kind\",\"Agent_Id\"",
        "a CSV table of rocprofv3",
        "record with torch.profiler, which has ROCm's copies and kernels too",
    ),
    (
        b"\"Index\",\"KernelName\"",
        "a CSV table of rocprof",
        "record with torch.profiler, which has ROCm's copies and kernels too",
    ),
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
    if is_perfetto(head) {
        let (_, what, hint) = FOREIGN_NAMES[0];
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

/// What Perfetto's packets begin with: a timestamp, ids of the writer, clocks, the configuration, the system, a UUID, tracks and events.
const PACKET_BEGINS: [&[u8]; 11] = [
    b"\x40",
    b"\x18",
    b"\x50",
    b"\x32",
    b"\x5a",
    b"\x62",
    b"\x8a\x02",
    b"\xea\x02",
    b"\xaa\x04",
    b"\xca\x05",
    b"\xe2\x03",
];
/// Characters of text begin with the tab: the lengths and fields of packets do not all look like text.
const FIRST_OF_TEXT: u8 = 0x09;

/// Whether it is a list of Perfetto's packets: each has the tag of field 1, its length, and as many bytes.
fn is_perfetto(head: &[u8]) -> bool {
    let mut rest = head;
    while !rest.is_empty() {
        let Some(packet) = packet(rest) else { return false };
        if !PACKET_BEGINS.iter().any(|begin| packet.starts_with(begin)) {
            return false;
        }
        let (_, length) = packet_length(&rest[1..]).unwrap_or_default();
        rest = packet.get(length..).unwrap_or_default();
    }
    head.iter().any(|byte| *byte < FIRST_OF_TEXT)
}

/// What follows the tag and the length of a packet.
fn packet(head: &[u8]) -> Option<&[u8]> {
    let rest = head.strip_prefix(b"\x0a")?;
    let (bytes, length) = packet_length(rest)?;
    (length > 0).then(|| &rest[bytes..])
}

/// A number of seven bits per byte: how many bytes it takes, and its value.
fn packet_length(rest: &[u8]) -> Option<(usize, usize)> {
    const MOST: usize = 5;
    let last = rest.iter().take(MOST).position(|byte| byte & 0x80 == 0)?;
    let digits = rest[..=last].iter().rev();
    Some((last + 1, digits.fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f))))
}

/// Also accepts a head that is cut inside the magic number.
fn is_gzip(head: &[u8]) -> bool {
    head.starts_with(super::gzip::MAGIC) || head == [0x1f] || head == [0x1f, 0x8b]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of Perfetto's own format under any name: it was a trace without profiler events.
    #[test]
    fn packets_of_perfetto_are_named_whatever_the_file_is_called() {
        let packet = |fields: &[u8]| [&[0x0a, fields.len() as u8][..], fields].concat();
        let packets =
            [packet(&[0x50, 1, 0x40, 7]), packet(&[0x32, 2, 0x08, 6]), packet(&[0x18, 0, 0x50, 1])].concat();
        for name in ["trace.pb", "trace.json", "trace"] {
            assert!(matches!(
                sniff(&packets, Path::new(name)),
                Content::Unsupported { what: "a Perfetto trace", .. }
            ));
        }
        // The first packet is longer than what is looked at.
        assert!(matches!(
            sniff(&[0x0a, 0x9d, 1, 0x32, 0x98, 1, 0x0a, 4, 8, 6], Path::new("t")),
            Content::Unsupported { .. }
        ));
        // JSON after empty lines.
        for text in [&b"\n\n{\"traceEvents\": [\n]}\n"[..], b"\n@\n", b"\n"] {
            assert!(matches!(sniff(text, Path::new("trace.json")), Content::Read(_)), "{text:?}");
        }
    }

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
        assert_eq!(what(b"\"Kind\",\"Agent_Id\",\"Queue_Id\"\n"), "a CSV table of rocprofv3");
        assert_eq!(what(b"\"Index\",\"KernelName\",\"gpu-id\"\n"), "a CSV table of rocprof");
        assert_eq!(what(b"{\"traceEvents\": ["), "kineto-json");
    }
}
