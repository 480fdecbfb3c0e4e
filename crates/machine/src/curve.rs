//! How fast is a copy of this size? The measured curve bends; a latency and a bandwidth do not give it.

/// (bytes, GB/s) in order of size; between points the rate is interpolated over the logarithm.
pub(crate) type Points = [(u64, f64)];

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Host to device from pinned memory, back to back on one stream; measured on an H200 (PCIe 5 x16).
pub(crate) const PINNED_H200: &Points = &[
    (4 * KIB, 0.52),
    (16 * KIB, 1.70),
    (64 * KIB, 10.0),
    (256 * KIB, 33.3),
    (MIB, 45.3),
    (4 * MIB, 52.1),
    (16 * MIB, 54.7),
    (64 * MIB, 55.0),
    (256 * MIB, 55.4),
    (1024 * MIB, 55.3),
];

/// The same from pageable memory: staging by the host, so it varies by host.
pub(crate) const PAGEABLE_H200: &Points = &[
    (4 * KIB, 0.50),
    (16 * KIB, 1.35),
    (64 * KIB, 4.30),
    (256 * KIB, 10.4),
    (MIB, 13.5),
    (4 * MIB, 12.5),
    (16 * MIB, 14.1),
    (64 * MIB, 6.70),
    (256 * MIB, 7.35),
    (1024 * MIB, 7.43),
];

/// What the measured link reaches with large copies.
pub(crate) const PLATEAU_H200: f64 = 55.3;

/// GB/s at a size. Below the first point time is constant, so the rate falls with the size.
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

    #[test]
    fn points_are_met_and_between_them_lies_between() {
        assert!((at(PINNED_H200, MIB) - 45.3).abs() < 1e-9);
        let between = at(PINNED_H200, 2 * MIB);
        assert!(between > 45.3 && between < 52.1);
        assert!((at(PINNED_H200, 4 << 30) - 55.3).abs() < 1e-9);
        assert!((at(PINNED_H200, 2 * KIB) - 0.26).abs() < 1e-9);
        assert_eq!(at(&[], 5), 0.0);
    }
}
