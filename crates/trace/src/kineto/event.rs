//! What does one event object say? Its members as raw tokens, found in one pass.
//!
//! Except for times, tokens are kept as written and parsed only once the kind of the event is known.

use crate::kineto::cursor::{Cursor, Raw, Scan};
use crate::kineto::names::is_copy_operator;
use crate::kineto::number::NotUsable;
use crate::kineto::operands::is_bound_by_memory;

/// A process or thread id: a number or a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RawLabel<'a> {
    pub(crate) text: Raw<'a>,
    pub(crate) quoted: bool,
}

/// The members of an event that are kept, as written in the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft<'a> {
    /// First byte of `ph`; 0 if missing.
    pub(crate) phase: u8,
    pub(crate) category: &'a [u8],
    pub(crate) name: Raw<'a>,
    pub(crate) process: RawLabel<'a>,
    pub(crate) thread: RawLabel<'a>,
    /// Nanoseconds.
    pub(crate) timestamp: Option<Result<i64, NotUsable>>,
    /// Nanoseconds.
    pub(crate) duration: Option<Result<i64, NotUsable>>,
    pub(crate) flow: Option<&'a [u8]>,
    pub(crate) args: Args<'a>,
}

/// The members of `args` that are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Args<'a> {
    pub(crate) external: Option<&'a [u8]>,
    pub(crate) correlation: Option<&'a [u8]>,
    pub(crate) device: Option<&'a [u8]>,
    pub(crate) stream: Option<&'a [u8]>,
    pub(crate) bytes: Option<&'a [u8]>,
    pub(crate) grid: Option<&'a [u8]>,
    pub(crate) block: Option<&'a [u8]>,
    pub(crate) registers: Option<&'a [u8]>,
    pub(crate) shared_memory: Option<&'a [u8]>,
    pub(crate) input_dims: Option<&'a [u8]>,
    pub(crate) input_types: Option<&'a [u8]>,
    pub(crate) concrete_inputs: Option<&'a [u8]>,
    pub(crate) sync_kind: Option<Raw<'a>>,
    pub(crate) sync_stream: Option<&'a [u8]>,
    pub(crate) sync_record: Option<&'a [u8]>,
    pub(crate) sync_event: Option<&'a [u8]>,
    pub(crate) collective: Option<Raw<'a>>,
    pub(crate) dtype: Option<Raw<'a>>,
    pub(crate) group: Option<Raw<'a>>,
    pub(crate) group_description: Option<Raw<'a>>,
    pub(crate) group_ranks: Option<Raw<'a>>,
    pub(crate) sequence: Option<&'a [u8]>,
    pub(crate) group_size: Option<&'a [u8]>,
    pub(crate) elements_in: Option<&'a [u8]>,
    pub(crate) elements_out: Option<&'a [u8]>,
    pub(crate) memory_change: Option<&'a [u8]>,
    pub(crate) allocated: Option<&'a [u8]>,
    pub(crate) reserved: Option<&'a [u8]>,
    pub(crate) device_type: Option<&'a [u8]>,
    pub(crate) device_id: Option<&'a [u8]>,
    /// `name` of a metadata event: the name of a process or thread.
    pub(crate) given_name: Option<Raw<'a>>,
    pub(crate) has_stack: bool,
}

/// Reads the event whose opening brace is next into `draft`. `draft` is large enough that returning it by value
/// showed up in profiles.
pub(crate) fn read_event<'a>(cursor: &mut Cursor<'a>, draft: &mut Draft<'a>) -> Scan<()> {
    *draft = Draft::default();
    cursor.forget_nested_event();
    cursor.advance();
    if read_usual_head(cursor, draft)? {
        cursor.end_member()?;
    }
    while let Some(key) = cursor.next_key()? {
        match key {
            b"ph" => {
                draft.phase = cursor.string_or_skip()?.and_then(|raw| raw.bytes.first().copied()).unwrap_or(0)
            }
            b"cat" => draft.category = cursor.string_or_skip()?.unwrap_or_default().bytes,
            b"name" => draft.name = cursor.string_or_skip()?.unwrap_or_default(),
            b"pid" => draft.process = label(cursor)?,
            b"tid" => draft.thread = label(cursor)?,
            b"ts" => draft.timestamp = Some(cursor.micros()?),
            b"dur" => draft.duration = Some(cursor.micros()?),
            b"id" => draft.flow = Some(cursor.number()?),
            b"args" if cursor.peek() == Some(b'{') => {
                // Dtypes are read only where sizes are needed, or if the name comes later.
                let name = draft.name.bytes;
                let shapes = name.is_empty() || is_copy_operator(name) || is_bound_by_memory(name);
                read_args(cursor, &mut draft.args, shapes)?;
            }
            _ => {
                cursor.skip_value()?;
            }
        }
        cursor.end_member()?;
    }
    Ok(())
}

/// Reads members while they follow the order and spacing of Kineto's writer. Comparing whole separators takes a third
/// of the time of matching each key. Returns whether any member was read.
#[inline]
fn read_usual_head<'a>(cursor: &mut Cursor<'a>, draft: &mut Draft<'a>) -> Scan<bool> {
    if cursor.take(b"\n    \"ph\": \"X\", \"cat\": \"") {
        draft.phase = b'X';
        draft.category = cursor.rest_of_string()?.bytes;
        if !cursor.take(b", \"name\": \"") {
            return Ok(true);
        }
        draft.name = cursor.rest_of_string()?;
        if read_usual_place(cursor, draft)? && cursor.take(b",\n    \"ts\": ") {
            draft.timestamp = Some(cursor.micros()?);
            if cursor.take(b", \"dur\": ") {
                draft.duration = Some(cursor.micros()?);
            }
        }
        return Ok(true);
    }
    let start = cursor.take(b"\n    \"ph\": \"s\", \"id\": ");
    if start || cursor.take(b"\n    \"ph\": \"f\", \"id\": ") {
        draft.phase = if start { b's' } else { b'f' };
        draft.flow = Some(cursor.number()?);
        if read_usual_place(cursor, draft)? && cursor.take(b", \"ts\": ") {
            draft.timestamp = Some(cursor.micros()?);
            if cursor.take(b",\n    \"cat\": \"") {
                draft.category = cursor.rest_of_string()?.bytes;
            }
        }
        return Ok(true);
    }
    Ok(false)
}

#[inline]
fn read_usual_place<'a>(cursor: &mut Cursor<'a>, draft: &mut Draft<'a>) -> Scan<bool> {
    if !cursor.take(b", \"pid\": ") {
        return Ok(false);
    }
    draft.process = label(cursor)?;
    if !cursor.take(b", \"tid\": ") {
        return Ok(false);
    }
    draft.thread = label(cursor)?;
    Ok(true)
}

fn label<'a>(cursor: &mut Cursor<'a>) -> Scan<RawLabel<'a>> {
    Ok(match cursor.peek() {
        Some(b'"') => RawLabel { text: cursor.string()?, quoted: true },
        _ => RawLabel { text: Raw { bytes: cursor.number()?, escaped: false }, quoted: false },
    })
}

fn read_args<'a>(cursor: &mut Cursor<'a>, args: &mut Args<'a>, shapes: bool) -> Scan<()> {
    cursor.advance();
    while let Some(key) = cursor.next_key()? {
        // By length first: the compiler then compares few candidates, and most keys match none.
        match key.len() {
            3 if key == b"Seq" => args.sequence = Some(cursor.number()?),
            4 if key == b"name" => args.given_name = cursor.string_or_skip()?,
            4 if key == b"grid" => args.grid = Some(cursor.skip_value()?),
            5 if key == b"bytes" => args.bytes = Some(cursor.number()?),
            5 if key == b"Bytes" => args.memory_change = Some(cursor.number()?),
            5 if key == b"block" => args.block = Some(cursor.skip_value()?),
            5 if key == b"dtype" => args.dtype = cursor.string_or_skip()?,
            6 if key == b"device" => args.device = Some(cursor.number()?),
            6 if key == b"stream" => args.stream = Some(cursor.number()?),
            9 if key == b"Device Id" => args.device_id = Some(cursor.number()?),
            10 if key == b"Group size" => args.group_size = Some(cursor.number()?),
            10 if key == b"Input Dims" => {
                args.input_dims = Some(cursor.skip_value()?);
            }
            10 if key == b"Input type" && shapes => args.input_types = Some(cursor.skip_value()?),
            10 if key == b"Call stack" => {
                args.has_stack |= cursor.string_or_skip()?.is_some_and(|raw| !raw.bytes.is_empty());
            }
            11 if key == b"External id" || key == b"external id" => {
                args.external = Some(cursor.number()?);
            }
            11 if key == b"correlation" => args.correlation = Some(cursor.number()?),
            11 if key == b"Device Type" => args.device_type = Some(cursor.number()?),
            13 if key == b"shared memory" => args.shared_memory = Some(cursor.number()?),
            13 if key == b"In msg nelems" => args.elements_in = Some(cursor.number()?),
            14 if key == b"cuda_sync_kind" => args.sync_kind = cursor.string_or_skip()?,
            14 if key == b"wait_on_stream" => args.sync_stream = Some(cursor.number()?),
            14 if key == b"Out msg nelems" => args.elements_out = Some(cursor.number()?),
            14 if key == b"Total Reserved" => args.reserved = Some(cursor.number()?),
            15 if key == b"Total Allocated" => args.allocated = Some(cursor.number()?),
            15 if key == b"Collective name" => args.collective = cursor.string_or_skip()?,
            15 if key == b"Concrete Inputs" && shapes => {
                args.concrete_inputs = Some(cursor.skip_value()?);
            }
            18 if key == b"Process Group Name" => args.group = cursor.string_or_skip()?,
            19 if key == b"Process Group Ranks" => args.group_ranks = cursor.string_or_skip()?,
            20 if key == b"registers per thread" => args.registers = Some(cursor.number()?),
            21 if key == b"wait_on_cuda_event_id" => args.sync_event = Some(cursor.number()?),
            25 if key == b"Process Group Description" => {
                args.group_description = cursor.string_or_skip()?;
            }
            33 if key == b"wait_on_cuda_event_record_corr_id" => {
                args.sync_record = Some(cursor.number()?);
            }
            _ => {
                cursor.skip_value()?;
            }
        }
        cursor.end_member()?;
    }
    Ok(())
}
