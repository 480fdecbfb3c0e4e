//! What does the smallest thing of each kind cost?

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{BenchSuite, Evidence, Phase, SuiteCase, Topic};
use crate::bench::figures::{FigureUnit, MeasuredFigure};
use crate::bench::identity::Identity;
use crate::bench::plan::{Limits, Mode};
use crate::bench::statistics::Spread;
use crate::bench::terms::LatencyKind;
use crate::profile::{LatencyFacts, MachineProfile};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyTask {
    pub what: LatencyKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyCase {
    #[serde(flatten)]
    pub task: LatencyTask,
    pub ns: Vec<u64>,
}

const KINDS: [LatencyKind; 8] = [
    LatencyKind::LaunchCall,
    LatencyKind::LaunchAndWait,
    LatencyKind::KernelToKernel,
    LatencyKind::SmallestCopyH2d,
    LatencyKind::SmallestCopyD2h,
    LatencyKind::EventRecord,
    LatencyKind::EventWait,
    LatencyKind::StreamSynchronize,
];

impl BenchSuite for LatencyTask {
    const NAME: &'static str = "latency";
    const PHASE: Phase = Phase::Basis;
    const TOPIC: Topic = Topic::Latency;

    fn plan(_mode: Mode, _limits: &Limits) -> Vec<Self> {
        KINDS.map(|what| Self { what }).to_vec()
    }

    fn keep(cases: &[&LatencyCase], _identity: &Identity, profile: &mut MachineProfile) {
        profile.latencies.extend(cases.iter().filter_map(|case| {
            let us = Spread::of(case.ns.iter().map(|ns| *ns as f64 / 1e3))?;
            Some(LatencyFacts { what: case.task.what, us })
        }));
    }

    fn figures(evidence: &Evidence<'_>) -> Vec<MeasuredFigure> {
        let figure = |latency: &LatencyFacts| {
            let (id, what) = id_and_words(latency.what);
            MeasuredFigure::fact(id, what, latency.us.median, FigureUnit::Microseconds)
        };
        evidence.profile.latencies.iter().map(figure).collect()
    }
}

fn id_and_words(kind: LatencyKind) -> (&'static str, &'static str) {
    match kind {
        LatencyKind::LaunchCall => ("launch_call", "the call that launches a kernel"),
        LatencyKind::LaunchAndWait => ("launch_and_wait", "launching an empty kernel and waiting for it"),
        LatencyKind::KernelToKernel => ("kernel_to_kernel", "one empty kernel to the next, queued"),
        LatencyKind::SmallestCopyH2d => ("smallest_copy_h2d", "4 bytes to the device, waited for"),
        LatencyKind::SmallestCopyD2h => ("smallest_copy_d2h", "4 bytes to the host, waited for"),
        LatencyKind::EventRecord => ("event_record", "the call that records an event"),
        LatencyKind::EventWait => ("event_wait", "one stream to another by an event"),
        LatencyKind::StreamSynchronize => ("stream_synchronize", "synchronizing an idle stream"),
    }
}

impl fmt::Display for LatencyTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("latency")
    }
}

impl SuiteCase for LatencyCase {
    fn series(&self) -> Vec<&[u64]> {
        vec![&self.ns]
    }
}
