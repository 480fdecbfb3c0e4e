//! Where does the measuring thread run?

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps this thread on these CPUs; memory it touches first then lies near them too. Whether it could, and
/// whether it was free to: who has bound us elsewhere (numactl, taskset) wants it so.
pub(crate) fn pin_to(cpus: &str) -> bool {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").map(|text| listed(&text).len());
    let is_bound =
        sched_getaffinity(None).is_ok_and(|set| online.is_ok_and(|online| (set.count() as usize) < online));
    if is_bound {
        return false;
    }
    let mut set = CpuSet::new();
    for cpu in listed(cpus).into_iter().filter(|cpu| *cpu < CpuSet::MAX_CPU) {
        set.set(cpu);
    }
    set.count() > 0 && sched_setaffinity(None, &set).is_ok()
}

fn listed(cpus: &str) -> Vec<usize> {
    let ranges = cpus.split(',').filter_map(|part| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        Some(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_as_the_kernel_writes_them() {
        assert_eq!(listed("0-3,8,10-11"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(listed("7"), [7]);
        assert!(listed("").is_empty());
    }
}
