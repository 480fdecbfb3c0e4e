//! How much of what a kernel reads over the link is different data? A matrix product reads its weights once per row of tiles: the counters
//! show all of it, a copy would move it once. The sizes of pinned allocations say which of that is plausible.

use std::collections::BTreeMap;

use crate::thresholds::{AS_LARGE, MOST_REREADS, WORTH_CONSIDERING};

/// The bytes of one launch that a copy would move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Once {
    pub least: u64,
    pub likely: u64,
    pub most: u64,
}

impl Once {
    pub(crate) fn all(bytes: u64) -> Self {
        Self { least: bytes, likely: bytes, most: bytes }
    }

    /// Of a kernel that may read its data several times; `sizes` are those of all pinned allocations, with their number.
    ///
    /// Each size that divides what is read is a possible one; that of which there is most memory is the likely one. Where no size does,
    /// or none is recorded, nothing is known: all bytes count, as for a kernel that reads each byte once.
    pub(crate) fn of(bytes: u64, sizes: Option<&BTreeMap<u64, u32>>) -> Self {
        let possible = sizes.into_iter().flatten().filter_map(|(&size, &count)| {
            let once = bytes as f64 / times_read(bytes as f64, size)?;
            Some((once as u64, size as f64 * f64::from(count)))
        });
        let possible: Vec<(u64, f64)> = possible.collect();
        let Some(likely) = possible.iter().max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return Self::all(bytes);
        };
        let considered = possible.iter().filter(|one| one.1 >= WORTH_CONSIDERING * likely.1).map(|one| one.0);
        Self {
            least: considered.clone().min().unwrap_or(bytes),
            likely: likely.0,
            most: considered.max().unwrap_or(bytes),
        }
    }
}

/// How often an allocation of this size is read, if that is all a kernel reads.
///
/// PyTorch's allocator rounds sizes up to powers of two: there the data may be smaller than the allocation. Tiles are
/// powers of two, and so is the number of their rows for usual numbers of tokens.
fn times_read(bytes: f64, size: u64) -> Option<f64> {
    let ratio = bytes / size as f64;
    let times =
        if size.is_power_of_two() { (ratio / (1.0 + AS_LARGE)).log2().ceil().exp2() } else { ratio.round() };
    let used = ratio / times;
    let is_rounded = size.is_power_of_two() && used > 0.5;
    let is_possible = used < 1.0 + AS_LARGE && (used > 1.0 - AS_LARGE || is_rounded);
    ((1.0..=MOST_REREADS).contains(&times) && is_possible).then_some(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn of(bytes: u64, sizes: &[(u64, u32)]) -> Once {
        Once::of(bytes, Some(&sizes.iter().copied().collect()))
    }

    #[test]
    fn weights_that_are_read_once_per_row_of_tiles_count_once() {
        assert_eq!(of(256 * MIB, &[(32 * MIB, 8)]), Once::all(32 * MIB));
        // Bytes are known to a few percent.
        assert_eq!(of(253 * MIB, &[(32 * MIB, 8)]).likely, 253 * MIB / 8);
        assert_eq!(of(300 * MIB, &[(100 * MIB, 4)]), Once::all(100 * MIB));
    }

    #[test]
    fn rounded_allocations_hold_less() {
        assert_eq!(of(288 * MIB, &[(128 * MIB, 6)]), Once::all(72 * MIB));
    }

    #[test]
    fn what_is_read_once_stays() {
        for bytes in [31 * MIB, 32 * MIB, 33 * MIB] {
            assert_eq!(of(bytes, &[(32 * MIB, 12), (128 * MIB, 1)]), Once::all(bytes));
        }
    }

    #[test]
    fn other_allocations_that_could_be_meant_make_a_range() {
        let once = of(256 * MIB, &[(32 * MIB, 8), (300 * MIB, 1), (250 * MIB, 1)]);
        assert_eq!((once.least, once.likely, once.most), (32 * MIB, 32 * MIB, 256 * MIB));
        // Small buffers of the framework are not the weights.
        assert_eq!(of(256 * MIB, &[(32 * MIB, 8), (8 * MIB, 2)]), Once::all(32 * MIB));
    }

    #[test]
    fn nothing_is_known_without_an_allocation_that_fits() {
        assert_eq!(of(256 * MIB, &[(300 * MIB, 2)]), Once::all(256 * MIB));
        assert_eq!(of(256 * MIB, &[(MIB, 50)]), Once::all(256 * MIB), "too often");
        assert_eq!(Once::of(5, None), Once::all(5));
    }
}
