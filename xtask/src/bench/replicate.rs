//! A trace repeated in time: the same events again and again, each copy later than the last and with its own ids.
//! Otherwise byte for byte as the profiler wrote it.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use memchr::memmem;

/// A replicated trace, plain and compressed, and its contents.
pub(crate) struct Replica {
    pub(crate) plain: PathBuf,
    pub(crate) gzip: PathBuf,
    pub(crate) json_mb: f64,
}

pub(crate) fn replicate(trace: &Path, folder: &Path, times: u64) -> anyhow::Result<Replica> {
    let plain = folder.join(format!("x{times}.json"));
    let gzip = folder.join(format!("x{times}.json.gz"));
    let mut json = Vec::new();
    MultiGzDecoder::new(File::open(trace)?)
        .read_to_end(&mut json)
        .context("the trace must be a complete .json.gz")?;
    let open = memmem::find(&json, b"\"traceEvents\": [").context("no traceEvents in the trace")? + 16;
    let close = memmem::rfind(&json, b"\n  ]").context("the list of events has no end")?;
    let span = 10_000_000; // Microseconds between copies: longer than the trace.
    let mut out = BufWriter::new(File::create(&plain)?);
    let mut packed = GzEncoder::new(BufWriter::new(File::create(&gzip)?), Compression::new(6));
    let mut written = 0;
    let mut put = |bytes: &[u8]| -> std::io::Result<()> {
        written += bytes.len();
        out.write_all(bytes)?;
        packed.write_all(bytes)
    };
    put(&json[..open])?;
    for copy in 0..times {
        if copy > 0 {
            put(b",")?;
        }
        put(&shifted(&json[open..close], copy, span))?;
    }
    put(&json[close..])?;
    out.flush()?;
    packed.finish()?.flush()?;
    Ok(Replica { plain, gzip, json_mb: written as f64 / 1e6 })
}

/// The events with their times and ids shifted for this copy.
fn shifted(events: &[u8], copy: u64, span: u64) -> Vec<u8> {
    const KEYS: [(&[u8], bool); 4] = [
        (b"\"ts\": ", true),
        (b"\"correlation\": ", false),
        (b"\"External id\": ", false),
        (b"\"id\": ", false),
    ];
    let mut out = Vec::with_capacity(events.len() + events.len() / 16);
    let mut from = 0;
    while let Some(quote) = memchr::memchr(b'"', &events[from..]).map(|i| from + i) {
        let key = KEYS.iter().find(|(key, _)| events[quote..].starts_with(key));
        let Some((key, is_time)) = key else {
            out.extend_from_slice(&events[from..=quote]);
            from = quote + 1;
            continue;
        };
        let digits = quote + key.len();
        let end = events[digits..].iter().position(|b| !b.is_ascii_digit()).map_or(digits, |n| digits + n);
        let number: u64 =
            std::str::from_utf8(&events[digits..end]).ok().and_then(|t| t.parse().ok()).unwrap_or(0);
        let step = if *is_time { span } else { 10_000_000 };
        out.extend_from_slice(&events[from..digits]);
        out.extend_from_slice((number + copy * step).to_string().as_bytes());
        from = end;
    }
    out.extend_from_slice(&events[from..]);
    out
}
