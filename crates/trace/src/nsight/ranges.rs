//! What did the program call this part of itself? NVTX ranges and marks, with their domains.

use super::Reading;
use super::database::Row;
use super::enumeration::Enumeration;
use super::identity::{GlobalId, Process};
use crate::hash::HashMap;
use crate::model::kind::EventKind;

const TABLE: &str = "NVTX_EVENTS";
const COLUMNS: [&str; 7] = ["start", "end", "eventType", "text", "textId", "globalTid", "domainId"];

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

impl Reading<'_, '_> {
    pub(super) fn read_ranges(&mut self) {
        let types = Enumeration::of(self.database, "ENUM_NSYS_EVENT_TYPE", self.trace.stats_mut());
        // A domain may be created in a row after its first use.
        let mut domains: HashMap<(Process, i64), String> = HashMap::default();
        let database = self.database;
        if database.table(TABLE).is_some_and(|table| table.has("domainId")) {
            self.each(TABLE, &COLUMNS, &mut |reading, row| {
                if RowKind::of(&types, row.integer(2)) == RowKind::Domain
                    && let (Some(domain), Some(name)) = (row.integer(6), reading.text_of(row))
                {
                    domains.insert((thread_of(row).process(), domain), name);
                }
            });
        }
        self.each(TABLE, &COLUMNS, &mut |reading, row| {
            reading.trace.stats_mut().objects += 1;
            let row_kind = RowKind::of(&types, row.integer(2));
            let thread = thread_of(row);
            let text = reading.text_of(row);
            let is_ended = row.integer(1).is_some();
            match row_kind {
                RowKind::Range if !is_ended => reading.leave_out("NVTX ranges without an end"),
                RowKind::Range | RowKind::Mark => {
                    let text = text.unwrap_or_default();
                    let domain = row.integer(6).and_then(|domain| domains.get(&(thread.process(), domain)));
                    let end = if row_kind == RowKind::Mark { row.integer(0) } else { row.integer(1) };
                    let Some(time) = reading.time(TABLE, row.integer(0), end) else { return };
                    let (kind, name) = of_torch(&text);
                    let name = match domain {
                        // As in Nsight's own tables.
                        Some(domain) => reading.trace.name(&format!("{domain}:{name}")),
                        None => reading.trace.name(name),
                    };
                    let place = reading.processes.thread(thread);
                    reading.push(kind, name, place, time, None);
                }
                RowKind::ThreadName => {
                    if let Some(text) = text {
                        reading.name_thread(thread, &text);
                    }
                }
                RowKind::Domain | RowKind::Other => {
                    reading.leave_out("NVTX names of domains, categories and streams")
                }
            }
        });
    }

    fn text_of(&self, row: &Row<'_>) -> Option<String> {
        let given = row.text(3).filter(|text| !text.is_empty());
        given.or_else(|| self.strings.get(row.integer(4)?).map(str::to_owned))
    }

    fn leave_out(&mut self, what: &str) {
        *self.trace.stats_mut().not_kept.entry(what.to_owned()).or_default() += 1;
    }
}

fn thread_of(row: &Row<'_>) -> GlobalId {
    GlobalId::of(row.integer(5).unwrap_or(0))
}

/// `torch.autograd.profiler.emit_nvtx` names ranges `aten::mm, seq = 12, op_id = 34`: mostly operators, with the
/// user's own ranges in between. With the numbers, every name would be unique.
fn of_torch(text: &str) -> (EventKind, &str) {
    let cut = [", seq = ", ", op_id = "].iter().filter_map(|mark| text.find(mark)).min();
    let Some(cut) = cut else { return (EventKind::Annotation, text) };
    let name = &text[..cut];
    // Only operators have a sequence number. Operators without one have a lowercase namespace.
    let is_lower = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    let is_operator = text[cut..].starts_with(", seq = ")
        || name.split_once("::").is_some_and(|(namespace, _)| is_lower(namespace));
    (if is_operator { EventKind::Operator } else { EventKind::Annotation }, name)
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
            ("step 3, warm", Annotation, "step 3, warm"),
        ] {
            assert_eq!(of_torch(text), (kind, name), "{text}");
        }
    }
}
