//! What was measured? The raw time of every repetition, without averaging, and the results derived from them.

use serde::{Deserialize, Serialize};

use super::figures::{Cause, FigureUnit, Judgment, MeasuredFigure};
use super::identity::Identity;
use super::plan::Mode;
use super::suites::{BenchSuite, Case, Evidence, Suite, figures_of_all, keep_all};
use crate::catalog;
use crate::link::PcieLink;
use crate::profile::{MachineProfile, PROFILE_SCHEMA};
use crate::resolve::C2C_NAME;

pub const SAMPLES_SCHEMA: &str = "busbound.samples/1";

/// One run of `busbound bench`, before any statistics: enough to recompute every figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    pub schema: String,
    /// The program's version.
    pub busbound: String,
    /// UTC, such as `2026-11-15T09:30:00Z`.
    pub date: String,
    pub mode: Mode,
    pub wall_s: f64,
    /// Whether the run was stopped early.
    pub interrupted: bool,
    pub identity: Identity,
    /// Peak memory use on the device and on the host.
    pub device_bytes: u64,
    pub host_bytes: u64,
    pub cases: Vec<Case>,
    pub skipped: Vec<Skipped>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped {
    pub suite: Suite,
    pub why: String,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplesError {
    #[error("is damaged, or not what `busbound bench --raw FILE` writes: measure again ({0})")]
    Json(#[from] serde_json::Error),
    #[error("has schema {0:?}, not {SAMPLES_SCHEMA:?}")]
    Schema(String),
    #[error("is invalid: a case of suite {0} has no times, or a time of zero")]
    NoTimes(&'static str),
}

impl Samples {
    /// Reads saved samples.
    ///
    /// # Errors
    /// If the text is not a samples file, or a case has no times.
    pub fn parse(json: &str) -> Result<Self, SamplesError> {
        let samples: Self = serde_json::from_str(json)?;
        if samples.schema != SAMPLES_SCHEMA {
            return Err(SamplesError::Schema(samples.schema));
        }
        for case in &samples.cases {
            if case.series().into_iter().any(|ns| ns.is_empty() || ns.contains(&0)) {
                return Err(SamplesError::NoTimes(case.suite().name()));
            }
        }
        Ok(samples)
    }

    /// The cases of one suite, without those whose data was wrong.
    pub fn cases_of<S: BenchSuite>(&self) -> impl Iterator<Item = &S::Case> {
        self.cases.iter().filter(|case| case.verified() != Some(false)).filter_map(S::of)
    }

    /// The number of measurements with wrong data, and the number whose data was checked.
    pub fn wrong_data(&self) -> (usize, usize) {
        let checked = self.cases.iter().filter_map(Case::verified);
        (checked.clone().filter(|verified| !verified).count(), checked.count())
    }

    /// The profile, with the measured curves; figures of suites that did not run are absent.
    pub fn profile(&self) -> MachineProfile {
        let (link, peak_gbps) = self.link();
        let mut profile = MachineProfile {
            schema: PROFILE_SCHEMA.to_owned(),
            gpu: self.identity.gpu.clone(),
            link,
            peak_gbps,
            measured: format!(
                "busbound {} bench on {}, driver {}, {}",
                self.busbound, self.identity.gpu, self.identity.driver, self.date
            ),
            date: Some(self.date.clone()),
            identity: Some(self.identity.clone()),
            ..MachineProfile::default()
        };
        keep_all(&self.cases, &self.identity, &mut profile);
        profile
    }

    /// Every figure with its expected value; `profile` must come from these samples.
    pub fn figures(&self, profile: &MachineProfile) -> Vec<MeasuredFigure> {
        let mut figures = figures_of_all(&Evidence { identity: &self.identity, profile, cases: &self.cases });
        figures.extend(self.wrong_data_figure());
        figures
    }

    fn wrong_data_figure(&self) -> Option<MeasuredFigure> {
        let (wrong, checked) = self.wrong_data();
        let what = format!("measurements with wrong data, of {checked} checked");
        let mut figure = MeasuredFigure::fact("wrong_data", what, wrong as f64, FigureUnit::Count);
        figure.judgment = if wrong == 0 { Judgment::Fine } else { Judgment::Low };
        if wrong > 0 {
            figure.causes = vec![
                Cause::likely(
                    "broken peer-to-peer traffic under an IOMMU",
                    "`busbound topo`; `busbound bench --suite p2p` pair by pair",
                ),
                Cause::likely(
                    "failing memory",
                    "`nvidia-smi -q -d ECC,PAGE_RETIREMENT`; the kernel log for Xid errors",
                ),
            ];
        }
        (checked > 0).then_some(figure)
    }

    /// The link as trained under load, else from the GPU's data sheet. A link other than PCIe does not appear in
    /// PCIe registers, so its rate comes from the data sheet.
    fn link(&self) -> (String, f64) {
        let listed = catalog::gpu_of_name(&self.identity.gpu);
        if let Some(c2c) = listed.and_then(|gpu| gpu.c2c) {
            return (C2C_NAME.to_owned(), c2c.peak_gbps);
        }
        let seen = self.identity.link.and_then(|seen| {
            Some(PcieLink {
                generation: u8::try_from(seen.generation).ok().filter(|generation| *generation > 0)?,
                lanes: u8::try_from(seen.lanes).ok().filter(|lanes| *lanes > 0)?,
            })
        });
        match seen.or(listed.map(|gpu| gpu.pcie)) {
            Some(link) => (link.name(), link.peak_gbps()),
            None => {
                let assumed = PcieLink::ASSUMED;
                (format!("{} (assumed)", assumed.name()), assumed.peak_gbps())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format of saved samples: the suite's name first, then the task's fields flattened into the case.
    #[test]
    fn a_case_is_written_flat_with_its_suite_first_and_survives_a_round_trip() {
        let written = [
            r#"{"suite":"duplex","bytes":8,"copies":2,"together_ns":[3],"h2d_loaded_ns":[2],"d2h_loaded_ns":[2],"verified":true}"#,
            r#"{"suite":"peer_to_peer","from":0,"to":1,"bytes":8,"copies":1,"direct":true,"ns":[4],"verified":true}"#,
            r#"{"suite":"latency","what":"launch_call","ns":[7]}"#,
            r#"{"suite":"all_reduce","ranks":2,"bytes":4,"ns":[9],"verified":true,"library":"2.21"}"#,
            r#"{"suite":"all_reduce","ranks":4,"processes":{"one_per_gpu":{"nodes":2}},"bytes":4,"ns":[9],"verified":true,"library":"2.21"}"#,
            r#"{"suite":"hbm","bytes":8,"engine":"kernel","copies":1,"ns":[5],"verified":false}"#,
            r#"{"suite":"power","duty_percent":50,"kernel_ns":[6],"samples":[],"like_a_gemm":false}"#,
        ];
        for text in written {
            let case: Case = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&case).unwrap(), text);
        }
        // Older samples do not name the kernel; it was always like a GEMM.
        let old: Case =
            serde_json::from_str(r#"{"suite":"power","duty_percent":50,"kernel_ns":[6],"samples":[]}"#)
                .unwrap();
        assert!(matches!(old, Case::Power(case) if case.like_a_gemm));
    }
}
