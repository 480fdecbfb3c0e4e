//! How fast are copies between GPUs, and is the data correct?

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Evidence, LARGE_COPY, Phase, SuiteCase, Topic, median_gbps};
use crate::bench::figures::{Cause, FigureUnit, MeasuredFigure};
use crate::bench::identity::Identity;
use crate::bench::plan::{Limits, MIB, Mode};
use crate::catalog::gpu_of_name;
use crate::link::REACHED_BY_LARGE_COPIES;
use crate::profile::{MachineProfile, PeerFacts};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerToPeerTask {
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerToPeerCase {
    #[serde(flatten)]
    pub task: PeerToPeerTask,
    pub copies: u32,
    pub direct: bool,
    pub ns: Vec<u64>,
    pub verified: bool,
}

impl BenchSuite for PeerToPeerTask {
    const NAME: &'static str = "p2p";
    const PHASE: Phase = Phase::Pattern;
    const TOPIC: Topic = Topic::Peers;

    fn plan(_mode: Mode, limits: &Limits) -> Vec<Self> {
        let bytes = (256 * MIB).min(limits.largest);
        pairs(limits.gpus).map(|(from, to)| Self { from, to, bytes }).collect()
    }

    fn left_out(_mode: Mode, limits: &Limits) -> Option<&'static str> {
        (limits.gpus == 1).then_some("CUDA reports only one GPU")
    }

    fn keep(cases: &[&PeerToPeerCase], _identity: &Identity, profile: &mut MachineProfile) {
        profile.p2p.extend(cases.iter().filter_map(|case| {
            let PeerToPeerTask { from, to, bytes } = case.task;
            let gbps = median_gbps(&case.ns, bytes * u64::from(case.copies))?;
            Some(PeerFacts { from, to, direct: case.direct, bytes, gbps })
        }));
    }

    fn figures(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        let nvlink = gpu_of_name(&evidence.profile.gpu).map_or(0.0, |gpu| gpu.nvlink_gbps);
        evidence.profile.p2p.iter().map(|pair| figure(evidence, pair, nvlink)).collect()
    }
}

fn figure(evidence: &Evidence<'_>, pair: &PeerFacts, nvlink: f64) -> MeasuredFigure {
    let mut what = format!("GPU {} to GPU {}", pair.from, pair.to);
    // The number of NVLinks per pair is unknown here: a pair may have only some of them.
    if nvlink > 0.0 {
        what.push_str(&format!(" (all of its NVLinks: {nvlink:.0} GB/s per direction)"));
    }
    if !pair.direct {
        what.push_str(", staged through the host");
    }
    let figure = MeasuredFigure::fact("p2p", what, pair.gbps, FigureUnit::GigabytesPerSecond);
    match evidence.due_link() {
        Some((link, peak)) if pair.bytes >= LARGE_COPY => {
            let from =
                format!("at least {:.0}% of the {peak:.1} GB/s of {link}", 100.0 * REACHED_BY_LARGE_COPIES);
            figure.judged(REACHED_BY_LARGE_COPIES * peak, from, || causes(pair.direct, nvlink > 0.0))
        }
        _ => figure,
    }
}

fn causes(direct: bool, has_nvlink: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    if !direct {
        causes.push(Cause::seen(
            "the driver does not allow peer access between these GPUs: it stages through the host",
            "run `nvidia-smi topo -p2p r`; `busbound topo` shows ACS and IOMMU on the path",
        ));
    }
    if has_nvlink {
        causes.push(Cause::likely(
            "NVLinks are down, or these two boards have no NVLink bridge",
            "run `nvidia-smi nvlink -s`; `busbound topo` counts the bonded links",
        ));
    }
    causes.push(Cause::likely(
        "access control (ACS) on a switch redirects traffic to the host and back",
        "run `busbound topo`; in a virtual machine do not change ACS",
    ));
    causes.push(Cause::likely(
        "GPUs on different sockets",
        "run `busbound topo` and look for SYS in the matrix",
    ));
    causes
}

fn pairs(gpus: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..gpus).flat_map(move |from| (0..gpus).filter(move |to| *to != from).map(move |to| (from, to)))
}

impl fmt::Display for PeerToPeerTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p2p: GPU {} to GPU {}", self.from, self.to)
    }
}

impl SuiteCase for PeerToPeerCase {
    fn series(&self) -> Vec<&[u64]> {
        vec![&self.ns]
    }

    fn verified(&self) -> Option<bool> {
        Some(self.verified)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::H200;
    use super::*;

    #[test]
    fn every_pair_is_measured_in_both_directions_and_one_gpu_has_no_pairs() {
        assert!(PeerToPeerTask::plan(Mode::Full, &H200).is_empty());
        assert!(PeerToPeerTask::left_out(Mode::Full, &H200).is_some());
        let four = Limits { gpus: 4, ..H200 };
        assert_eq!(PeerToPeerTask::plan(Mode::Full, &four).len(), 12);
        assert_eq!(PeerToPeerTask::left_out(Mode::Full, &four), None);
    }
}
