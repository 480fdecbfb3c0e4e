//! One run on a page: text and tables here, chart data in a block for the script.

use askama::Template;
use busbound_diagnosis::quantity::{bytes, count, milliseconds, milliseconds_range};
use busbound_diagnosis::{
    CopyGroup, Diagnosis, Drawn, Explanation, FigureId, Finding, FindingId, Section, Unit, WhatIf,
    explain_finding,
};

use super::bounds::BoundsView;
use super::data::{Labels, encoded};
use super::evidence::{self, Evidence};
use super::explained::explained;
use super::filters;
use super::grid::Grid;
use crate::text::{attribution, capitalized, diagnosis as text, diagnosis::Blocks, path, whatif};

/// What a page leads with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lead {
    Verdict,
    Prediction,
}

/// Everything the page shows of one run.
#[derive(Template)]
#[template(path = "run.html")]
pub(super) struct RunView {
    /// The run's number on the page, for HTML ids.
    number: usize,
    statement: String,
    path: String,
    facts: Vec<String>,
    bar: Bar,
    bounds: Option<BoundsView>,
    cards: Vec<Card>,
    nothing: Option<&'static str>,
    whatif: Option<Prediction>,
    no_prediction: Option<String>,
    outliers: Vec<String>,
    copies: Vec<String>,
    histograms: Vec<Histogram>,
    tables: Vec<Grid>,
    stages: Option<StagesView>,
    blocks: Vec<Block>,
    sentences: Vec<String>,
    limits: Vec<String>,
    explanations: Vec<Explanation>,
    has_steps: bool,
    has_copies: bool,
    /// Chart data for the script.
    data: String,
}

pub(super) struct Bar {
    pub(super) of: String,
    pub(super) parts: Vec<BarPart>,
}

pub(super) struct BarPart {
    pub(super) what: &'static str,
    pub(super) class: &'static str,
    pub(super) time: String,
    pub(super) percent: f64,
}

struct Card {
    finding: usize,
    title: String,
    saving: String,
    severity: &'static str,
    seen: String,
    fix: String,
    code: Option<&'static str>,
    precondition: String,
    basis: &'static str,
    evidence: Vec<Evidence>,
    is_drawn: bool,
    id: FindingId,
    explanation: Vec<Section>,
}

struct Prediction {
    statement: String,
    unit: Unit,
    rows: Vec<Scenario>,
    to_do: Vec<(String, String)>,
    notes: Vec<String>,
}

struct Scenario {
    change: String,
    time: String,
    range: String,
    /// Of the longest bar.
    percent: f64,
    low: f64,
    width: f64,
    is_now: bool,
    memory: String,
}

struct Histogram {
    kind: String,
    bins: Vec<HistogramRow>,
}

struct HistogramRow {
    label: String,
    time: String,
    time_percent: f64,
    moved: String,
    bytes_percent: f64,
}

struct StagesView {
    statement: String,
    score: String,
    rows: Vec<(String, String, f64)>,
}

struct Block {
    name: String,
    depth: usize,
    gpu: String,
    host: String,
    exposed: String,
    percent: f64,
}

impl RunView {
    pub(super) fn of(drawn: &Drawn, number: usize, lead: Lead) -> Self {
        let diagnosis = &drawn.diagnosis;
        let mut facts = Vec::new();
        if lead == Lead::Prediction {
            facts.push(diagnosis.verdict.statement.clone());
        }
        facts.push(text::step(diagnosis));
        facts.extend(text::links(diagnosis));
        facts.extend(path::launching(diagnosis));
        facts.extend(path::path(diagnosis).map(|path| format!("critical path: {path}")));
        let sentences = [
            attribution::caution(diagnosis).map(str::to_owned),
            path::compiled(diagnosis).map(str::to_owned),
            path::about_kernels(diagnosis),
            text::contention(diagnosis),
        ];
        let limits = text::limitations(diagnosis).into_iter();
        Self {
            number,
            statement: statement(drawn, lead),
            path: diagnosis.source.path.clone(),
            facts,
            bar: bar(diagnosis),
            bounds: BoundsView::of(diagnosis),
            cards: diagnosis
                .findings
                .iter()
                .enumerate()
                .map(|(i, finding)| card(drawn, i, finding))
                .collect(),
            nothing: text::nothing_to_fix(diagnosis),
            no_prediction: drawn.whatif.as_ref().err().map(ToString::to_string),
            whatif: drawn.whatif.as_ref().ok().map(prediction),
            outliers: text::outliers(diagnosis),
            copies: text::copies(diagnosis).iter().map(|line| line.joined(" · ")).collect(),
            histograms: diagnosis.copies.iter().filter_map(histogram).collect(),
            tables: text::tables(diagnosis, Blocks::Separate).into_iter().map(Grid::from).collect(),
            stages: stages(diagnosis),
            blocks: blocks(diagnosis),
            sentences: sentences.into_iter().flatten().collect(),
            limits: limits.chain(drawn.picture.notes.iter().cloned()).chain(complete(diagnosis)).collect(),
            explanations: explained(diagnosis),
            has_steps: drawn.picture.steps.len() > 1,
            has_copies: !drawn.picture.dots.is_empty(),
            data: encoded(&drawn.picture, &labels(diagnosis, &diagnosis.source.path)),
        }
    }
}

/// The first sentence.
pub(super) fn statement(drawn: &Drawn, lead: Lead) -> String {
    match (lead, &drawn.whatif) {
        (Lead::Prediction, Ok(answer)) => answer.statement.clone(),
        _ => text::headline(&drawn.diagnosis),
    }
}

/// What the script needs in addition to the picture.
pub(super) fn labels<'a>(diagnosis: &'a Diagnosis, label: &'a str) -> Labels<'a> {
    let gpu = diagnosis.machine.gpus.first();
    Labels {
        run: label,
        unit: diagnosis.unit().as_str(),
        link: gpu.map_or("", |gpu| gpu.link.name.as_str()),
        peak_gbps: gpu.map_or(0.0, |gpu| gpu.link.peak_gbps),
        findings: diagnosis.findings.iter().map(|finding| finding.title.as_str()).collect(),
    }
}

/// Where the time of a step goes.
pub(super) fn bar(diagnosis: &Diagnosis) -> Bar {
    let parts = text::parts(diagnosis);
    let total: f64 = parts.iter().map(|(_, ms)| ms).sum();
    let part = |(figure, ms): &(FigureId, f64)| BarPart {
        what: figure.label(),
        class: match figure {
            FigureId::ComputeMs => "compute",
            FigureId::ExposedCommMs => "communication",
            FigureId::ExposedBusCopyMs => "h2d",
            FigureId::IdleMs => "idle",
            _ => "other",
        },
        time: milliseconds(*ms),
        percent: 100.0 * ms / total.max(f64::MIN_POSITIVE),
    };
    Bar {
        of: format!("{} per {}", milliseconds(total), diagnosis.unit()),
        parts: parts.iter().map(part).collect(),
    }
}

fn card(drawn: &Drawn, number: usize, finding: &Finding) -> Card {
    let unit = drawn.diagnosis.unit();
    Card {
        finding: number,
        title: finding.title.clone(),
        saving: text::saving(finding, unit),
        severity: text::severity(finding.severity),
        seen: finding.seen.clone(),
        fix: finding.fix.clone(),
        code: finding.fix_code,
        precondition: finding.precondition.clone(),
        basis: finding.saving_basis,
        evidence: evidence::rows(&finding.evidence, unit),
        is_drawn: drawn.picture.findings.get(number).is_some_and(|spans| !spans.is_empty()),
        id: finding.id,
        explanation: explain_finding(finding.id).sections,
    }
}

fn prediction(answer: &WhatIf) -> Prediction {
    let now = whatif::now(answer);
    let scenarios = answer.scenarios.iter().map(|one| one.high_ms);
    let widest = scenarios.chain(now.iter().map(|(_, ms)| *ms)).fold(f64::MIN_POSITIVE, f64::max);
    let of_widest = |ms: f64| 100.0 * ms / widest;
    let now = now.into_iter().map(|(what, ms)| Scenario {
        change: what.to_owned(),
        time: milliseconds(ms),
        range: String::new(),
        percent: of_widest(ms),
        low: 0.0,
        width: 0.0,
        is_now: true,
        memory: String::new(),
    });
    let mut rows: Vec<Scenario> = now.collect();
    rows.extend(answer.scenarios.iter().map(|one| Scenario {
        change: one.apply.join(" + "),
        time: milliseconds(one.step_ms),
        range: milliseconds_range(one.low_ms, one.high_ms),
        percent: of_widest(one.step_ms),
        low: of_widest(one.low_ms),
        width: of_widest(one.high_ms - one.low_ms),
        is_now: false,
        memory: if one.extra_bytes > 0 {
            format!("+{} on the GPU", bytes(one.extra_bytes))
        } else {
            String::new()
        },
    }));
    let notes = std::iter::once(format!("{}.", capitalized(&whatif::replay(answer))))
        .chain(whatif::range_from(answer))
        .chain(whatif::power(answer))
        .chain(answer.notes.iter().cloned());
    Prediction {
        statement: answer.statement.clone(),
        unit: answer.unit,
        rows,
        to_do: whatif::to_do(answer),
        notes: notes.collect(),
    }
}

/// Copy time and bytes by rate.
fn histogram(group: &CopyGroup) -> Option<Histogram> {
    group.utilization?;
    let (time, moved) =
        group.histogram.iter().fold((0.0, 0), |(ms, bytes), bin| (ms + bin.ms, bytes + bin.bytes));
    let row = |bin: &busbound_diagnosis::HistogramBin| HistogramRow {
        label: match bin.to_gbps {
            Some(to) => format!("{}–{to} GB/s", bin.from_gbps),
            None => format!("over {} GB/s", bin.from_gbps),
        },
        time: milliseconds(bin.ms),
        time_percent: if time > 0.0 { 100.0 * bin.ms / time } else { 0.0 },
        moved: bytes(bin.bytes),
        bytes_percent: if moved > 0 { 100.0 * bin.bytes as f64 / moved as f64 } else { 0.0 },
    };
    Some(Histogram { kind: group.kind(), bins: group.histogram.iter().map(row).collect() })
}

fn stages(diagnosis: &Diagnosis) -> Option<StagesView> {
    let stages = diagnosis.stages.as_ref()?;
    let sum: f64 = stages.stages.iter().map(|stage| stage.median_ms).sum();
    let rows = stages.stages.iter().map(|stage| {
        let percent = if sum > 0.0 { 100.0 * stage.median_ms / sum } else { 0.0 };
        (stage.name.clone(), milliseconds(stage.median_ms), percent)
    });
    Some(StagesView {
        statement: stages.statement.clone(),
        score: format!("{:.2}", stages.overlap_score),
        rows: rows.collect(),
    })
}

fn blocks(diagnosis: &Diagnosis) -> Vec<Block> {
    let Some(attribution) = &diagnosis.attribution else { return Vec::new() };
    let time = |ms: f64| if ms > 0.0 { milliseconds(ms) } else { "–".to_owned() };
    attribution
        .blocks
        .iter()
        .chain(Some(&attribution.outside).filter(|outside| outside.gpu_ms > 0.0))
        .map(|block| Block {
            name: block.name.clone(),
            depth: block.depth.min(8),
            gpu: time(block.gpu_ms),
            host: time(block.host_ms),
            exposed: time(block.exposed_ms),
            percent: (100.0 * block.share).min(100.0),
        })
        .collect()
}

/// Says that the file is complete; what is missing from an incomplete one is among the limitations.
fn complete(diagnosis: &Diagnosis) -> Option<String> {
    let source = &diagnosis.source;
    source.complete.then(|| format!("The file is complete: {} events read, none lost.", count(source.events)))
}
