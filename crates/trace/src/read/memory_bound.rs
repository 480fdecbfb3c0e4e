//! How much memory may reading use by default? Half of the free memory on Linux; a fixed limit elsewhere, because
//! asking other systems takes a dozen crates for one number.

use std::fs;

/// The limit if the free memory is unknown.
const FALLBACK: u64 = 4 << 30;

/// Half of the available memory, or of the container's limit, whichever is less.
pub(crate) fn default_memory_bound() -> u64 {
    let available = fs::read_to_string("/proc/meminfo").ok().and_then(|text| available_in(&text));
    let container =
        fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    [available, container].into_iter().flatten().min().map_or(FALLBACK, |bytes: u64| bytes / 2)
}

fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_in_kibibytes() {
        let text = "MemTotal:  100 kB\nMemAvailable:   24576000 kB\n";
        assert_eq!(available_in(text), Some(24_576_000 * 1024));
        assert_eq!(available_in("MemTotal: 1 kB"), None);
    }
}
