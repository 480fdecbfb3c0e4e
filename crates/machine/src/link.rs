//! What is the peak of a PCIe link? Computed from lane rate, coding and width.

/// A PCIe link of one generation and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct PcieLink {
    pub generation: u8,
    pub lanes: u8,
}

/// The share of the line peak that large pinned copies reach (PCIe 5 x16: 55.4 of 63.0 GB/s).
pub(crate) const REACHED_BY_LARGE_COPIES: f64 = 0.88;

/// Both directions of a link together, in units of one: 98.6 of 55.4 GB/s, measured on an H200.
pub const DUPLEX: f64 = 98.6 / 55.4;

/// The share of the line peak that NCCL plans with: 48 of 63 GB/s.
pub const NCCL_SHARE: f64 = 48.0 / 63.0;

/// What one lane of a generation carries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lane {
    /// Gigatransfers per second: one bit each.
    pub gt_per_s: f64,
    /// Of so many sent units, so many are payload: bits of a symbol, or bytes of a FLIT.
    pub payload: u32,
    pub sent: u32,
}

impl PcieLink {
    /// Every generation.
    pub const GENERATIONS: std::ops::RangeInclusive<u8> = 1..=6;

    /// The link of an unknown GPU.
    pub(crate) const ASSUMED: Self = Self { generation: 4, lanes: 16 };

    /// The link of a GPU that the catalog does not list, by its compute capability: the one of most boards of that generation.
    pub(crate) fn of_capability((major, minor): (u32, u32)) -> Self {
        let generation = match (major, minor) {
            (0..=6, _) | (7, _) => 3,
            (8, _) => 4,
            _ => 5,
        };
        Self { generation, lanes: 16 }
    }

    /// Peak in one direction in GB/s, after line coding and before packet overhead.
    pub fn peak_gbps(self) -> f64 {
        let Lane { gt_per_s, payload, sent } = self.lane();
        gt_per_s * f64::from(payload) / f64::from(sent) * f64::from(self.lanes) / 8.0
    }

    pub fn lane(self) -> Lane {
        let (gt_per_s, payload, sent) = match self.generation {
            1 => (2.5, 8, 10),
            2 => (5.0, 8, 10),
            3 => (8.0, 128, 130),
            4 => (16.0, 128, 130),
            5 => (32.0, 128, 130),
            // FLIT mode: 242 of 256 bytes are payload.
            _ => (64.0, 242, 256),
        };
        Lane { gt_per_s, payload, sent }
    }

    pub fn name(self) -> String {
        format!("PCIe {} x{}", self.generation, self.lanes)
    }

    /// Reads `pcie4x16`, `PCIe 5 x8`, `gen3x16`.
    pub fn parse(text: &str) -> Option<Self> {
        let text: String = text.to_ascii_lowercase().split_whitespace().collect();
        let rest = text.strip_prefix("pcie").or(text.strip_prefix("gen"))?;
        let rest = rest.strip_prefix("gen").unwrap_or(rest);
        let (generation, lanes) = rest.split_once('x')?;
        let (generation, lanes) = (generation.trim_matches('-').parse().ok()?, lanes.parse().ok()?);
        (Self::GENERATIONS.contains(&generation) && [1, 2, 4, 8, 16].contains(&lanes))
            .then_some(Self { generation, lanes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_follow_from_rate_coding_and_width() {
        for (text, peak) in [
            ("pcie3x16", 15.75),
            ("pcie4x16", 31.5),
            ("PCIe 5 x16", 63.0),
            ("gen5x8", 31.5),
            ("pcie6x16", 121.0),
        ] {
            let link = PcieLink::parse(text).unwrap();
            assert!((link.peak_gbps() - peak).abs() < 0.1, "{text}: {}", link.peak_gbps());
        }
        for wrong in ["pcie7x16", "pcie4x3", "nvlink", "pcie", "4x16"] {
            assert_eq!(PcieLink::parse(wrong), None, "{wrong}");
        }
    }
}
