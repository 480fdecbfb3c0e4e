//! What did the program call this part of itself? NVTX ranges and marks, with their domains, and what NCCL says in its ranges.

use std::borrow::Cow;

use super::Reading;
use super::enumeration::Enumeration;
use super::identity::{GlobalId, Process};
use super::nccl::{self, Call, CallKind};
use super::payload::{Payload, Schemas};
use super::rows::Row;
use super::strings::Strings;
use crate::hash::HashMap;
use crate::model::kind::EventKind;
use crate::model::names::{NameId, Names};

pub(super) const TABLE: &str = "NVTX_EVENTS";
/// Rows that only give names.
const NAMES: &str = "NVTX names of domains, categories and streams";
/// Ranges with a payload that could not be read.
const PAYLOADS: &str = "NCCL payloads of an unknown layout";
/// The last one is only read if NCCL said what it contains: other libraries write much.
const COLUMNS: [&str; 8] =
    ["start", "end", "eventType", "text", "textId", "globalTid", "domainId", "binaryData"];

/// The kind of a row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowKind {
    Range,
    Mark,
    Domain,
    ThreadName,
    /// Names of categories, devices and streams.
    Other,
}

impl RowKind {
    /// By the names in `ENUM_NSYS_EVENT_TYPE`, or by the numbers used since 2018.
    fn of(types: &Enumeration, number: Option<i64>) -> Self {
        let Some(number) = number else { return Self::Range };
        let is = |name, otherwise| types.is(number, name, otherwise);
        if is("NvtxPushPopRange", 59)
            || is("NvtxStartEndRange", 60)
            || is("NvtxtPushPopRange", 70)
            || is("NvtxtStartEndRange", 71)
        {
            Self::Range
        } else if is("NvtxMark", 34) || is("NvtxtMark", 65) {
            Self::Mark
        } else if is("NvtxDomainCreate", 75) {
            Self::Domain
        } else if is("NvtxThread", 39) {
            Self::ThreadName
        } else {
            Self::Other
        }
    }
}

/// The domain, if there is one, and the number of a text in it.
type TextId = (Option<(Process, i64)>, i64);

/// What is known about the ranges so far.
#[derive(Default)]
struct Ranges {
    /// The kind of a row by its number: few numbers, many rows.
    row_kinds: HashMap<Option<i64>, RowKind>,
    /// That of the last row: most rows have the same one.
    last_kind: Option<(Option<i64>, RowKind)>,
    domains: HashMap<(Process, i64), String>,
    /// By domain and text id: a program has few different ranges.
    names: HashMap<TextId, Named>,
    /// Ranges of domains that were not created yet: the event, and its domain.
    early: Vec<(usize, (Process, i64))>,
    schemas: Schemas,
    /// Those of NCCL.
    calls: Vec<Call>,
}

/// What the text of a range says.
type Named = (EventKind, NameId, Option<CallKind>);

/// The number of the domain that every process has from the start.
const DEFAULT_DOMAIN: i64 = 0;

impl Ranges {
    fn row_kind(&mut self, types: &Enumeration, number: Option<i64>) -> RowKind {
        if let Some((_, kind)) = self.last_kind.filter(|(last, _)| *last == number) {
            return kind;
        }
        let kind = *self.row_kinds.entry(number).or_insert_with(|| RowKind::of(types, number));
        self.last_kind = Some((number, kind));
        kind
    }

    /// The domain by its number, if it has a name.
    fn domain(&self, process: Process, number: Option<i64>) -> Option<(Process, i64)> {
        number.map(|number| (process, number)).filter(|domain| self.domains.contains_key(domain))
    }

    /// As in Nsight's own tables: with the domain, if it has a name.
    fn named(&self, text: &str, domain: Option<(Process, i64)>, names: &mut Names) -> Named {
        let (kind, end) = of_torch(text.as_bytes());
        let name = &text[..end];
        let call = CallKind::of(name);
        let domain = domain.and_then(|domain| self.domains.get(&domain));
        let name = match domain {
            Some(domain) => names.intern(&format!("{domain}:{name}")),
            None => names.intern(name),
        };
        (kind, name, call)
    }
}

impl Reading<'_, '_> {
    pub(super) fn read_ranges(&mut self) {
        let types = Enumeration::of(self.database, "ENUM_NSYS_EVENT_TYPE", self.trace.stats_mut());
        let mut ranges = Ranges { schemas: self.read_schemas(), ..Ranges::default() };
        let columns = if ranges.schemas.is_empty() { &COLUMNS[..COLUMNS.len() - 1] } else { &COLUMNS };
        self.each(TABLE, columns, &mut |reading, row| {
            reading.trace.stats_mut().objects += 1;
            match ranges.row_kind(&types, row.integer(2)) {
                RowKind::Range if row.integer(1).is_none() => reading.leave_out("NVTX ranges without an end"),
                RowKind::Range => reading.add_range(row, row.integer(1), &mut ranges),
                RowKind::Mark => reading.add_range(row, row.integer(0), &mut ranges),
                RowKind::ThreadName => {
                    if let Some(text) = reading.text_of(row) {
                        let text = text.into_owned();
                        reading.name_thread(thread_of(row), &text);
                    }
                }
                RowKind::Domain => {
                    reading.leave_out(NAMES);
                    if let (Some(domain), Some(name)) = (row.integer(6), reading.text_of(row)) {
                        ranges.domains.insert((thread_of(row).process(), domain), name.into_owned());
                    }
                }
                RowKind::Other => reading.leave_out(NAMES),
            }
        });
        // A domain may be created in a row after its first use.
        for (event, domain) in std::mem::take(&mut ranges.early) {
            if let Some(domain) = ranges.domains.get(&domain) {
                self.trace.rename(event, |name| format!("{domain}:{name}"));
            }
        }
        let messages = nccl::messages(ranges.calls, self.trace.names());
        self.trace.collectives(messages);
    }

    fn add_range(&mut self, row: &Row<'_>, end: Option<i64>, ranges: &mut Ranges) {
        let Some(time) = self.time(TABLE, row.integer(0), end) else { return };
        let thread = thread_of(row);
        let number = row.integer(6);
        let domain = ranges.domain(thread.process(), number);
        let id = row.integer(4).filter(|_| row.is_empty(3));
        let known = match id {
            Some(id) => ranges.names.get(&(domain, id)).copied(),
            // The text says what a call of NCCL is.
            None if number.is_some_and(|number| ranges.schemas.has_domain(number)) => None,
            None => self.known_text(row).filter(|_| domain.is_none()),
        };
        let (kind, name, call) = known.unwrap_or_else(|| {
            let text = text_of(&self.strings, row).unwrap_or_default();
            let named = ranges.named(&text, domain, self.trace.names());
            if let Some(id) = id {
                ranges.names.insert((domain, id), named);
            }
            named
        });
        if let Some(number) = number.filter(|number| domain.is_none() && *number != DEFAULT_DOMAIN) {
            ranges.early.push((self.trace.len(), (thread.process(), number)));
        }
        if let (Some(kind), Some(number)) = (call, number.filter(|number| ranges.schemas.has_domain(*number)))
        {
            let payload = self.payload_of(row, number, &ranges.schemas);
            ranges.calls.push(Call { event: self.trace.len(), thread, time, kind, payload });
        }
        let track = self.thread_track(thread);
        self.trace.event(kind, track, name, time);
    }

    fn payload_of(&mut self, row: &Row<'_>, domain: i64, schemas: &Schemas) -> Payload {
        let Some(data) = row.data(7) else { return Payload::default() };
        schemas.read(domain, data).unwrap_or_else(|| {
            self.leave_out(PAYLOADS);
            Payload::default()
        })
    }

    fn text_of<'r>(&'r self, row: &'r Row<'_>) -> Option<Cow<'r, str>> {
        text_of(&self.strings, row)
    }

    /// The name of a row without a domain by its own text, if there was one like it before: then the text is sound.
    fn known_text(&mut self, row: &Row<'_>) -> Option<Named> {
        let text = row.text_bytes(3).filter(|text| !text.is_empty())?;
        let (kind, end) = of_torch(text);
        Some((kind, self.trace.names().find_bytes(&text[..end])?, None))
    }

    fn leave_out(&mut self, what: &str) {
        *self.trace.stats_mut().not_kept.entry(what.to_owned()).or_default() += 1;
    }
}

/// The text of a row: its own, or one of the file's strings.
fn text_of<'r>(strings: &'r Strings, row: &'r Row<'_>) -> Option<Cow<'r, str>> {
    let given = row.text_ref(3).filter(|text| !text.is_empty());
    given.or_else(|| strings.get(row.integer(4)?).map(Cow::Borrowed))
}

fn thread_of(row: &Row<'_>) -> GlobalId {
    GlobalId::of(row.integer(5).unwrap_or(0))
}

/// Before the sequence number of an operator.
const SEQUENCE: &[u8] = b", seq = ";

/// `torch.autograd.profiler.emit_nvtx` names ranges `aten::mm, seq = 12, op_id = 34`: mostly operators, with the
/// user's own ranges in between. With the numbers, every name would be unique. Returns where the name ends.
fn of_torch(text: &[u8]) -> (EventKind, usize) {
    // Exports have millions of ranges: this is several times as fast as searching for each text.
    let is_mark = |at: &usize| text[*at..].starts_with(SEQUENCE) || text[*at..].starts_with(b", op_id = ");
    let cut = memchr::memchr_iter(b',', text).find(is_mark);
    let Some(cut) = cut else { return (EventKind::Annotation, text.len()) };
    let name = &text[..cut];
    // Only operators have a sequence number. Operators without one have a lowercase namespace.
    let is_lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_operator = text[cut..].starts_with(SEQUENCE)
        || name.iter().position(|byte| !is_lower(*byte)).is_some_and(|end| name[end..].starts_with(b"::"));
    (if is_operator { EventKind::Operator } else { EventKind::Annotation }, cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torchs_ranges_are_operators_and_lose_their_numbers() {
        use EventKind::{Annotation, Operator};
        for (text, kind, name) in [
            ("aten::to, seq = 45330, op_id = 990729", Operator, "aten::to"),
            ("aten::empty, op_id = 990346", Operator, "aten::empty"),
            ("AllToAll4D, seq = 3, op_id = 4, sizes = [[1, 2]]", Operator, "AllToAll4D"),
            ("FSDP::pre_forward (blocks.9), op_id = 12", Annotation, "FSDP::pre_forward (blocks.9)"),
            ("nccl:all_to_all, op_id = 7", Annotation, "nccl:all_to_all"),
            ("größe::x, op_id = 8", Annotation, "größe::x"),
            ("step 3, warm", Annotation, "step 3, warm"),
        ] {
            assert_eq!(of_torch(text.as_bytes()), (kind, name.len()), "{text}");
            assert!(text.starts_with(name));
        }
    }
}
