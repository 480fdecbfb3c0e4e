//! What was measured of a machine: the file that everything else trusts before any data sheet.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::curve;
use crate::resolve::HostMemory;

pub const PROFILE_SCHEMA: &str = "busbound.machine/1";

/// Curves of copies by direction and memory, with what they were measured on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineProfile {
    pub schema: String,
    /// As the driver reports it.
    pub gpu: String,
    /// `PCIe 5 x16`.
    pub link: String,
    /// Line peak of one direction in GB/s.
    pub peak_gbps: f64,
    /// Where the figures come from: command, machine, date.
    pub measured: String,
    pub curves: Vec<MeasuredCurve>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredCurve {
    pub direction: CurveDirection,
    pub memory: CurveMemory,
    /// In order of size.
    pub points: Vec<CurvePoint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CurveDirection {
    H2d,
    D2h,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CurveMemory {
    Pinned,
    Pageable,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    pub bytes: u64,
    pub gbps: f64,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    #[error("is no machine profile: {0}")]
    Json(#[from] serde_json::Error),
    #[error("has schema {0:?}, not {PROFILE_SCHEMA:?}")]
    Schema(String),
    #[error("makes no sense: {0}")]
    Nonsense(&'static str),
}

impl MachineProfile {
    /// Reads a profile.
    ///
    /// # Errors
    /// If it is something else, or if its figures cannot be.
    pub fn parse(json: &str) -> Result<Self, ProfileError> {
        let profile: Self = serde_json::from_str(json)?;
        if profile.schema != PROFILE_SCHEMA {
            return Err(ProfileError::Schema(profile.schema));
        }
        let above_zero = |gbps: f64| gbps.is_finite() && gbps > 0.0;
        if !above_zero(profile.peak_gbps) {
            return Err(ProfileError::Nonsense("peak_gbps must be above zero"));
        }
        for curve in &profile.curves {
            if !curve.points.iter().all(|point| above_zero(point.gbps) && point.bytes > 0) {
                return Err(ProfileError::Nonsense("sizes and rates of a curve must be above zero"));
            }
            if !curve.points.is_sorted_by(|a, b| a.bytes < b.bytes) || curve.points.is_empty() {
                return Err(ProfileError::Nonsense("a curve must have points in order of size"));
            }
        }
        if profile.curve(CurveDirection::H2d, HostMemory::Pinned).is_none() {
            return Err(ProfileError::Nonsense("it has no curve of pinned copies to the device"));
        }
        Ok(profile)
    }

    fn curve(&self, direction: CurveDirection, memory: HostMemory) -> Option<&MeasuredCurve> {
        let memory = match memory {
            HostMemory::Pinned => CurveMemory::Pinned,
            HostMemory::Pageable => CurveMemory::Pageable,
        };
        self.curves.iter().find(|curve| curve.direction == direction && curve.memory == memory)
    }

    /// GB/s of a copy of this size to the device; `None` where that memory was not measured.
    pub(crate) fn at(&self, bytes: u64, memory: HostMemory) -> Option<f64> {
        let points: Vec<(u64, f64)> = self
            .curve(CurveDirection::H2d, memory)?
            .points
            .iter()
            .map(|point| (point.bytes, point.gbps))
            .collect();
        Some(curve::at(&points, bytes))
    }

    /// What large pinned copies reach.
    pub(crate) fn plateau_gbps(&self) -> Option<f64> {
        let curve = self.curve(CurveDirection::H2d, HostMemory::Pinned)?;
        curve.points.iter().map(|point| point.gbps).max_by(f64::total_cmp)
    }
}

/// A profile that many links of one answer share.
pub(crate) type SharedProfile = Arc<MachineProfile>;
