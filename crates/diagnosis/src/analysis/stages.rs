//! Is the pipeline overlapped? Compares the stages of each item with the time between items.
//!
//! A stage lasts from the first to the last GPU work launched in it; without GPU events, it is the time
//! on the host. The period is the time between the ends of two consecutive items. If stages are
//! serialized, the period is their sum; if they overlap completely, it is the longest stage.

use std::collections::{BTreeMap, BTreeSet};

use busbound_machine::median;
use busbound_trace::{Interval, Trace};
use regex_lite::Regex;
use serde::{Deserialize, Serialize};

use crate::analysis::blocks::Blocks;
use crate::analysis::facts::Facts;
use crate::options::StageChoice;
use crate::pattern::pattern_of;
use crate::quantity::{milliseconds, plural, printable};
use busbound_cause::Host;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stages {
    pub stages: Vec<StageTime>,
    /// Items that passed every stage.
    pub items: usize,
    /// Median time from the end of one item to the end of the next.
    pub period_ms: f64,
    /// Sum of the stages minus the period.
    pub hidden_ms: f64,
    /// `hidden_ms` over the sum of all stages except the longest: 1 if the period equals the longest stage, 0 if
    /// the stages are serialized.
    pub overlap_score: f64,
    pub shape: PipelineShape,
    /// Whether the times are from the GPU; without GPU events they are from the host.
    pub on_device: bool,
    pub statement: String,
    /// The items; only the first thousand if there are more.
    pub each: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageTime {
    pub name: String,
    pub pattern: String,
    pub count: usize,
    pub median_ms: f64,
}

/// What determines the period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum PipelineShape {
    /// The longest stage: the others are overlapped.
    Longest,
    /// The sum of the stages: they are serialized.
    Sum,
    /// More than the sum of the stages: items also wait for something else.
    More,
    Between,
}

impl PipelineShape {
    /// `sum` is that of the stages.
    fn of(overlap_score: f64, period_ms: f64, sum: f64) -> Self {
        match overlap_score {
            _ if period_ms > 1.15 * sum => Self::More,
            score if score >= 0.9 => Self::Longest,
            score if score <= 0.1 => Self::Sum,
            _ => Self::Between,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Item {
    /// `null` for the first item.
    pub period_ms: Option<f64>,
    pub stages_ms: Vec<f64>,
    pub hidden_ms: Option<f64>,
}

/// Items listed.
const LISTED: usize = 1_000;

pub(crate) enum StageAnswer {
    Stages(Stages),
    /// Why the stages cannot be analyzed.
    Nothing(String),
}

/// One stage as far as this process runs it, to be joined with the stages of other ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankStage {
    pub name: String,
    /// Items that passed it.
    pub items: usize,
    /// The time of each item in this stage; only the first ones if there are many.
    pub each_ms: Vec<f64>,
    /// From the end of one item in this stage to the end of the next, on the clock of its rank.
    pub periods_ms: Vec<f64>,
}

/// Items that a summary of a rank keeps.
const SUMMARIZED: usize = 256;

/// Whether stages overlap, by their times and the time between items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageOverlap {
    /// Sum of the stages minus the period.
    pub hidden_ms: f64,
    /// `hidden_ms` over the sum of all stages except the longest.
    pub overlap_score: f64,
    pub shape: PipelineShape,
}

impl StageOverlap {
    pub fn of(stages_ms: &[f64], period_ms: f64) -> Self {
        let sum: f64 = stages_ms.iter().sum();
        let longest = stages_ms.iter().copied().fold(0.0, f64::max);
        let (hidden_ms, hideable) = (sum - period_ms, sum - longest);
        let overlap_score = if hideable > 0.0 { hidden_ms / hideable } else { 0.0 };
        Self { hidden_ms, overlap_score, shape: PipelineShape::of(overlap_score, period_ms, sum) }
    }

    /// The answer in a sentence, for stages with these names and times.
    pub fn statement(&self, stages: &[(&str, f64)], period_ms: f64) -> String {
        let list: Vec<String> =
            stages.iter().map(|(name, ms)| format!("{} {}", printable(name), milliseconds(*ms))).collect();
        let (list, period) = (list.join(", "), milliseconds(period_ms));
        let (score, hidden) = (self.overlap_score, self.hidden_ms);
        match self.shape {
            PipelineShape::Longest => format!(
                "Overlap score {score:.2}: each item takes as long as its longest stage ({period}; {list}); the other stages are overlapped."
            ),
            PipelineShape::Sum => format!(
                "Overlap score {score:.2}: each item takes the sum of its stages ({period}; {list}): the stages are serialized."
            ),
            PipelineShape::More => format!(
                "Overlap score {score:.2}: each item takes {period}, more than the sum of its stages ({list}): {} is outside all stages.",
                milliseconds(-hidden)
            ),
            PipelineShape::Between => format!(
                "Overlap score {score:.2}: each item takes {period} ({list}); {} of the stages is overlapped.",
                milliseconds(hidden)
            ),
        }
    }
}

/// One item in one stage.
#[derive(Debug, Clone, Copy)]
struct StageItem {
    /// Time in the stage, without what is between its parts.
    ms: f64,
    hull: Interval,
}

pub(crate) fn stages(facts: &Facts<'_>, chosen: &[StageChoice]) -> StageAnswer {
    let found: Result<Vec<Vec<StageItem>>, String> =
        chosen.iter().map(|stage| items_of(facts, stage)).collect();
    let spans = match found {
        Ok(spans) => spans,
        Err(why) => return StageAnswer::Nothing(why),
    };
    let items = spans.iter().map(Vec::len).min().unwrap_or(0);
    if items < 3 {
        return StageAnswer::Nothing(format!(
            "only {} passed every stage; at least three are needed to measure a period",
            plural(items as u64, "item", "items")
        ));
    }
    let mut each = each_item(&spans, items);
    let times: Vec<StageTime> = chosen
        .iter()
        .enumerate()
        .map(|(i, stage)| StageTime {
            name: stage.name.clone(),
            pattern: stage.matching.as_str().to_owned(),
            count: spans[i].len(),
            median_ms: median(each.iter().map(|item| item.stages_ms[i])).unwrap_or(0.0),
        })
        .collect();
    let period_ms = median(each.iter().filter_map(|item| item.period_ms)).unwrap_or(0.0);
    let overlap = StageOverlap::of(&times.iter().map(|stage| stage.median_ms).collect::<Vec<_>>(), period_ms);
    let named: Vec<(&str, f64)> = times.iter().map(|stage| (stage.name.as_str(), stage.median_ms)).collect();
    let mut statement = overlap.statement(&named, period_ms);
    if times.iter().any(|stage| stage.count != items) {
        let counts: Vec<String> =
            times.iter().map(|stage| format!("{} {}", stage.name, stage.count)).collect();
        statement.push_str(&format!(
            " The stages run different numbers of times ({}): the first {items} runs of each stage are matched as items.",
            counts.join(", ")
        ));
    }
    each.truncate(LISTED);
    let StageOverlap { hidden_ms, overlap_score, shape } = overlap;
    let on_device = !facts.timelines.is_empty();
    StageAnswer::Stages(Stages {
        stages: times,
        items,
        period_ms,
        hidden_ms,
        overlap_score,
        shape,
        on_device,
        statement,
        each,
    })
}

/// The stages that this process runs, for comparison with other ranks.
pub(crate) fn rank_stages(facts: &Facts<'_>, chosen: &[StageChoice]) -> Vec<RankStage> {
    let of_rank = |stage: &StageChoice| {
        let items = items_of(facts, stage).ok()?;
        let periods = items.windows(2).map(|pair| (pair[1].hull.end - pair[0].hull.end).as_millis());
        Some(RankStage {
            name: stage.name.clone(),
            items: items.len(),
            each_ms: items.iter().take(SUMMARIZED).map(|item| item.ms).collect(),
            periods_ms: periods.take(SUMMARIZED).collect(),
        })
    };
    chosen.iter().filter_map(of_rank).collect()
}

/// The times of each item, in order.
fn each_item(spans: &[Vec<StageItem>], items: usize) -> Vec<Item> {
    let mut each: Vec<Item> = Vec::with_capacity(items);
    let mut before: Option<Interval> = None;
    for k in 0..items {
        let whole =
            spans.iter().map(|stage| stage[k].hull).reduce(Interval::hull).unwrap_or(spans[0][k].hull);
        let stages_ms: Vec<f64> = spans.iter().map(|stage| stage[k].ms).collect();
        let period_ms = before.map(|before| (whole.end - before.end).as_millis());
        let hidden_ms = period_ms.map(|period| stages_ms.iter().sum::<f64>() - period);
        before = Some(whole);
        each.push(Item { period_ms, stages_ms, hidden_ms });
    }
    each
}

/// The items of a stage, in order.
fn items_of(facts: &Facts<'_>, stage: &StageChoice) -> Result<Vec<StageItem>, String> {
    let (trace, host) = (facts.trace, &facts.host);
    let on_device = !facts.timelines.is_empty();
    let matches: Vec<bool> = trace.names().iter().map(|name| stage.matching.is_match(name)).collect();
    let blocks = Blocks::of(trace, host, |event| matches[event.name_id().index()]);
    if blocks.list.is_empty() {
        return Err(format!(
            "no annotation matches stage {} ({}); the trace has {}",
            stage.name,
            stage.matching,
            annotation_names(host)
        ));
    }
    let found = if on_device { device_spans(trace, host, &blocks) } else { vec![None; blocks.list.len()] };
    if on_device && found.iter().all(Option::is_none) {
        return Err(format!("stage {} launches no GPU work", stage.name));
    }
    // A stage nested in a stage of the same name belongs to the outer one.
    let mut outer: Vec<usize> = (0..blocks.list.len()).filter(|&i| blocks.list[i].parent.is_none()).collect();
    outer.sort_by_key(|&i| blocks.list[i].event.start());
    // An item that launches nothing still counts: it takes its time on the host.
    let span = |i: usize| found[i].unwrap_or(blocks.list[i].event.interval());
    let mut by_name: BTreeMap<String, Vec<Interval>> = BTreeMap::new();
    for &i in &outer {
        by_name.entry(pattern_of(blocks.list[i].event.name())).or_default().push(span(i));
    }
    let item = |parts: &[Interval]| {
        let hull = parts.iter().copied().reduce(Interval::hull)?;
        Some(StageItem { ms: parts.iter().map(|part| part.length().as_millis()).sum(), hull })
    };
    let parts: Vec<&Vec<Interval>> = by_name.values().collect();
    // `stage0:build` and `stage0:decode` are two parts of one stage if each runs once per item.
    if parts.windows(2).all(|pair| pair[0].len() == pair[1].len()) {
        let of_item = |k: usize| item(&parts.iter().map(|part| part[k]).collect::<Vec<_>>());
        return Ok((0..parts[0].len()).filter_map(of_item).collect());
    }
    Ok(outer.iter().filter_map(|&i| item(&[span(i)])).collect())
}

/// From the first to the last work launched under each block.
fn device_spans(trace: &Trace, host: &Host<'_>, blocks: &Blocks<'_>) -> Vec<Option<Interval>> {
    let mut spans: Vec<Option<Interval>> = vec![None; blocks.list.len()];
    for work in trace.events().filter(|event| event.kind().is_gpu_work()) {
        let mut at = host.call_behind(&work).and_then(|call| blocks.around(&call));
        while let Some(block) = at {
            let own = work.interval();
            spans[block.index()] = Some(spans[block.index()].map_or(own, |known| known.hull(own)));
            at = blocks.list[block.index()].parent;
        }
    }
    spans
}

/// Stages that the program annotates: `stage0`, `stage1:decode`, `nvtx:pp:stage0:A_build` or `pp_rank=1`. Those of one number
/// are one stage.
pub(crate) fn likely(trace: &Trace, host: &Host<'_>) -> Vec<StageChoice> {
    let mut names: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for event in host.annotations() {
        if let Some(number) = stage_number(event.name()) {
            names.entry(number).or_default().insert(trace.names().get(event.name_id()));
        }
    }
    let choice = |(number, names): (u32, BTreeSet<&str>)| {
        let names: Vec<String> = names.into_iter().map(regex_lite::escape).collect();
        let matching = Regex::new(&format!("^(?:{})$", names.join("|"))).ok()?;
        Some(StageChoice { name: format!("stage{number}"), matching })
    };
    names.into_iter().filter_map(choice).collect()
}

/// The number of the stage in the name of an annotation. It must be a word of its own: `backstage2` and `stage2nd` have none.
fn stage_number(name: &str) -> Option<u32> {
    let lower = name.to_ascii_lowercase();
    let number_after = |word: &str| {
        let (before, rest) = lower.split_once(word)?;
        if before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            return None;
        }
        let rest = rest.trim_start_matches(['_', '-', ' ', ':', '=', '#']);
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (digits, after) = rest.split_at(digits);
        if after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            return None;
        }
        digits.parse().ok()
    };
    number_after("stage").or_else(|| number_after("pp_rank"))
}

/// The names of annotations, for an error message.
fn annotation_names(host: &Host<'_>) -> String {
    // The profiler numbers its steps: one name stands for all. Numbers of stages matter.
    let shown = |name: &str| match name.starts_with("ProfilerStep#") {
        true => pattern_of(name),
        false => printable(name),
    };
    let mut names: Vec<String> = host.annotations().iter().map(|event| shown(event.name())).collect();
    names.sort_unstable();
    names.dedup();
    match names.len() {
        0 => "no annotations".to_owned(),
        n => {
            let some: Vec<String> = names.iter().take(8).map(|name| format!("`{name}`")).collect();
            format!("{}{}", some.join(", "), if n > 8 { ", …" } else { "" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_recognized_as_people_write_them() {
        for (name, number) in [
            ("stage0", Some(0)),
            ("stage_12", Some(12)),
            ("Stage 3", Some(3)),
            ("stage0:A_build_envelope", Some(0)),
            ("nvtx:pp:stage1:B_phaseB", Some(1)),
            ("pp_rank=2", Some(2)),
            ("forward pp_rank=1 microbatch=3", Some(1)),
            ("backstage2", None),
            ("stage2nd", None),
            ("stage", None),
            ("lr_stage1", None),
        ] {
            assert_eq!(stage_number(name), number, "{name}");
        }
    }

    #[test]
    fn the_overlap_score_is_one_if_the_period_is_the_longest_stage() {
        let overlap = |period| StageOverlap::of(&[30.0, 20.0], period);
        assert_eq!((overlap(30.0).overlap_score, overlap(30.0).shape), (1.0, PipelineShape::Longest));
        assert_eq!((overlap(50.0).overlap_score, overlap(50.0).shape), (0.0, PipelineShape::Sum));
        assert_eq!((overlap(40.0).hidden_ms, overlap(40.0).overlap_score), (10.0, 0.5));
        assert_eq!(overlap(80.0).shape, PipelineShape::More);
    }
}
