//! Do pipeline stages on different ranks overlap? From the time of each item in each stage and the time between items, each on
//! the clock of its own rank: no clocks are compared.

use std::collections::BTreeMap;

use busbound_diagnosis::quantity::milliseconds;
use busbound_diagnosis::{PipelineShape, RankStage, StageOverlap, StageTime, Stages};
use serde::Serialize;

use crate::list::some_of;
use crate::name::RankName;
use crate::spread::median;
use crate::summary::RankSummary;

/// A pipeline whose stages run on different ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pipeline {
    /// In the order of their names.
    pub stages: Vec<PipelineStage>,
    /// Items that passed every stage, matched by their order.
    pub items: usize,
    /// Median time from the end of one item to the end of the next.
    pub period_ms: f64,
    /// Sum of the stages minus the period.
    pub hidden_ms: f64,
    /// `hidden_ms` over the sum of all stages except the longest: 1 if the period equals the longest stage, 0 if the stages are
    /// serialized.
    pub overlap_score: f64,
    pub shape: PipelineShape,
    /// Whether the times are from GPUs; without GPU events they are from the hosts.
    pub on_device: bool,
    /// The answer in a sentence.
    pub statement: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PipelineStage {
    pub name: String,
    /// The ranks that run it.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub ranks: Vec<RankName>,
    /// Items that it ran.
    pub items: usize,
    /// Of its slowest rank, median over the items.
    pub median_ms: f64,
    /// What it is idle per item: the period minus its own time.
    pub idle_ms: f64,
}

impl Pipeline {
    /// As the stages of one run, for figures of a run.
    pub fn as_stages(&self) -> Stages {
        let stage = |stage: &PipelineStage| StageTime {
            name: stage.name.clone(),
            pattern: stage.name.clone(),
            count: stage.items,
            median_ms: stage.median_ms,
        };
        Stages {
            stages: self.stages.iter().map(stage).collect(),
            items: self.items,
            period_ms: self.period_ms,
            hidden_ms: self.hidden_ms,
            overlap_score: self.overlap_score,
            shape: self.shape,
            on_device: self.on_device,
            statement: self.statement.clone(),
            each: Vec::new(),
        }
    }
}

/// Fewer items do not show a period.
const FEWEST: usize = 3;

/// `None` if the ranks do not run different stages.
pub(crate) fn pipeline(ranks: &[RankSummary]) -> Option<Pipeline> {
    let mut by_name: BTreeMap<&str, Vec<(&RankSummary, &RankStage)>> = BTreeMap::new();
    for rank in ranks {
        for stage in &rank.stages {
            by_name.entry(&stage.name).or_default().push((rank, stage));
        }
    }
    // If each rank runs every stage, its own answer has the overlap.
    if by_name.len() < 2 || by_name.values().all(|of| of.len() == ranks.len()) {
        return None;
    }
    let mut named: Vec<(&str, Vec<(&RankSummary, &RankStage)>)> = by_name.into_iter().collect();
    named.sort_by_key(|(name, _)| (trailing_number(name), *name));
    let items = named.iter().flat_map(|(_, of)| of).map(|(_, stage)| stage.items).min().unwrap_or(0);
    let periods = named.iter().flat_map(|(_, of)| of).flat_map(|(_, stage)| &stage.periods_ms);
    let periods: Vec<f64> = periods.copied().collect();
    if items < FEWEST || periods.is_empty() {
        return None;
    }
    let period_ms = median(&periods);
    let stages: Vec<PipelineStage> =
        named.iter().map(|(name, of)| stage(name, of, items, period_ms)).collect();
    let times: Vec<f64> = stages.iter().map(|stage| stage.median_ms).collect();
    let overlap = StageOverlap::of(&times, period_ms);
    let StageOverlap { hidden_ms, overlap_score, shape } = overlap;
    let statement = statement(&stages, &overlap, period_ms);
    let on_device = named.iter().flat_map(|(_, of)| of).any(|(rank, _)| rank.has_device());
    Some(Pipeline { stages, items, period_ms, hidden_ms, overlap_score, shape, on_device, statement })
}

/// `stage10` comes after `stage2`.
fn trailing_number(name: &str) -> Option<u64> {
    name[name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].parse().ok()
}

fn stage(name: &str, of: &[(&RankSummary, &RankStage)], items: usize, period_ms: f64) -> PipelineStage {
    // An item leaves a stage when its slowest rank is done.
    let slowest =
        |k: usize| of.iter().filter_map(|(_, stage)| stage.each_ms.get(k)).copied().reduce(f64::max);
    let each: Vec<f64> = (0..items).map_while(slowest).collect();
    let median_ms = median(&each);
    PipelineStage {
        name: name.to_owned(),
        ranks: of.iter().map(|(rank, _)| rank.label()).collect(),
        items: of.iter().map(|(_, stage)| stage.items).max().unwrap_or(0),
        median_ms,
        idle_ms: (period_ms - median_ms).max(0.0),
    }
}

fn statement(stages: &[PipelineStage], overlap: &StageOverlap, period_ms: f64) -> String {
    let named: Vec<(&str, f64)> = stages.iter().map(|stage| (stage.name.as_str(), stage.median_ms)).collect();
    let mut text = overlap.statement(&named, period_ms);
    if let Some(most) = stages.iter().max_by(|a, b| a.idle_ms.total_cmp(&b.idle_ms)) {
        text.push_str(&format!(
            " {} ({}) is idle for {} of each item.",
            most.name,
            some_of(&most.ranks),
            milliseconds(most.idle_ms)
        ));
    }
    let (least, most) = (stages.iter().map(|s| s.items).min(), stages.iter().map(|s| s.items).max());
    if least != most {
        text.push_str(" The stages ran different numbers of items; they are matched from the first on.");
    }
    text
}
