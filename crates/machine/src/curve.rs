//! How fast is a copy of this size? A measured curve: a latency plus a bandwidth does not fit it.

use crate::bench::terms::{Direction, HostMemory};

/// (bytes, GB/s) sorted by size; between points the rate is interpolated over the logarithm of the size.
pub(crate) type Points = [(u64, f64)];

/// GB/s at the powers of two from 256 B to 1 GiB, measured by `busbound bench --full` on an H200 (PCIe 5 x16). A
/// test compares them with fixtures/machines/h200.json.
type Rates = [f64; 23];
const SMALLEST_POWER: u32 = 8;

/// Pinned, H2D.
const PINNED_H2D: Rates = [
    0.10, 0.20, 0.38, 0.81, 1.59, 3.03, 5.71, 10.2, 17.0, 25.6, 35.2, 43.5, 48.8, 51.8, 53.6, 54.5, 54.9,
    55.2, 55.2, 55.4, 55.4, 55.5, 55.5,
];
const PINNED_D2H: Rates = [
    0.17, 0.33, 0.65, 1.25, 2.40, 4.51, 8.76, 15.2, 23.6, 32.1, 41.5, 47.5, 51.2, 52.5, 53.9, 54.6, 55.0,
    55.2, 55.1, 55.2, 55.3, 55.3, 55.3,
];
/// Pageable: staged by the host, so it varies by host.
const PAGEABLE_H2D: Rates = [
    0.15, 0.27, 0.54, 1.05, 1.78, 2.41, 4.26, 5.51, 5.46, 6.53, 7.99, 7.87, 7.87, 8.16, 8.84, 8.96, 8.83,
    8.13, 8.97, 7.91, 8.51, 7.81, 8.31,
];
const PAGEABLE_D2H: Rates = [
    0.04, 0.07, 0.14, 0.28, 0.51, 0.98, 1.84, 3.00, 4.58, 6.82, 8.16, 9.24, 9.86, 11.6, 13.5, 14.6, 15.6,
    15.5, 14.3, 14.6, 15.3, 15.4, 15.3,
];
/// One copy at a time, H2D.
const PINNED_SINGLE: Rates = [
    0.07, 0.14, 0.26, 0.21, 0.41, 0.81, 1.60, 3.05, 5.89, 11.0, 18.1, 28.0, 37.2, 44.6, 49.4, 52.4, 53.9,
    54.7, 55.1, 55.3, 55.4, 55.4, 55.4,
];
const PAGEABLE_SINGLE: Rates = [
    0.09, 0.17, 0.34, 0.64, 1.19, 1.99, 2.73, 3.47, 3.93, 5.44, 5.08, 5.81, 6.11, 6.42, 6.82, 8.40, 8.61,
    8.66, 8.69, 8.45, 8.37, 7.03, 8.71,
];

/// The rate that large copies reach on the measured link.
pub(crate) const PLATEAU_H200: f64 = 55.5;
/// Microseconds from a launch on that host until it knew that the work was done.
pub(crate) const WAIT_H200_US: f64 = 9.0;

fn points(rates: &Rates) -> Vec<(u64, f64)> {
    (SMALLEST_POWER..).zip(rates).map(|(power, gbps)| (1 << power, *gbps)).collect()
}

/// Back-to-back copies on the H200.
pub(crate) fn streamed(direction: Direction, memory: HostMemory) -> Vec<(u64, f64)> {
    points(match (direction, memory) {
        (Direction::H2d, HostMemory::Pinned) => &PINNED_H2D,
        (Direction::D2h, HostMemory::Pinned) => &PINNED_D2H,
        (Direction::H2d, HostMemory::Pageable) => &PAGEABLE_H2D,
        (Direction::D2h, HostMemory::Pageable) => &PAGEABLE_D2H,
    })
}

/// One H2D copy at a time on the H200.
pub(crate) fn single(memory: HostMemory) -> Vec<(u64, f64)> {
    points(match memory {
        HostMemory::Pinned => &PINNED_SINGLE,
        HostMemory::Pageable => &PAGEABLE_SINGLE,
    })
}

/// GB/s at a size. Below the first point the time is constant, so the rate is proportional to the size.
pub(crate) fn at(points: &Points, bytes: u64) -> f64 {
    let (Some(&(least, slowest)), Some(&(_, last))) = (points.first(), points.last()) else { return 0.0 };
    if bytes <= least {
        return slowest * bytes as f64 / least as f64;
    }
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        if bytes <= x1 {
            let share = (bytes as f64 / x0 as f64).ln() / (x1 as f64 / x0 as f64).ln();
            return y0 + (y1 - y0) * share;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MachineProfile;
    use crate::bench::{Engine, Memory, Pace};

    #[test]
    fn points_are_exact_and_sizes_between_them_are_interpolated() {
        let points = [(1 << 20, 48.0), (2 << 20, 51.0), (4 << 20, 53.0)];
        assert_eq!(at(&points, 2 << 20), 51.0);
        let between = at(&points, 3 << 20);
        assert!(between > 51.0 && between < 53.0);
        assert_eq!((at(&points, 1 << 30), at(&points, 1 << 19)), (53.0, 24.0));
        assert_eq!(at(&[], 5), 0.0);
    }

    #[test]
    fn the_built_in_curves_match_the_measured_profile() {
        let profile = MachineProfile::parse(include_str!("../../../fixtures/machines/h200.json")).unwrap();
        let same = |rates: &[(u64, f64)], direction, memory: HostMemory, pace| {
            let curve = profile.curve(direction, Memory::from(memory), Engine::CopyEngine, pace).unwrap();
            assert_eq!(rates.len(), curve.points.len());
            for ((bytes, gbps), point) in rates.iter().zip(&curve.points) {
                assert_eq!(*bytes, point.bytes);
                assert!(
                    (gbps - point.gbps).abs() <= 0.05,
                    "{direction:?} {memory:?} {bytes}: {gbps} and {}",
                    point.gbps
                );
            }
        };
        for memory in [HostMemory::Pinned, HostMemory::Pageable] {
            for direction in [Direction::H2d, Direction::D2h] {
                same(&streamed(direction, memory), direction, memory, Pace::BackToBack);
            }
            same(&single(memory), Direction::H2d, memory, Pace::Single);
        }
        assert!((PLATEAU_H200 - profile.plateau_gbps(Direction::H2d).unwrap()).abs() <= 0.05);
        assert!((WAIT_H200_US - profile.wait_us().unwrap()).abs() <= 0.05);
    }
}
