//! What sort of file is this? Told from its first bytes; the name is not trusted.

use busbound_capture::format::MAGIC;

/// What the first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Gzip,
    /// What `busbound record` wrote.
    Capture,
    /// An SQLite database; Nsight Systems exports them.
    Sqlite,
    /// JSON, or text damaged enough to be worth a try.
    Text,
    /// A format this version does not read, and what to do about it.
    Unsupported {
        what: &'static str,
        hint: &'static str,
    },
}

/// Bytes that [`sniff`] wants to see.
pub(crate) const SNIFFED: usize = 16;

pub(crate) fn sniff(head: &[u8]) -> Content {
    const FOREIGN: [(&[u8], &str, &str); 8] = [
        (b"\x28\xb5\x2f\xfd", "zstd-compressed", "decompress it first: zstd -d FILE"),
        (b"BZh", "bzip2-compressed", "decompress it first: bunzip2 FILE"),
        (b"\xfd7zXZ\0", "xz-compressed", "decompress it first: unxz FILE"),
        (b"PK\x03\x04", "a zip archive", "unpack it first: unzip FILE"),
        (b"\xff\xfe", "UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8 FILE"),
        (b"\xfe\xff", "UTF-16 text", "convert it first: iconv -f UTF-16 -t UTF-8 FILE"),
        (b"\x7fELF", "a program", "give the trace that the program wrote"),
        (b"<", "HTML or XML", "give the JSON trace itself, not a page about it"),
    ];
    if head.starts_with(super::gzip::MAGIC) || head == [0x1f] || head == [0x1f, 0x8b] {
        return Content::Gzip;
    }
    if !head.is_empty() && (head.starts_with(MAGIC) || MAGIC.starts_with(head)) {
        return Content::Capture;
    }
    if head.starts_with(b"SQLite format 3\0") {
        return Content::Sqlite;
    }
    FOREIGN
        .iter()
        .find(|(magic, ..)| head.starts_with(magic))
        .map_or(Content::Text, |&(_, what, hint)| Content::Unsupported { what, hint })
}
