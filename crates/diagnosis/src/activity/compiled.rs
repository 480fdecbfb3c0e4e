//! Does torch.compile break graphs or recompile? Its ranges in the trace show it.

use std::collections::BTreeMap;

use busbound_trace::{EventKind, Interval, Nanos, Trace};
use serde::Serialize;

use crate::quantity::plural;
use busbound_cause::Host;

/// What the trace shows of compiled code. All zero if there is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compiled {
    /// Entries into compiled regions.
    pub regions: u64,
    /// Distinct frames among them. If only one function was compiled, more than one frame means a graph break.
    pub frames: u64,
    /// Frames that resume after a graph break; known only if the trace has stacks. Then the break is certain.
    pub resumed: u64,
    /// Graph breaks; `null` if unknown: several frames and no Python stacks.
    pub breaks: Option<u64>,
    /// Versions of a frame beyond its first: recompilations, usually for another shape.
    pub recompiled: u64,
    /// Time spent compiling within the trace.
    pub compiling_ms: f64,
    /// What that means; `null` if there is nothing to report.
    pub statement: Option<String>,
}

const REGION: &str = "Torch-Compiled Region: ";
const RESUMED: &str = "torch_dynamo_resume_in_";

pub(crate) fn compiled(trace: &Trace, host: &Host<'_>) -> Compiled {
    let names = trace.names();
    if !names.iter().any(|name| name.starts_with(REGION)) {
        return Compiled::default();
    }
    // `2/1` is the second version of frame 2.
    let versions: Vec<Option<(&str, &str)>> = names
        .iter()
        .map(|name| {
            let (frame, version) = name.strip_prefix(REGION)?.split_once('/')?;
            Some((frame, version.split('_').next().unwrap_or(version)))
        })
        .collect();
    let mut entries: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for event in trace
        .events()
        .filter(|event| event.kind() == EventKind::Operator || event.kind() == EventKind::Annotation)
    {
        if let Some(version) = versions[event.name_id().index()] {
            *entries.entry(version).or_default() += 1;
        }
    }
    let mut frames: Vec<&str> = entries.keys().map(|(frame, _)| *frame).collect();
    frames.dedup();
    let (frames, versions) = (frames.len() as u64, entries.len() as u64);
    let resumed = names.iter().filter(|name| name.contains(RESUMED)).count() as u64;
    let compiling_ms = host.compilations().map(Interval::length).sum::<Nanos>().as_millis();
    let recompiled = versions - frames;
    let has_stacks = || trace.events().any(|event| event.kind() == EventKind::PythonFrame);
    let breaks = (resumed > 0 || frames <= 1 || has_stacks()).then_some(resumed);
    let mut signs = Vec::new();
    if resumed > 0 {
        signs.push(format!(
            "{}: compiled code stops and resumes",
            plural(resumed, "graph break", "graph breaks")
        ));
    } else if frames > 1 {
        signs.push(format!("{frames} compiled frames: separate functions, or one function split into {frames} by graph breaks"));
    }
    if recompiled > 0 {
        signs.push(format!(
            "{}: a frame has several compiled versions, usually one per input shape",
            plural(recompiled, "recompilation", "recompilations")
        ));
    }
    if compiling_ms > 0.0 {
        signs.push(format!(
            "{} spent compiling within the trace",
            crate::quantity::milliseconds(compiling_ms)
        ));
    }
    let statement = (!signs.is_empty()).then(|| format!("torch.compile: {}.", signs.join("; ")));
    Compiled { regions: entries.values().sum(), frames, resumed, breaks, recompiled, compiling_ms, statement }
}
