//! The work that runs at the same time, and how fast. All running work of one kind on a device has the same rate, so each kind has
//! one clock that advances at that rate, and work ends when the clock reaches its end: the cost of an event does not depend on how
//! much is running.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::Time;
use crate::graph::{WorkId, WorkKind};
use crate::sharing::{LANES, Lane, Sharing};

/// Rounding errors of the clocks are below this, in nanoseconds.
const ROUNDING: f64 = 1e-3;

/// When work ends, on the clock of its lane.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Finish(f64, WorkId);

impl Eq for Finish {}

impl PartialOrd for Finish {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Finish {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

/// The work of one lane of one device.
#[derive(Debug, Clone, Default)]
struct Shared {
    clock: f64,
    rate: f64,
    work: BinaryHeap<Reverse<Finish>>,
}

#[derive(Debug, Clone, Default)]
struct Device {
    lanes: [Shared; LANES],
    /// How much runs in each, and in all of them.
    running: [usize; LANES],
    all: usize,
    /// When the clocks were read last.
    read: Time,
}

/// All running work.
#[derive(Debug)]
pub(crate) struct Running {
    sharing: Sharing,
    devices: Vec<Device>,
    ends: Ends,
    heavy: usize,
    kernels: usize,
}

impl Running {
    pub(crate) fn new(devices: usize, sharing: Sharing) -> Self {
        Self {
            sharing,
            devices: vec![Device::default(); devices],
            ends: Ends::new(devices),
            heavy: 0,
            kernels: 0,
        }
    }

    pub(crate) fn start(&mut self, now: Time, device: usize, work: WorkId, kind: WorkKind, alone: f64) {
        let (lane, sharing) = (Lane::of(kind), self.sharing);
        let scale = if lane == Lane::Heavy { sharing.heavy } else { 1.0 };
        self.heavy += usize::from(lane == Lane::Heavy);
        self.kernels += usize::from(kind.is_kernel());
        let end = self.devices[device].start(now, lane, work, (alone * scale).max(0.0), &sharing);
        self.ends.set(device, end);
    }

    /// Ends the work that [`next_end`](Self::next_end) named.
    pub(crate) fn finish(&mut self, now: Time, device: usize, kind: WorkKind) {
        let lane = Lane::of(kind);
        self.heavy -= usize::from(lane == Lane::Heavy);
        self.kernels -= usize::from(kind.is_kernel());
        let end = self.devices[device].finish(now, lane, &self.sharing);
        self.ends.set(device, end);
    }

    /// The running work that ends first, and when.
    pub(crate) fn next_end(&self) -> Option<(Time, WorkId)> {
        self.ends.first()
    }

    /// Whether a matrix kernel runs.
    pub(crate) fn has_heavy(&self) -> bool {
        self.heavy > 0
    }

    /// Whether any kernel runs.
    pub(crate) fn has_kernels(&self) -> bool {
        self.kernels > 0
    }
}

/// When the first work on each device ends. The earliest of all is the root of a tree in which each node has the earlier of its two
/// ends: one device costs nothing, and a thousand ten comparisons.
#[derive(Debug)]
struct Ends {
    /// The root is at 1, the children of `i` at `2 * i` and `2 * i + 1`; the devices are the second half.
    tree: Vec<(Time, WorkId)>,
}

impl Ends {
    const NONE: (Time, WorkId) = (Time::MAX, WorkId::MAX);

    fn new(devices: usize) -> Self {
        Self { tree: vec![Self::NONE; 2 * devices.next_power_of_two()] }
    }

    fn set(&mut self, device: usize, end: Option<(Time, WorkId)>) {
        let mut at = self.tree.len() / 2 + device;
        self.tree[at] = end.unwrap_or(Self::NONE);
        while at > 1 {
            at /= 2;
            self.tree[at] = self.tree[2 * at].min(self.tree[2 * at + 1]);
        }
    }

    fn first(&self) -> Option<(Time, WorkId)> {
        Some(self.tree[1]).filter(|end| *end != Self::NONE)
    }
}

impl Device {
    /// When the first work ends from now on. Most work runs alone, at the rate 1: then there is nothing to share.
    fn start(
        &mut self,
        now: Time,
        lane: Lane,
        work: WorkId,
        alone: f64,
        sharing: &Sharing,
    ) -> Option<(Time, WorkId)> {
        if self.all > 0 {
            self.read_clocks(now);
        }
        self.read = now;
        self.all += 1;
        self.running[lane as usize] += 1;
        let shared = &mut self.lanes[lane as usize];
        shared.work.push(Reverse(Finish(shared.clock + alone, work)));
        if self.all == 1 {
            shared.rate = 1.0;
            return Some((now + nanos_left(alone), work));
        }
        self.share(sharing);
        self.first_end()
    }

    fn finish(&mut self, now: Time, lane: Lane, sharing: &Sharing) -> Option<(Time, WorkId)> {
        self.all -= 1;
        if self.all > 0 {
            self.read_clocks(now);
        }
        self.running[lane as usize] -= 1;
        let shared = &mut self.lanes[lane as usize];
        shared.work.pop();
        if shared.work.is_empty() {
            shared.clock = 0.0;
        }
        if self.all == 0 {
            return None;
        }
        self.share(sharing);
        self.first_end()
    }

    fn read_clocks(&mut self, now: Time) {
        let passed = (now - self.read) as f64;
        for (shared, running) in self.lanes.iter_mut().zip(&self.running) {
            if *running > 0 {
                shared.clock += passed * shared.rate;
            }
        }
        self.read = now;
    }

    fn share(&mut self, sharing: &Sharing) {
        for (shared, rate) in self.lanes.iter_mut().zip(&sharing.rates(&self.running)) {
            shared.rate = *rate;
        }
    }

    fn first_end(&self) -> Option<(Time, WorkId)> {
        let mut first: Option<(Time, WorkId)> = None;
        for (shared, running) in self.lanes.iter().zip(&self.running) {
            if *running == 0 {
                continue;
            }
            let Some(Reverse(Finish(finish, work))) = shared.work.peek() else { continue };
            let alone = finish - shared.clock;
            // Dividing takes longer than all the rest.
            let left = if shared.rate == 1.0 { alone } else { alone / shared.rate };
            let end = (self.read + nanos_left(left), *work);
            first = Some(first.map_or(end, |first| first.min(end)));
        }
        first
    }
}

fn nanos_left(left: f64) -> Time {
    (left - ROUNDING).max(0.0).ceil() as Time
}

#[cfg(test)]
mod tests {
    use super::*;
    use busbound_trace::Direction;

    const SHARING: Sharing = Sharing { duplex: 1.25, kernel_with_copy: 2.0, heavy: 1.0 };
    const KERNEL: WorkKind = WorkKind::Kernel { heavy: false };
    const MATRIX: WorkKind = WorkKind::Kernel { heavy: true };

    fn copy(direction: Direction) -> WorkKind {
        WorkKind::Copy { direction, pageable: false, bytes: 1 }
    }

    /// Starts everything at its time, and returns when each work ends. Each has a start, a device, a kind and its time alone.
    fn ends(all: &[(Time, usize, WorkKind, f64)]) -> Vec<Time> {
        let mut running = Running::new(2, SHARING);
        let mut ends = vec![0; all.len()];
        let mut next = 0;
        loop {
            match (all.get(next), running.next_end()) {
                (Some((start, device, kind, alone)), end) if end.is_none_or(|(at, _)| *start < at) => {
                    running.start(*start, *device, next, *kind, *alone);
                    next += 1;
                }
                (_, Some((at, work))) => {
                    running.finish(at, all[work].1, all[work].2);
                    ends[work] = at;
                }
                (_, None) => return ends,
            }
        }
    }

    #[test]
    fn kernels_of_one_device_share_it_and_those_of_two_do_not() {
        // Alone for 10, then at half the rate: 20 for the remaining 10.
        assert_eq!(ends(&[(0, 0, KERNEL, 20.0), (10, 0, KERNEL, 10.0)]), [30, 30]);
        assert_eq!(ends(&[(0, 0, KERNEL, 20.0), (10, 1, KERNEL, 10.0)]), [20, 20]);
    }

    #[test]
    fn copies_share_a_direction_and_slow_down_the_other_one_and_matrix_kernels() {
        let (up, down) = (copy(Direction::HostToDevice), copy(Direction::DeviceToHost));
        assert_eq!(ends(&[(0, 0, up, 10.0), (0, 0, up, 10.0)]), [20, 20]);
        assert_eq!(ends(&[(0, 0, up, 100.0), (0, 0, down, 40.0)]), [110, 50]);
        assert_eq!(ends(&[(0, 0, up, 10.0), (0, 0, MATRIX, 20.0)]), [10, 25]);
        assert_eq!(ends(&[(0, 0, up, 10.0), (0, 0, KERNEL, 20.0)]), [10, 20]);
    }

    /// With a hundred thousand kernels at the same time, each event used to cost as much as all that was running.
    #[test]
    fn a_hundred_thousand_kernels_at_the_same_time() {
        let all: Vec<_> = (0..100_000).map(|_| (0, 0, KERNEL, 1.0)).collect();
        assert!(ends(&all).iter().all(|end| *end == 100_000));
    }
}
