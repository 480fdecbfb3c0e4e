//! Which CPUs does the measuring thread run on?

use std::fs;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Binds this thread to these CPUs; memory that it touches first is then allocated near them. Returns whether that
/// was done. A process that is already bound elsewhere (numactl, taskset) stays as it is.
pub(crate) fn pin_to(cpus: &str) -> bool {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").map(|text| listed(&text).len());
    let is_bound =
        sched_getaffinity(None).is_ok_and(|set| online.is_ok_and(|online| (set.count() as usize) < online));
    if is_bound {
        return false;
    }
    set_to(cpus)
}

/// Runs something on these CPUs, and goes back to those that the thread was on; `None` if it may not run there.
pub(crate) fn on_cpus<T>(cpus: &str, what: impl FnOnce() -> T) -> Option<T> {
    let before = sched_getaffinity(None).ok()?;
    set_to(cpus).then(|| {
        let done = what();
        // The thread was on these before, so that this does not fail.
        let _ = sched_setaffinity(None, &before);
        done
    })
}

/// Returns whether it was done.
fn set_to(cpus: &str) -> bool {
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
    fn work_on_other_cpus_leaves_the_thread_where_it_was() {
        let now = || sched_getaffinity(None).unwrap();
        let before = now();
        let first = (0..CpuSet::MAX_CPU).find(|cpu| before.is_set(*cpu)).unwrap();
        let inside = on_cpus(&first.to_string(), now).unwrap();
        assert_eq!((inside.count(), inside.is_set(first)), (1, true));
        assert_eq!(now(), before);
        assert!(on_cpus("", || panic!("there is no such CPU")).is_none());
    }

    #[test]
    fn cpu_lists_are_parsed_in_the_kernels_format() {
        assert_eq!(listed("0-3,8,10-11"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(listed("7"), [7]);
        assert!(listed("").is_empty());
    }
}
