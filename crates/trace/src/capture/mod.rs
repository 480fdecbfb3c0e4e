//! The reader of `busbound record`'s own files.
//!
//! Chunks come in the order in which CUPTI delivered its buffers: names come before their use, but times are not
//! ordered. What depends on another record (the end of a range, the event a wait waits for) is joined at the end.

mod accesses;
mod format;
mod numa;
mod records;
mod waits;

use std::path::Path;

use busbound_capture::format::{Chunk, ChunkReader, MAGIC, Records};

use self::format::FORMAT;
use self::records::Recording;
use crate::error::OpenError;
use crate::model::builder::TraceBuilder;
use crate::model::format::Format;
use crate::model::stats::LossKind;
use crate::reader::{Confidence, ReadOptions, Reader, Source, Watch, require_events};

/// What `busbound record` writes.
pub(crate) struct Capture;

impl Reader for Capture {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    /// Also recognizes a file that is cut inside its magic number.
    fn sniff(&self, head: &[u8], path: &Path) -> Confidence {
        let is_recording = !head.is_empty() && (head.starts_with(MAGIC) || MAGIC.starts_with(head));
        // Damage may be anywhere, also in the first bytes.
        let is_named = || path.extension().is_some_and(|extension| extension == "bbt");
        match () {
            () if is_recording => Confidence::ByContent,
            () if is_named() => Confidence::ByName,
            () => Confidence::No,
        }
    }

    fn read(
        &self,
        source: Source<'_>,
        trace: &mut TraceBuilder,
        options: &ReadOptions,
        watch: &mut Watch<'_>,
    ) -> Result<(), OpenError> {
        read(source.stream, trace, options.memory_bound, watch);
        let path = source.path.to_owned();
        // Without its end, a recording may also have been stopped before the first event.
        let is_damage = |what: LossKind| {
            matches!(what, LossKind::DamagedChunk | LossKind::EndsInsideChunk | LossKind::ReadError)
        };
        let damage = trace.stats().losses.iter().find(|loss| is_damage(loss.what));
        let empty = match damage {
            Some(loss) => {
                OpenError::DamagedRecording { path, what: loss.what.describe(), offset: loss.first_offset }
            }
            None => OpenError::EmptyRecording { path },
        };
        require_events(trace, source.path, empty)
    }
}

/// Reads a recording to its end or to the memory limit. Skips and counts what is damaged.
fn read(source: &mut dyn std::io::Read, trace: &mut TraceBuilder, memory_bound: u64, watch: &mut Watch<'_>) {
    let mut chunks = ChunkReader::new(source);
    let mut recording = Recording::new(trace);
    let mut end = 0;
    while watch.tick().is_continue() {
        match chunks.next_chunk() {
            Ok(Some(Chunk::Whole { at, payload })) => {
                end = at + payload.len() as u64;
                recording.trace.stats_mut().json_bytes = end;
                let mut records = Records::of(&payload);
                records.by_ref().for_each(|record| recording.add(&record));
                if records.unread() > 0 {
                    recording.trace.lose(LossKind::DamagedChunk, at, records.unread() as u64);
                }
            }
            Ok(Some(Chunk::Damaged(damage))) => {
                recording.trace.lose(LossKind::DamagedChunk, damage.at, damage.bytes);
            }
            Ok(Some(Chunk::Cut(damage))) => {
                recording.trace.lose(LossKind::EndsInsideChunk, damage.at, damage.bytes);
                break;
            }
            Ok(None) => {
                if !recording.has_ended {
                    recording.trace.lose(LossKind::EndsWithoutMark, end, 0);
                }
                break;
            }
            Err(_) => {
                recording.trace.lose(LossKind::ReadError, end, 0);
                break;
            }
        }
        if recording.trace.is_full(memory_bound) {
            recording.trace.lose(LossKind::MemoryBound, end, 0);
            break;
        }
    }
    recording.finish();
}
