//! The reader of XLA's profiles (`*.xplane.pb`), which JAX, TensorFlow and PyTorch/XLA write.
//!
//! A profile is one protobuf message: planes (a device, the host), each with lines (a stream, a thread) of events.
//! Names and fact types are in tables at the end of a plane, so a whole plane is buffered while it is read.

mod plane;
mod wire;

use std::io::Read;
use std::path::Path;

use self::plane::PlaneReader;
use self::wire::varint;
use crate::error::OpenError;
use crate::model::builder::TraceBuilder;
use crate::model::format::{Format, Recordable};
use crate::model::stats::LossKind;
use crate::reader::{Confidence, ReadOptions, Reader, Source, Watch, read_some, require_events};

/// What `jax.profiler.trace` writes.
pub(crate) struct XPlane;

static FORMAT: Format = Format {
    id: "xplane",
    profiler: "the JAX/XLA profiler",
    files: ".xplane.pb of jax.profiler",
    suffixes: &[".xplane.pb"],
    // The same run as Chrome JSON, without sizes and directions of copies.
    supersedes: &[".trace.json.gz"],
    is_json: false,
    records_shapes: false,
    record_gpu: "jax.profiler.trace(DIR) in a process that uses a GPU",
    no_gpu_activity: Some("the profiler did not trace a GPU"),
    remedy,
};

fn remedy(missing: Recordable, _: bool) -> Option<&'static str> {
    Some(match missing {
        Recordable::Events | Recordable::GpuActivity | Recordable::RuntimeCalls => {
            "with jax.profiler.trace(DIR): run some steps and wait for them (block_until_ready)"
        }
        Recordable::Kernels | Recordable::KernelRecords | Recordable::CallRecords | Recordable::GraphWork => {
            "trace fewer steps with jax.profiler.trace(DIR)"
        }
        Recordable::GpuTail => "copy the file only after jax.profiler.stop_trace() returns",
        Recordable::Operators => "jax.profiler.ProfileOptions: host_tracer_level = 2",
        Recordable::Stacks => "jax.profiler.ProfileOptions: python_tracer_level = 1",
        Recordable::Steps => "wrap each step in jax.profiler.StepTraceAnnotation(\"train\", step_num=step)",
        Recordable::GpuNames
        | Recordable::Memory
        | Recordable::MemoryKind
        | Recordable::CopyBytes
        | Recordable::CopyDirection
        | Recordable::Synchronizations => "XLA's profiler does not record this; use Nsight Systems",
        _ => return None,
    })
}

/// Field 1 of the top-level message, a plane, as a wire format key.
const PLANE: u8 = 0x0a;

impl Reader for XPlane {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn sniff(&self, head: &[u8], path: &Path) -> Confidence {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match () {
            () if begins_with_a_plane(head) => Confidence::ByContent,
            () if name.ends_with(".xplane.pb") && head.first() == Some(&PLANE) => Confidence::ByName,
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
        read_planes(source.stream, trace, options.memory_bound, watch);
        let empty = OpenError::NoEventsIn {
            path: source.path.to_owned(),
            what: "an XLA profile",
            hint: match trace.stats_mut().is_complete() {
                true => {
                    "keep jax.profiler.trace(DIR) open while steps run, and copy the file only after it ends"
                }
                false => "it is damaged or cut; copy it again, or record again",
            },
        };
        require_events(trace, source.path, empty)
    }
}

/// The format has no magic number: a plane comes first, with its id, if any, and then its name.
fn begins_with_a_plane(head: &[u8]) -> bool {
    let after_varint = |bytes: &[u8]| varint(bytes).map(|(_, length)| length);
    let name = || {
        let rest = head.strip_prefix(&[PLANE])?;
        let rest = rest.get(after_varint(rest)?..)?;
        let rest = match rest.strip_prefix(&[0x08]) {
            Some(number) => number.get(after_varint(number)?..)?,
            None => rest,
        };
        let rest = rest.strip_prefix(&[0x12])?;
        let (length, taken) = varint(rest)?;
        let name = rest.get(taken..)?;
        Some(name.get(..usize::try_from(length).ok()?).unwrap_or(name))
    };
    name().is_some_and(|name| !name.is_empty() && name.iter().all(|byte| (0x20..0x7f).contains(byte)))
}

/// Reads plane after plane to the end of the file or to the memory limit.
fn read_planes(
    source: &mut (dyn Read + Send),
    trace: &mut TraceBuilder,
    memory_bound: u64,
    watch: &mut Watch<'_>,
) {
    let mut offset = 0;
    while let Some(field) = next_field(source, memory_bound, &mut offset) {
        let begin = offset - field.bytes.len() as u64;
        match field.number {
            1 if field.too_long => return trace.lose(LossKind::MemoryBound, begin, 0),
            1 => {
                let mut reader = PlaneReader::new(&field.bytes, trace, memory_bound, watch);
                let damaged = reader.read();
                if reader.has_stopped() {
                    return trace.lose(LossKind::MemoryBound, begin, 0);
                }
                if damaged && !field.is_cut {
                    trace.lose(LossKind::DamagedEvent, begin, 0);
                }
            }
            2 | 3 => {
                let text = String::from_utf8_lossy(&field.bytes).into_owned();
                trace.origin().profiler_messages.push(text);
            }
            4 => {
                let host = String::from_utf8_lossy(&field.bytes).into_owned();
                trace.origin().trace_name.get_or_insert(host);
            }
            _ => {}
        }
        trace.stats_mut().json_bytes = offset;
        if field.is_cut {
            return trace.lose(LossKind::EndsInsideEvent, offset, field.bytes.len() as u64);
        }
        if watch.tick().is_break() {
            return;
        }
    }
}

/// No message of protocol buffers is longer: such a length is damage, not a lack of memory.
const LONGEST_FIELD: u64 = 1 << 31;

/// A field of the top-level message.
struct Field {
    number: u64,
    bytes: Vec<u8>,
    /// The file ends inside it.
    is_cut: bool,
    /// It does not fit into the memory limit and was not read.
    too_long: bool,
}

/// `None` at the end, and at anything that is not a field: nothing after that can be found.
fn next_field(source: &mut (dyn Read + Send), memory_bound: u64, offset: &mut u64) -> Option<Field> {
    let key = stream_varint(source, offset)?;
    let length = stream_varint(source, offset).filter(|_| key & 7 == 2)?;
    let (number, mut bytes) = (key >> 3, Vec::new());
    if length > LONGEST_FIELD {
        return Some(Field { number, bytes, is_cut: true, too_long: false });
    }
    if length > memory_bound {
        return Some(Field { number, bytes, is_cut: false, too_long: true });
    }
    // Reads as much as is available: the length field of a damaged file can be any number.
    let read = source.take(length).read_to_end(&mut bytes).is_ok();
    *offset += bytes.len() as u64;
    let is_cut = !read || (bytes.len() as u64) < length;
    Some(Field { number, bytes, is_cut, too_long: false })
}

fn stream_varint(source: &mut (dyn Read + Send), offset: &mut u64) -> Option<u64> {
    let mut bytes = Vec::with_capacity(10);
    while bytes.len() < 10 {
        let mut byte = [0];
        if read_some(source, &mut byte).ok()? == 0 {
            return None;
        }
        *offset += 1;
        bytes.push(byte[0]);
        if byte[0] < 0x80 {
            return varint(&bytes).map(|(number, _)| number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_recognized_by_their_first_plane() {
        let sniff = |head: &[u8], name: &str| XPlane.sniff(head, Path::new(name));
        assert_eq!(sniff(b"\x0a\x9d\xb2\x08\x12\x0e/host:metadata\x22", "x"), Confidence::ByContent);
        assert_eq!(sniff(b"\x0a\x20\x08\x03\x12\x0d/device:GPU:0", "x"), Confidence::ByContent);
        assert_eq!(sniff(b"\x0a\x00", "a.xplane.pb"), Confidence::ByName);
        // JSON that begins with a newline.
        assert_eq!(sniff(b"\n{\"traceEvents\": [", "x.json"), Confidence::No);
        assert_eq!(sniff(b"\n[{\"ph\": \"X\"", "a.xplane.pb"), Confidence::ByName);
    }
}
