//! Does torch.compile break graphs or recompile? Its ranges in the trace show it, and its log shows where and why.

use std::collections::BTreeMap;

use busbound_machine::compile_log::{CompileLog, GraphBreak, Recompiled, file_of};
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
    /// What a log of torch.compile says about the run; `null` if none was given.
    pub log: Option<LoggedCompiles>,
    /// What that means; `null` if there is nothing to report.
    pub statement: Option<String>,
}

/// What a log of torch.compile says about the rank or process that the trace is of.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoggedCompiles {
    /// Distinct places where a graph breaks; `null` if the log does not show that breaks are logged.
    pub graph_breaks: Option<u64>,
    /// `null` if the log does not show that recompilations are logged.
    pub recompilations: Option<u64>,
    /// The most frequent ones of the whole log, at most 10.
    pub breaks: Vec<GraphBreak>,
    /// The most frequent ones of the whole log, at most 10.
    pub recompiled: Vec<Recompiled>,
}

/// Entries of a log that a diagnosis repeats.
const MOST_LOGGED: usize = 10;
/// Places that a sentence names.
const MOST_NAMED: usize = 3;

impl Compiled {
    /// Graph breaks, if the trace or the log counts them. Each may miss some: the trace those before it began, the log those
    /// that another process printed. So it is the larger number.
    pub(crate) fn all_breaks(&self) -> Option<u64> {
        let seen = self.breaks.filter(|_| self.regions > 0);
        seen.max(self.log.as_ref().and_then(|log| log.graph_breaks))
    }

    /// The same for recompilations.
    pub(crate) fn all_recompilations(&self) -> Option<u64> {
        let seen = (self.regions > 0).then_some(self.recompiled);
        seen.max(self.log.as_ref().and_then(|log| log.recompilations))
    }

    /// With what a log says about this rank.
    pub(crate) fn with_log(mut self, log: Option<&CompileLog>, rank: Option<u32>) -> Self {
        let Some(log) = log else { return self };
        let counts = log.counts_of(rank);
        self.log = Some(LoggedCompiles {
            graph_breaks: counts.graph_breaks,
            recompilations: counts.recompilations,
            breaks: log.breaks.iter().take(MOST_LOGGED).cloned().collect(),
            recompiled: log.recompiled.iter().take(MOST_LOGGED).cloned().collect(),
        });
        self.statement = self.in_words();
        self
    }

    fn in_words(&self) -> Option<String> {
        let mut signs = Vec::new();
        let logged = self.log.as_ref().map(LoggedCompiles::in_words).unwrap_or_default();
        if self.resumed > 0 {
            signs.push(format!(
                "{}: compiled code stops and resumes",
                plural(self.resumed, "graph break", "graph breaks")
            ));
        } else if self.frames > 1 && self.all_breaks().is_none() {
            let frames = self.frames;
            signs.push(format!("{frames} compiled frames: separate functions, or one function split into {frames} by graph breaks"));
        }
        if self.recompiled > 0 {
            signs.push(format!(
                "{}: a frame has several compiled versions, usually one per input shape",
                plural(self.recompiled, "recompilation", "recompilations")
            ));
        }
        signs.extend(logged);
        if self.compiling_ms > 0.0 {
            let time = crate::quantity::milliseconds(self.compiling_ms);
            signs.push(format!("{time} spent compiling within the trace"));
        }
        (!signs.is_empty()).then(|| format!("torch.compile: {}.", signs.join("; ")))
    }
}

impl LoggedCompiles {
    /// What the log adds to the trace.
    fn in_words(&self) -> Vec<String> {
        let unknown = |what: &str| {
            format!(
                "the log shows no {what}, and does not say that they are logged: print TORCH_LOGS into it"
            )
        };
        let named = |places: Vec<String>, all: usize| {
            let more = if all > places.len() { ", …" } else { "" };
            format!("{}{more}", places.join(", "))
        };
        let of_break = |one: &GraphBreak| {
            format!("{} ({})", one.place.as_deref().map_or("an unknown place", file_of), one.reason)
        };
        let of_recompiled =
            |one: &Recompiled| format!("{} at {} ({})", one.function, file_of(&one.place), one.guard());
        let breaks = match self.graph_breaks {
            None => unknown("graph breaks"),
            Some(0) => "no graph breaks in the log".to_owned(),
            Some(n) => format!(
                "{} in the log: {}",
                plural(n, "graph break", "graph breaks"),
                named(self.breaks.iter().take(MOST_NAMED).map(of_break).collect(), self.breaks.len())
            ),
        };
        let recompiled = match self.recompilations {
            None => unknown("recompilations"),
            Some(0) => "no recompilations in the log".to_owned(),
            Some(n) => format!(
                "{} in the log: {}",
                plural(n, "recompilation", "recompilations"),
                named(
                    self.recompiled.iter().take(MOST_NAMED).map(of_recompiled).collect(),
                    self.recompiled.len()
                )
            ),
        };
        vec![breaks, recompiled]
    }
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
    let regions = entries.values().sum();
    let mut compiled =
        Compiled { regions, frames, resumed, breaks, recompiled, compiling_ms, log: None, statement: None };
    compiled.statement = compiled.in_words();
    compiled
}
