//! How much has the process read from files, how much of it from disk, and what did its threads do meanwhile? From the
//! kernel's own counts, without asking the GPU.

use crate::format::FileCounts;

/// What the counts of CPU time are in.
const NANOS_PER_TICK: u64 = 10_000_000;

/// The counts of this process; `None` if the kernel does not give them to it.
pub(super) fn counts() -> Option<FileCounts> {
    let (bytes, times) =
        (std::fs::read_to_string("/proc/self/io"), std::fs::read_to_string("/proc/self/stat"));
    counts_in(&bytes.ok()?, &times.ok()?)
}

fn counts_in(bytes: &str, times: &str) -> Option<FileCounts> {
    let of = |key: &str| -> Option<u64> {
        bytes.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": ")?.trim().parse().ok())
    };
    // The name of the process is in parentheses and may contain spaces. Field 3 is the first one after it.
    let fields: Vec<&str> = times.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(FileCounts {
        read: of("rchar")?,
        disk: of("read_bytes")?,
        major_faults: field(12)?,
        minor_faults: field(10)?,
        user: field(14)?.saturating_mul(NANOS_PER_TICK),
        system: field(15)?.saturating_mul(NANOS_PER_TICK),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_in_the_kernels_format() {
        let bytes = "rchar: 4292\nwchar: 7\nsyscr: 13\nsyscw: 0\nread_bytes: 8192\nwrite_bytes: 0\ncancelled_write_bytes: 0\n";
        let times = "4711 (pt main) thread) R 1 4711 4711 0 -1 4194304 95 17 3 5 12 34 0 0 20 0 1 0 99 1 2 3";
        let expected = FileCounts {
            read: 4292,
            disk: 8192,
            major_faults: 3,
            minor_faults: 95,
            user: 120_000_000,
            system: 340_000_000,
        };
        assert_eq!(counts_in(bytes, times), Some(expected));
        assert_eq!((counts_in("", times), counts_in(bytes, "4711 (python)")), (None, None));
    }
}
