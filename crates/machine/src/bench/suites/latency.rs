//! What is the minimum cost of a launch, a copy, an event and a sync?

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
        LatencyKind::LaunchCall => ("launch_call", "kernel launch call"),
        LatencyKind::LaunchAndWait => {
            ("launch_and_wait", "launch of an empty kernel until the host knows it finished")
        }
        LatencyKind::KernelToKernel => ("kernel_to_kernel", "one queued empty kernel to the next"),
        LatencyKind::SmallestCopyH2d => ("smallest_copy_h2d", "blocking H2D copy of 4 bytes"),
        LatencyKind::SmallestCopyD2h => ("smallest_copy_d2h", "blocking D2H copy of 4 bytes"),
        LatencyKind::EventRecord => ("event_record", "event record call"),
        LatencyKind::EventWait => ("event_wait", "one stream to another through an event"),
        LatencyKind::StreamSynchronize => ("stream_synchronize", "sync of an idle stream"),
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
