//! How many threads, and where? As many as fill the link, within the CPUs that the process may use.

use std::time::Instant;

use super::job::does_caller_fill;
use super::system::{self, Cpus};
use crate::settings::Settings;

/// Where a GPU is, as the system says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gpu {
    pub(super) node: Option<u32>,
    /// Those of its node that the process may use.
    pub(super) cpus: Option<Cpus>,
    /// The peak of its link, in GB/s.
    link: Option<f64>,
}

/// More threads than this slow each other down: measured on 16 CPUs, see docs/results/try.md.
const MOST: usize = 12;
/// The share of a link's peak that copies reach.
const REACHED: f64 = 0.9;
/// What is left of a thread's rate when others copy too.
const BESIDE_OTHERS: f64 = 0.65;
/// The most that is left, in GB/s: what is measured at the start is in the caches, what programs copy is not. Measured, see
/// docs/results/try.md.
const MOST_BESIDE_OTHERS: f64 = 7.5;
/// Where the system does not say which link it is.
const USUAL_LINK: f64 = 31.5;

impl Gpu {
    /// Reads what the system says about the device at this PCI address.
    pub(super) fn at(bus_id: &str) -> Self {
        let folder = format!("/sys/bus/pci/devices/{bus_id}");
        let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).ok();
        let node = read("numa_node").and_then(|text| text.trim().parse::<u32>().ok());
        let local = node.and_then(|_| parse_cpus(&read("local_cpulist")?));
        let cpus = local.and_then(|local| local.within(Cpus::allowed()?));
        let link = read("max_link_speed")
            .zip(read("max_link_width"))
            .and_then(|(speed, width)| peak(&speed, &width));
        Self { node, cpus, link }
    }
}

/// As in `0-7,64-71`.
fn parse_cpus(text: &str) -> Option<Cpus> {
    let mut mask = [0u64; 16];
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        for cpu in first.parse::<usize>().ok()?..=last.parse::<usize>().ok()? {
            *mask.get_mut(cpu / 64)? |= 1 << (cpu % 64);
        }
    }
    Some(Cpus(mask))
}

/// As in `32.0 GT/s PCIe` and `16`; slower generations lose a fifth to their coding.
fn peak(speed: &str, width: &str) -> Option<f64> {
    let rate: f64 = speed.split_whitespace().next()?.parse().ok()?;
    let lanes: f64 = width.trim().parse().ok()?;
    let coding = if rate > 5.0 { 128.0 / 130.0 } else { 0.8 };
    (rate > 0.0 && lanes > 0.0).then_some(rate * lanes * coding / 8.0)
}

/// Threads that copy, with the calling one if it does; `None` if there is only one CPU.
pub(super) fn threads(settings: &Settings, gpu: &Gpu) -> Option<usize> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    // Ranks that are bound to their own CPUs have their share already.
    let is_shared = cpus > system::online_cpus() / settings.local_ranks;
    let share = if is_shared { cpus / settings.local_ranks } else { cpus };
    let share = gpu.cpus.map_or(share, |near| share.min(near.count()));
    if let Some(threads) = settings.threads {
        return (cpus > 1).then_some(threads);
    }
    (share > 1).then(|| fitting(wanted(gpu.link.unwrap_or(USUAL_LINK), one_thread()), share))
}

/// No more than there are CPUs, with one for the calling thread.
fn fitting(wanted: usize, cpus: usize) -> usize {
    let threads = wanted.clamp(1, cpus.min(MOST));
    if does_caller_fill(threads) { threads } else { threads.min(cpus - 1) }
}

/// As many as it takes to fill the link, each slower than one alone.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to a few threads")]
fn wanted(link: f64, one: f64) -> usize {
    (link * REACHED / (BESIDE_OTHERS * one).clamp(0.1, MOST_BESIDE_OTHERS)).ceil().clamp(1.0, 64.0) as usize
}

/// How fast does one thread copy, in GB/s? Takes about two milliseconds.
#[expect(clippy::cast_precision_loss, reason = "a rate needs no 64 bits")]
fn one_thread() -> f64 {
    const BYTES: usize = 8 << 20;
    let from = vec![1u8; BYTES];
    let mut to = vec![2u8; BYTES];
    let began = Instant::now();
    to.copy_from_slice(&from);
    let nanoseconds = began.elapsed().as_nanos().max(1) as f64;
    std::hint::black_box(&to);
    BYTES as f64 / nanoseconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read_as_the_system_writes_them() {
        let cpus = parse_cpus("0-2,64,70-71\n").unwrap();
        assert_eq!((cpus.0[0], cpus.0[1]), (0b111, 0b1100_0001));
        assert_eq!(parse_cpus("0-99999"), None);
        assert_eq!(parse_cpus("").unwrap().within(cpus), None);
    }

    #[test]
    fn a_link_is_its_lanes_times_their_rate() {
        assert!((peak("32.0 GT/s PCIe\n", "16\n").unwrap() - 63.0).abs() < 0.1);
        assert!((peak("2.5 GT/s PCIe", "16").unwrap() - 4.0).abs() < 0.1);
        assert_eq!(peak("Unknown", "63"), None);
    }

    #[test]
    fn as_many_threads_as_fill_the_link() {
        assert_eq!(wanted(63.0, 11.5), 8);
        assert_eq!(wanted(63.0, 14.5), 8, "in the caches a thread is faster than it will be");
        assert_eq!(wanted(63.0, 6.0), 15);
        assert_eq!(wanted(15.75, 12.0), 2);
    }

    #[test]
    fn the_calling_thread_has_a_cpu_of_its_own_where_it_does_not_copy() {
        assert_eq!([fitting(8, 16), fitting(8, 8), fitting(8, 5), fitting(8, 2)], [8, 7, 4, 2]);
        assert_eq!([fitting(30, 64), fitting(3, 16), fitting(1, 2)], [MOST, 3, 1]);
    }
}
