//! Which calls of system libraries did threads with CUDA calls make, and were CPU samples recorded?

use super::Reading;
use super::identity::GlobalId;
use crate::model::names::NameId;
use crate::model::os_call::OsCall;

pub(super) const TABLE: &str = "OSRT_API";
/// CPU samples, which are not read.
const SAMPLES: &str = "SAMPLING_CALLCHAINS";

/// Shorter calls explain no idle time that is worth naming, in nanoseconds.
const SHORTEST: i64 = 50_000;

impl Reading<'_, '_> {
    /// After the calls: other threads do not launch anything.
    pub(super) fn read_os_runtime(&mut self) {
        self.note_recorded("os_runtime", TABLE);
        self.note_recorded("cpu_samples", SAMPLES);
        const COLUMNS: [&str; 5] = ["start", "end", "globalTid", "nameId", "nestingLevel"];
        self.each(TABLE, &COLUMNS, &mut |reading, row| {
            reading.trace.stats_mut().objects += 1;
            let long = row.integer(0).zip(row.integer(1)).filter(|(start, end)| end - start >= SHORTEST);
            let (Some((start, end)), Some(thread), 0) = (long, row.integer(2), row.integer(4).unwrap_or(0))
            else {
                return;
            };
            let place = reading.processes.thread(GlobalId::of(thread));
            let Some(track) = reading.trace.find_track(place) else { return };
            let Some(interval) = reading.time(TABLE, Some(start), Some(end)) else { return };
            let name = row.integer(3).and_then(|id| reading.strings.name(id, reading.trace.names()));
            let name = name.unwrap_or(NameId::EMPTY);
            reading.trace.os_call(OsCall { track, interval, name });
        });
    }

    /// Whether a table has rows.
    fn note_recorded(&mut self, setting: &str, table: &str) {
        if self.database.versions_of(table).iter().any(|table| table.rows > 0) {
            self.trace.origin().settings.insert(setting.to_owned(), true);
        }
    }
}
