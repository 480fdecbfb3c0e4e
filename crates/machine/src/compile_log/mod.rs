//! Where does torch.compile break graphs, and why does it recompile? Read from what `TORCH_LOGS=graph_breaks,recompiles`
//! prints, and from what `torch._dynamo.explain` prints.
//!
//! Lines of several ranks may be mixed, and anything may be between them: what is not understood is skipped. A log
//! without a graph break is no proof that there is none, because nothing in it says that breaks were logged; the line
//! `TORCH_LOGS=…` says so.

mod line;
mod reading;
#[cfg(test)]
mod tests;

use serde::Serialize;

use line::Line;
use reading::Reading;

pub const COMPILE_LOG_SCHEMA: &str = "busbound.compile/1";

/// What a log of torch.compile says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CompileLog {
    pub schema: &'static str,
    /// Distinct places where a graph breaks. `null` if unknown: none is in the log, and the log does not say that they
    /// are logged.
    pub graph_breaks: Option<u64>,
    /// Recompilations of the rank or process that has the most. `null` if unknown, as above.
    pub recompilations: Option<u64>,
    /// One entry per place and reason, the most frequent first.
    pub breaks: Vec<GraphBreak>,
    /// One entry per function and kind of guard, the most frequent first.
    pub recompiled: Vec<Recompiled>,
    /// Functions that are no longer compiled, because they were recompiled too often.
    pub limits: Vec<LimitReached>,
    /// The same counts for each rank or process that printed.
    pub printers: Vec<PrinterCounts>,
}

/// A place where compiled code ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GraphBreak {
    /// `model.py:102`, with the path as in the log; `null` if the log does not say.
    pub place: Option<String>,
    pub reason: String,
    /// What PyTorch recommends, if it does.
    pub hint: Option<String>,
    /// How often it is in the log.
    pub count: u64,
}

/// A function that was compiled again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recompiled {
    pub function: String,
    pub place: String,
    /// The guard that failed, as it was printed the first time.
    pub reason: String,
    pub count: u64,
}

impl Recompiled {
    /// What the guard checks, without the values that differ each time and without PyTorch's comment.
    pub fn guard(&self) -> &str {
        guard_of(&self.reason)
    }
}

fn guard_of(reason: &str) -> &str {
    let end = [". expected ", "  # "].iter().filter_map(|mark| reason.find(mark)).min();
    reason[..end.unwrap_or(reason.len())].trim_end()
}

/// A function that runs without torch.compile from here on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitReached {
    /// `recompile_limit (8)`.
    pub limit: String,
    pub function: String,
    pub place: String,
    /// The last guard that failed.
    pub reason: String,
}

/// What one rank or process printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PrinterCounts {
    /// `null` if the lines do not name it.
    pub rank: Option<u32>,
    pub graph_breaks: u64,
    pub recompilations: u64,
}

/// How often a run breaks graphs and recompiles; `None` is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompileCounts {
    pub graph_breaks: Option<u64>,
    pub recompilations: Option<u64>,
}

impl CompileLog {
    /// Reads a log; `None` if no line is about torch.compile.
    pub fn parse(text: &str) -> Option<Self> {
        let mut reading = Reading::default();
        for line in text.lines() {
            reading.add(&Line::of(line));
        }
        reading.finish()
    }

    /// Whether the first bytes of a file look like such a log.
    pub fn is_one(head: &str) -> bool {
        head.lines().any(|line| Line::of(line).begins())
    }

    /// The counts of one rank, if all lines name theirs; else those of the log. Lines that a rank prints before it joins the
    /// others have no name and may be anyone's.
    pub fn counts_of(&self, rank: Option<u32>) -> CompileCounts {
        let of_rank = |counts: &&PrinterCounts| counts.rank == rank && rank.is_some();
        let are_named = self.printers.iter().all(|counts| counts.rank.is_some());
        let own = self.printers.iter().find(of_rank).filter(|_| are_named);
        CompileCounts {
            graph_breaks: self.graph_breaks.map(|all| own.map_or(all, |own| own.graph_breaks)),
            recompilations: self.recompilations.map(|most| own.map_or(most, |own| own.recompilations)),
        }
    }
}

/// `model.py:102` of `/repo/train/model.py:102`.
pub fn file_of(place: &str) -> &str {
    place.rsplit(['/', '\\']).next().unwrap_or(place)
}
