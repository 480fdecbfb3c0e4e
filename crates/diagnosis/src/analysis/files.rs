//! What did the process read from files in a part of the run: from disk or from the page cache, and how busy was it meanwhile?
//! From the counts that `busbound record` keeps.

use busbound_trace::{FileReads, Interval, IntervalSet, Trace};
use serde::Serialize;

/// What the process read from files.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FileActivity {
    /// Bytes that came from a disk, also for mapped files. Network file systems may not count.
    pub disk_bytes: u64,
    /// How long a disk was read, and the rate meanwhile; `null` if none was.
    pub disk_ms: f64,
    pub disk_gbps: Option<f64>,
    /// Bytes that calls like `read` returned, from disk or from the page cache.
    pub read_bytes: u64,
    /// Page faults that waited for a disk: of mapped files.
    pub major_faults: u64,
    pub minor_faults: u64,
    /// CPU time of all threads: in the program, and in the kernel (copying from the page cache, page faults).
    pub user_ms: f64,
    pub system_ms: f64,
}

/// A disk that is slower than this is hardly read: 10 MB/s. Single pages of libraries are less.
const READS_DISK: f64 = 0.01;

/// The counts cover a part of the run if they cover this share of it.
const COVERED: f64 = 0.9;

/// What was read in these times; `None` if the counts do not cover them.
pub(crate) fn within(trace: &Trace, times: &IntervalSet) -> Option<FileActivity> {
    let mut readings = trace.file_reads().to_vec();
    readings.sort_by_key(|reading| reading.at);
    let known = Interval::new(readings.first()?.at, readings.last()?.at);
    let whole = times.length().as_millis();
    if whole <= 0.0 || times.length_within(known).as_millis() < COVERED * whole {
        return None;
    }
    let mut sum = Sum::default();
    for pair in readings.windows(2) {
        sum.add(&pair[0], &pair[1], times);
    }
    Some(sum.activity())
}

#[derive(Default)]
struct Sum {
    disk: f64,
    disk_ms: f64,
    /// What came from disk while it was read.
    disk_then: f64,
    read: f64,
    major_faults: f64,
    minor_faults: f64,
    user_ms: f64,
    system_ms: f64,
}

impl Sum {
    /// Adds what was counted between two readings, as far as it is in these times.
    fn add(&mut self, first: &FileReads, second: &FileReads, times: &IntervalSet) {
        let time = Interval::new(first.at, second.at);
        let (all, inside) = (time.length().as_millis(), times.length_within(time).as_millis());
        if all <= 0.0 || inside <= 0.0 {
            return;
        }
        let share = inside / all;
        let more = |of: fn(&FileReads) -> u64| share * of(second).saturating_sub(of(first)) as f64;
        let disk = more(|counts| counts.disk.get());
        self.disk += disk;
        if disk >= READS_DISK * inside * 1e6 {
            self.disk_ms += inside;
            self.disk_then += disk;
        }
        self.read += more(|counts| counts.read.get());
        self.major_faults += more(|counts| counts.major_faults);
        self.minor_faults += more(|counts| counts.minor_faults);
        self.user_ms += share * (second.user - first.user).as_millis().max(0.0);
        self.system_ms += share * (second.system - first.system).as_millis().max(0.0);
    }

    fn activity(self) -> FileActivity {
        FileActivity {
            disk_bytes: self.disk.round() as u64,
            disk_ms: self.disk_ms,
            disk_gbps: (self.disk_ms > 0.0).then(|| self.disk_then / (self.disk_ms * 1e6)),
            read_bytes: self.read.round() as u64,
            major_faults: self.major_faults.round() as u64,
            minor_faults: self.minor_faults.round() as u64,
            user_ms: self.user_ms,
            system_ms: self.system_ms,
        }
    }
}
