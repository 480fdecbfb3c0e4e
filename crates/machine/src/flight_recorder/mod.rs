//! Which collectives did each rank issue, and which did not finish? Read from the dumps of PyTorch's flight recorder
//! (`TORCH_NCCL_TRACE_BUFFER_SIZE`, `TORCH_FR_BUFFER_SIZE`): pickles, or the same as JSON, one per rank.
//!
//! Ranks are compared by the sequence numbers of their groups, never by their clocks.

mod pickle;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

pub const FLIGHT_RECORDER_SCHEMA: &str = "busbound.flight/1";

/// The dumps of one or several ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FlightRecorder {
    pub schema: &'static str,
    /// Of the format, such as `2.5`.
    pub version: Option<String>,
    pub ranks: Vec<RankDump>,
    /// By operation, size and group; of all ranks.
    pub collectives: Vec<RecordedCollective>,
    /// Collectives that had not finished, oldest first.
    pub unfinished: Vec<Unfinished>,
    /// Groups in which ranks had not come equally far.
    pub behind: Vec<Behind>,
}

/// What one rank's dump holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankDump {
    pub rank: u32,
    pub entries: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RecordedCollective {
    /// `all_reduce`.
    pub operation: String,
    pub group: String,
    /// Of the input of one rank.
    pub bytes: u64,
    pub count: u64,
    pub finished: u64,
    /// Median; `null` without `TORCH_NCCL_ENABLE_TIMING=1`.
    pub ms: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unfinished {
    pub rank: u32,
    pub operation: String,
    pub group: String,
    pub sequence: u64,
    pub bytes: u64,
    pub state: State,
    /// The innermost frame outside of PyTorch, as `file:line function`.
    pub place: Option<String>,
}

/// How far a collective has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum State {
    /// Queued; the GPU has not reached it, or that was not asked yet.
    Scheduled,
    Started,
    Completed,
}

/// Ranks that have finished less of a group's collectives than others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Behind {
    pub group: String,
    pub ranks: Vec<u32>,
    /// Sequence number of the last collective that they issued.
    pub issued: u64,
    /// Of the ranks that came furthest.
    pub furthest: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not a dump of PyTorch's flight recorder: {0}")]
pub struct FlightError(String);

/// One entry of a dump.
struct Entry {
    rank: u32,
    operation: String,
    group: String,
    sequence: u64,
    bytes: u64,
    state: State,
    ms: Option<f64>,
    place: Option<String>,
}

impl FlightRecorder {
    /// Reads dumps, each with its file name, whose last number is the rank.
    ///
    /// # Errors
    /// If a file is not such a dump.
    pub fn parse(dumps: &[(String, Vec<u8>)]) -> Result<Self, FlightError> {
        let (mut ranks, mut entries, mut version) = (Vec::new(), Vec::new(), None);
        for (at, (name, bytes)) in (0u32..).zip(dumps) {
            let dump = parsed(bytes)?;
            let list = dump.get("entries").and_then(Value::as_array);
            let list = list.ok_or_else(|| FlightError("it has no entries".to_owned()))?;
            let rank = rank_of(name).unwrap_or(at);
            ranks.push(RankDump { rank, entries: list.len() as u64 });
            entries.extend(list.iter().filter_map(|entry| Entry::of(rank, entry)));
            version = version.or_else(|| dump.get("version")?.as_str().map(str::to_owned));
        }
        ranks.sort_by_key(|dump| dump.rank);
        Ok(Self {
            schema: FLIGHT_RECORDER_SCHEMA,
            version,
            collectives: collectives(&entries),
            unfinished: unfinished(&entries),
            behind: behind(&entries),
            ranks,
        })
    }

    /// Whether the first bytes of a file look like such a dump.
    pub fn is_one(head: &[u8]) -> bool {
        let is_data = head.starts_with(&[0x80]) || head.trim_ascii_start().starts_with(b"{");
        let has = |word: &[u8]| head.windows(word.len()).any(|part| part == word);
        is_data && (has(b"pg_config") || has(b"profiling_name")) && !has(b"traceEvents")
    }
}

fn parsed(bytes: &[u8]) -> Result<Value, FlightError> {
    if bytes.starts_with(&[0x80]) {
        return pickle::value(bytes).map_err(|error| FlightError(format!("the pickle {error}")));
    }
    serde_json::from_slice(bytes).map_err(|error| FlightError(error.to_string()))
}

/// 3 of `nccl_trace_rank_3`, `rank3.json`.
fn rank_of(name: &str) -> Option<u32> {
    let file = name.rsplit(['/', '\\']).next()?;
    let end = file.rfind(|c: char| c.is_ascii_digit())? + 1;
    let start = file[..end].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    file[start..end].parse().ok()
}

impl Entry {
    fn of(rank: u32, entry: &Value) -> Option<Self> {
        let name = entry.get("profiling_name")?.as_str()?;
        let number = |key: &str| entry.get(key).and_then(Value::as_u64);
        let is_p2p = entry.get("is_p2p").and_then(Value::as_bool).unwrap_or(false);
        let sequence = if is_p2p { number("p2p_seq_id") } else { number("collective_seq_id") };
        let state = match entry.get("state").and_then(Value::as_str)? {
            "completed" => State::Completed,
            "started" => State::Started,
            _ => State::Scheduled,
        };
        Some(Self {
            rank,
            operation: name.trim_start_matches("nccl:").to_owned(),
            group: group(entry),
            // The first version numbered all of them alike.
            sequence: sequence.or_else(|| number("seq_id")).unwrap_or(0),
            bytes: bytes_of(entry),
            state,
            ms: entry.get("duration_ms").and_then(Value::as_f64),
            place: place(entry),
        })
    }
}

/// The description of the process group, or its name.
fn group(entry: &Value) -> String {
    let texts: Vec<&str> = match entry.get("process_group") {
        Some(Value::Array(parts)) => parts.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(name)) => vec![name],
        _ => Vec::new(),
    };
    match texts.as_slice() {
        [name, description, ..] if !description.is_empty() && *description != "undefined" => {
            format!("{description} ({name})")
        }
        [name, ..] => (*name).to_owned(),
        [] => entry.get("pg_id").map_or("unknown".to_owned(), Value::to_string),
    }
}

/// Bytes of the inputs of one rank.
fn bytes_of(entry: &Value) -> u64 {
    let list = |key: &str| entry.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let (sizes, types) = (list("input_sizes"), list("input_dtypes"));
    let elements = |size: &Value| {
        let dims = size.as_array().into_iter().flatten().filter_map(Value::as_u64);
        dims.fold(1u64, u64::saturating_mul)
    };
    let width = |at: usize| types.get(at).and_then(Value::as_str).map_or(4, width_of);
    sizes
        .iter()
        .enumerate()
        .map(|(at, size)| elements(size).saturating_mul(width(at)))
        .fold(0, u64::saturating_add)
}

/// Bytes of one value, by PyTorch's name of its type.
fn width_of(name: &str) -> u64 {
    match name {
        "Double" | "Long" | "ComplexFloat" => 8,
        "Half" | "BFloat16" | "Short" => 2,
        "Byte" | "Char" | "Bool" => 1,
        name if name.starts_with("Float8") => 1,
        _ => 4,
    }
}

/// The innermost frame that is not PyTorch's own.
fn place(entry: &Value) -> Option<String> {
    let frames = entry.get("frames")?.as_array()?;
    let of = |frame: &Value| {
        let file = frame.get("filename")?.as_str()?;
        let line = frame.get("line").and_then(Value::as_u64).unwrap_or(0);
        let function = frame.get("name").and_then(Value::as_str).unwrap_or("");
        (!file.contains("/torch/")).then(|| format!("{file}:{line} {function}"))
    };
    frames.iter().find_map(of)
}

fn collectives(entries: &[Entry]) -> Vec<RecordedCollective> {
    let mut by: BTreeMap<(&str, &str, u64), Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        by.entry((&entry.group, &entry.operation, entry.bytes)).or_default().push(entry);
    }
    let one = |((group, operation, bytes), all): ((&str, &str, u64), Vec<&Entry>)| RecordedCollective {
        operation: operation.to_owned(),
        group: group.to_owned(),
        bytes,
        count: all.len() as u64,
        finished: all.iter().filter(|entry| entry.state == State::Completed).count() as u64,
        ms: crate::median(all.iter().filter_map(|entry| entry.ms)),
    };
    by.into_iter().map(one).collect()
}

fn unfinished(entries: &[Entry]) -> Vec<Unfinished> {
    let mut open: Vec<&Entry> = entries.iter().filter(|entry| entry.state != State::Completed).collect();
    open.sort_by_key(|entry| (entry.sequence, entry.rank));
    let one = |entry: &&Entry| Unfinished {
        rank: entry.rank,
        operation: entry.operation.clone(),
        group: entry.group.clone(),
        sequence: entry.sequence,
        bytes: entry.bytes,
        state: entry.state,
        place: entry.place.clone(),
    };
    open.iter().map(one).collect()
}

/// Per group, the ranks that issued less than the furthest one.
fn behind(entries: &[Entry]) -> Vec<Behind> {
    let mut issued: BTreeMap<&str, BTreeMap<u32, u64>> = BTreeMap::new();
    for entry in entries {
        let last = issued.entry(&entry.group).or_default().entry(entry.rank).or_default();
        *last = (*last).max(entry.sequence);
    }
    let one = |(group, ranks): (&str, BTreeMap<u32, u64>)| {
        let (least, most) = (*ranks.values().min()?, *ranks.values().max()?);
        let late = ranks.iter().filter(|(_, last)| **last == least).map(|(rank, _)| *rank).collect();
        (least < most).then(|| Behind { group: group.to_owned(), ranks: late, issued: least, furthest: most })
    };
    issued.into_iter().filter_map(one).collect()
}
