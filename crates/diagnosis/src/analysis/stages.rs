//! Is the pipeline overlapped? Compares the stages of each item with the time between items.
//!
//! A stage lasts from the first to the last GPU work launched in it; without GPU events, it is the time
//! on the host. The period is the time between the ends of two consecutive items. If stages are
//! serialized, the period is their sum; if they overlap completely, it is the longest stage.

use busbound_machine::median;
use busbound_trace::{Interval, Trace};
use regex_lite::Regex;
use serde::Serialize;

use crate::analysis::blocks::Blocks;
use crate::analysis::facts::Facts;
use crate::options::StageChoice;
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

pub(crate) fn stages(facts: &Facts<'_>, chosen: &[StageChoice]) -> StageAnswer {
    let spans: Vec<Vec<Interval>> = match spans(facts, chosen) {
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
    let sum: f64 = times.iter().map(|stage| stage.median_ms).sum();
    let longest = times.iter().map(|stage| stage.median_ms).fold(0.0, f64::max);
    let hidden_ms = sum - period_ms;
    let hideable = sum - longest;
    let overlap_score = if hideable > 0.0 { hidden_ms / hideable } else { 0.0 };
    let shape = PipelineShape::of(overlap_score, period_ms, sum);
    let on_device = !facts.timelines.is_empty();
    let mut statement = statement(&times, period_ms, hidden_ms, overlap_score, shape);
    if times.iter().any(|stage| stage.count != items) {
        let counts: Vec<String> =
            times.iter().map(|stage| format!("{} {}", stage.name, stage.count)).collect();
        statement.push_str(&format!(
            " The stages run different numbers of times ({}): the first {items} runs of each stage are matched as items.",
            counts.join(", ")
        ));
    }
    each.truncate(LISTED);
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

/// The times of each item, in order.
fn each_item(spans: &[Vec<Interval>], items: usize) -> Vec<Item> {
    let mut each: Vec<Item> = Vec::with_capacity(items);
    let mut before: Option<Interval> = None;
    for k in 0..items {
        let whole = spans.iter().map(|stage| stage[k]).reduce(Interval::hull).unwrap_or(spans[0][k]);
        let stages_ms: Vec<f64> = spans.iter().map(|stage| stage[k].length().as_millis()).collect();
        let period_ms = before.map(|before| (whole.end - before.end).as_millis());
        let hidden_ms = period_ms.map(|period| stages_ms.iter().sum::<f64>() - period);
        before = Some(whole);
        each.push(Item { period_ms, stages_ms, hidden_ms });
    }
    each
}

fn statement(times: &[StageTime], period: f64, hidden: f64, score: f64, shape: PipelineShape) -> String {
    let list: Vec<String> =
        times.iter().map(|stage| format!("{} {}", stage.name, milliseconds(stage.median_ms))).collect();
    let (list, period) = (list.join(", "), milliseconds(period));
    match shape {
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

/// When each item of each stage ran.
fn spans(facts: &Facts<'_>, chosen: &[StageChoice]) -> Result<Vec<Vec<Interval>>, String> {
    let (trace, host) = (facts.trace, &facts.host);
    let on_device = !facts.timelines.is_empty();
    let mut all = Vec::new();
    for stage in chosen {
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
        let found =
            if on_device { device_spans(trace, host, &blocks) } else { vec![None; blocks.list.len()] };
        if on_device && found.iter().all(Option::is_none) {
            return Err(format!("stage {} launches no GPU work", stage.name));
        }
        // An item that launches nothing still counts: it takes its time on the host.
        let on_host = |i: usize| Interval::new(blocks.list[i].event.start(), blocks.list[i].event.end());
        let mut spans: Vec<Option<Interval>> =
            found.iter().enumerate().map(|(i, span)| Some(span.unwrap_or(on_host(i)))).collect();
        // A stage nested in a stage of the same name belongs to the outer one.
        for (i, block) in blocks.list.iter().enumerate() {
            if block.parent.is_some() {
                spans[i] = None;
            }
        }
        let mut order: Vec<usize> = (0..spans.len()).filter(|&i| spans[i].is_some()).collect();
        order.sort_by_key(|&i| blocks.list[i].event.start());
        let spans: Vec<Interval> = order.into_iter().filter_map(|i| spans[i]).collect();
        all.push(spans);
    }
    Ok(all)
}

/// From the first to the last work launched under each block.
fn device_spans(trace: &Trace, host: &Host<'_>, blocks: &Blocks<'_>) -> Vec<Option<Interval>> {
    let mut spans: Vec<Option<Interval>> = vec![None; blocks.list.len()];
    for work in trace.events().filter(|event| event.kind().is_gpu_work()) {
        let mut at = host.call_behind(&work).and_then(|call| blocks.around(&call));
        while let Some(block) = at {
            let own = work.interval();
            spans[block] = Some(spans[block].map_or(own, |known| known.hull(own)));
            at = blocks.list[block].parent;
        }
    }
    spans
}

/// Stages that the program annotates as `stage0`, `stage1` and so on, if each occurs equally often.
pub(crate) fn likely(trace: &Trace, host: &Host<'_>) -> Vec<StageChoice> {
    let mut counts: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
    for event in host.annotations() {
        *counts.entry(trace.names().get(event.name_id())).or_default() += 1;
    }
    let named: Vec<(&str, u64)> = counts
        .into_iter()
        .filter(|(name, _)| {
            let number = name.strip_prefix("stage").map(|rest| rest.trim_start_matches(['_', '-', ' ', ':']));
            number
                .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        })
        .collect();
    let same_count = named.windows(2).all(|pair| pair[0].1 == pair[1].1);
    if named.len() < 2 || !same_count {
        return Vec::new();
    }
    let choice = |(name, _): (&str, u64)| {
        let matching = Regex::new(&format!("^{}$", regex_lite::escape(name))).ok()?;
        Some(StageChoice { name: name.to_owned(), matching })
    };
    named.into_iter().filter_map(choice).collect()
}

/// The names of annotations, for an error message.
fn annotation_names(host: &Host<'_>) -> String {
    let mut names: Vec<&str> = host.annotations().iter().map(|event| event.name()).collect();
    names.sort_unstable();
    names.dedup();
    match names.len() {
        0 => "no annotations".to_owned(),
        n => {
            let some: Vec<String> =
                names.iter().take(8).map(|name| format!("`{}`", printable(name))).collect();
            format!("{}{}", some.join(", "), if n > 8 { ", …" } else { "" })
        }
    }
}
