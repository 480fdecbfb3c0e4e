//! Which rank do the others wait for, and what is different about it?
//!
//! Ranks that exchange data every step all have the same step time, including the slow one. They differ in where the time
//! goes. The kernel of a collective runs from when its rank arrives until the last rank has arrived: for the late rank,
//! the others are already waiting, and it finishes soon. So the straggler is the rank with the most time outside
//! communication and the least inside. Only durations within each rank are compared, so no common clock is needed.

use std::fmt;

use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_diagnosis::{CopyRoute, FigureId, Unit};
use busbound_trace::MemoryKind;
use serde::{Serialize, Serializer};

use crate::name::{FindingName, RankName};
use crate::spread::{Threshold, median};
use crate::summary::{RankCopies, RankSummary};

/// A rank with much more time outside communication than the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Straggler {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub rank: RankName,
    pub path: String,
    /// Time outside communication, per step.
    pub own_ms: f64,
    pub median_own_ms: f64,
    pub excess_ms: f64,
    /// How long the other ranks wait for it, per step; `null` if nothing shows that they do.
    pub others_wait_ms: Option<f64>,
    /// The answer in a few sentences.
    pub statement: String,
    /// What explains the most comes first.
    pub differences: Vec<Difference>,
    /// Findings that it has and most ranks do not.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub findings_of_its_own: Vec<FindingName>,
}

/// A part of its time that is longer than the median rank's.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Difference {
    pub part: String,
    pub ms: f64,
    pub median_ms: f64,
    /// Why, if its figures show it.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub because: Vec<Reason>,
}

/// Something about a rank that explains a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// What its figures show, compared with the median rank.
    pub seen: String,
    /// Possible causes.
    pub means: Option<&'static str>,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.seen)?;
        self.means.map_or(Ok(()), |means| write!(f, ": {means}"))
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Difference {
    /// `copying only 82.1 ms vs. 21.0 ms (H2D pinned at 11.8 GB/s vs. 50.0 GB/s: …)`.
    pub fn statement(&self) -> String {
        let reasons: Vec<String> = self.because.iter().map(Reason::to_string).collect();
        let because = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) };
        let (own, median) = (milliseconds(self.ms), milliseconds(self.median_ms));
        format!("{} {own} vs. {median}{because}", self.part)
    }
}

/// A smaller share of the median step does not matter.
const MATTERS: f64 = 0.03;
/// A part that makes up a smaller share of the excess explains nothing.
const EXPLAINS: f64 = 0.15;

/// The stragglers among ranks with the same unit, worst first.
pub(crate) fn stragglers(ranks: &[&RankSummary], unit: Unit) -> Vec<Straggler> {
    if why_not(ranks, unit).is_some() {
        return Vec::new();
    }
    let own: Vec<f64> = ranks.iter().map(|rank| rank.time.own_ms()).collect();
    let step = median_of(ranks, RankSummary::step_ms);
    let Some(threshold) = Threshold::of(&own, MATTERS * step) else { return Vec::new() };
    let slow = ranks.iter().filter(|rank| rank.time.own_ms() - threshold.median > threshold.far);
    let mut found: Vec<Slow<'_>> =
        slow.filter_map(|rank| Slow::of(rank, ranks, threshold.median, unit)).collect();
    if 2 * found.len() >= ranks.len() {
        return Vec::new();
    }
    found.sort_by(|a, b| b.excess_ms.total_cmp(&a.excess_ms));
    found.iter().enumerate().map(|(before, slow)| slow.straggler(ranks, unit, before)).collect()
}

/// Why stragglers cannot be identified.
pub(crate) fn why_not(ranks: &[&RankSummary], unit: Unit) -> Option<&'static str> {
    let kernels = median_of(ranks, |rank| rank.kernels.count);
    let as_many = |rank: &&RankSummary| (rank.kernels.count / kernels - 1.0).abs() < 0.1;
    match unit {
        Unit::Step => None,
        Unit::Iteration if ranks.iter().all(as_many) => None,
        Unit::Iteration => Some(
            "No steps are marked, and the detected iterations have different numbers of kernels, so stragglers cannot be identified. Mark steps, or name their annotation with --steps.",
        ),
        Unit::Trace => Some(
            "No steps are marked, and recordings may differ in length, so stragglers cannot be identified.",
        ),
    }
}

/// A slow rank, before the slow ranks are sorted.
struct Slow<'r> {
    rank: &'r RankSummary,
    own_ms: f64,
    median_own_ms: f64,
    excess_ms: f64,
    waiting: Waiting,
}

impl<'r> Slow<'r> {
    fn of(rank: &'r RankSummary, ranks: &[&RankSummary], median_own_ms: f64, unit: Unit) -> Option<Self> {
        let own_ms = rank.time.own_ms();
        let excess_ms = own_ms - median_own_ms;
        let waiting = waiting(rank, ranks, excess_ms, unit)?;
        Some(Self { rank, own_ms, median_own_ms, excess_ms, waiting })
    }

    /// The answer about this rank; `before` is the number of slower ranks listed before it.
    fn straggler(&self, ranks: &[&RankSummary], unit: Unit, before: usize) -> Straggler {
        let rank = self.rank;
        let differences = differences(rank, ranks, self.excess_ms);
        let findings_of_its_own = own_findings(rank, ranks);
        let mut statement = self.waiting_sentence(unit, before);
        if !differences.is_empty() {
            let parts: Vec<String> = differences.iter().map(Difference::statement).collect();
            statement.push_str(&format!(" Longer than on the median rank: {}.", parts.join(", ")));
        }
        if let Some(other) = other_gpu(rank, ranks) {
            statement.push_str(&format!(" {other}"));
        }
        if let Some(host) = &rank.host {
            statement.push_str(&format!(" It ran on {host}."));
        }
        if !findings_of_its_own.is_empty() {
            let ids: Vec<String> = findings_of_its_own.iter().map(FindingName::to_string).collect();
            statement.push_str(&format!(" Findings that most ranks do not have: {}.", ids.join(", ")));
        }
        statement.push_str(&format!(" For details, run `busbound diagnose {}`.", rank.path));
        Straggler {
            rank: rank.label(),
            path: rank.path.clone(),
            own_ms: self.own_ms,
            median_own_ms: self.median_own_ms,
            excess_ms: self.excess_ms,
            others_wait_ms: self.waiting.ms,
            statement,
            differences,
            findings_of_its_own,
        }
    }

    /// Whether the other ranks wait for it, and what shows that.
    fn waiting_sentence(&self, unit: Unit, before: usize) -> String {
        let (name, shows) = (self.rank.label(), &self.waiting.shows);
        let own = format!(
            "it spends {}/{unit} outside communication, the median rank {}",
            milliseconds(self.own_ms),
            milliseconds(self.own_ms - self.excess_ms)
        );
        match self.waiting.ms {
            None => format!("{} is slower: {own}. {shows}", capital(&name.to_string())),
            Some(ms) => {
                // A collective begins when the last rank arrives, so waits for a less late rank are part of the waits
                // for the latest one.
                let wait = match before {
                    0 => "The other ranks wait for",
                    _ => "Without the slower ranks listed first, the other ranks would still wait for",
                };
                format!("{wait} {name}, about {}/{unit}: {own}; {shows}", milliseconds(ms))
            }
        }
    }
}

struct Waiting {
    /// How long the other ranks wait for it; `None` if nothing shows that they do.
    ms: Option<f64>,
    /// What shows it, or why nothing does.
    shows: String,
}

/// Whether the other ranks wait for it. They do if steps have the same length and its collectives are shorter by its extra
/// time outside communication. `None` if neither its collectives are shorter nor its steps longer: then its compute
/// overlaps its communication, which delays no other rank.
fn waiting(rank: &RankSummary, ranks: &[&RankSummary], excess_ms: f64, unit: Unit) -> Option<Waiting> {
    let comm = median_of(ranks, |rank| rank.time.comm_ms);
    let step = median_of(ranks, RankSummary::step_ms);
    // The whole collective, not its exposed part: that also shrinks if other work overlaps it.
    let shorter = comm - rank.time.comm_ms;
    let less = median_of(ranks, |rank| rank.time.exposed_comm_ms) - rank.time.exposed_comm_ms;
    let longer = rank.step_ms() - step;
    let not_shown = |why: &str| Waiting { ms: None, shows: why.to_owned() };
    if comm <= 0.0 {
        return Some(not_shown(
            "No communication is recorded, so nothing shows that other ranks wait for it.",
        ));
    }
    if shorter > 0.5 * excess_ms && less > 0.5 * excess_ms && longer.abs() < 0.5 * excess_ms {
        let steps = if longer.abs() < 0.01 * step {
            format!("Each {unit} takes {} on both", milliseconds(step))
        } else {
            format!(
                "Each {unit} takes {}, on the median rank {}",
                milliseconds(rank.step_ms()),
                milliseconds(step)
            )
        };
        return Some(Waiting {
            ms: Some(shorter.min(less).min(excess_ms)),
            shows: format!(
                "it spends {} in communication, the median rank {}. {steps}.",
                milliseconds(rank.time.comm_ms),
                milliseconds(comm),
            ),
        });
    }
    (longer >= 0.5 * excess_ms).then(|| {
        not_shown(
            "Its communication is not shorter than on the other ranks, so nothing shows that they wait for it.",
        )
    })
}

fn median_of(ranks: &[&RankSummary], of: impl Fn(&RankSummary) -> f64) -> f64 {
    median(&ranks.iter().map(|rank| of(rank)).collect::<Vec<f64>>())
}

fn differences(rank: &RankSummary, ranks: &[&RankSummary], excess_ms: f64) -> Vec<Difference> {
    let value = |rank: &RankSummary, part: FigureId| rank.figure(part).unwrap_or(0.0);
    let own_parts = FigureId::PARTS.iter().copied().filter(|part| *part != FigureId::ExposedCommMs);
    let mut list: Vec<Difference> = own_parts
        .map(|part| (part, value(rank, part), median_of(ranks, |rank| value(rank, part))))
        .filter(|(_, ms, median_ms)| ms - median_ms > EXPLAINS * excess_ms)
        .map(|(part, ms, median_ms)| Difference {
            part: part.label().to_owned(),
            ms,
            median_ms,
            because: because(part, rank, ranks),
        })
        .collect();
    list.sort_by(|a, b| (b.ms - b.median_ms).total_cmp(&(a.ms - a.median_ms)));
    list
}

fn because(part: FigureId, rank: &RankSummary, ranks: &[&RankSummary]) -> Vec<Reason> {
    match part {
        FigureId::ComputeMs => kernels(rank, ranks).into_iter().collect(),
        FigureId::ExposedBusCopyMs | FigureId::IdleCopyMs => copies(rank, ranks),
        _ => Vec::new(),
    }
}

/// More kernels mean more work; as many but longer kernels mean a slower GPU or larger shapes.
fn kernels(rank: &RankSummary, ranks: &[&RankSummary]) -> Option<Reason> {
    let (own, usual) = (rank.kernels.count, median_of(ranks, |rank| rank.kernels.count));
    if own > 1.05 * usual {
        let (own, usual) = (count(own.round() as u64), count(usual.round() as u64));
        return Some(Reason { seen: format!("{own} kernels vs. {usual}"), means: Some("more work") });
    }
    let (own, usual) = (rank.kernels.median_us, median_of(ranks, |rank| rank.kernels.median_us));
    (own > 1.03 * usual).then(|| Reason {
        seen: format!("no more kernels, but longer: median {own:.1} µs vs. {usual:.1} µs"),
        means: Some("a lower clock, or larger shapes"),
    })
}

fn copies(rank: &RankSummary, ranks: &[&RankSummary]) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for own in rank.copies.iter().filter(|copies| CopyRoute::of(copies.direction).is_bus()) {
        let of = |rank: &RankSummary| rank.copies.iter().find(|other| other.kind == own.kind).cloned();
        let others: Vec<RankCopies> = ranks.iter().filter_map(|rank| of(rank)).collect();
        let usual_bytes = median_of(ranks, |rank| of(rank).map_or(0.0, |copies| copies.bytes));
        let rates: Vec<f64> = others.iter().filter_map(|copies| copies.gbps).collect();
        if own.bytes > 1.1 * usual_bytes && own.bytes - usual_bytes > 1e6 {
            let usual = if usual_bytes > 0.0 { bytes(usual_bytes as u64) } else { "none".to_owned() };
            let seen = format!("{} {} vs. {usual}", own.kind, bytes(own.bytes as u64));
            reasons.push(Reason { seen, means: None });
        }
        // Compare rates only if most ranks have such copies.
        if let Some(gbps) =
            own.gbps.filter(|gbps| 2 * rates.len() > ranks.len() && *gbps < 0.9 * median(&rates))
        {
            let is_pageable = [own.src, own.dst].contains(&MemoryKind::Pageable);
            let causes = if is_pageable {
                "a busier host, or host memory on another NUMA node"
            } else {
                "a link at lower speed or with fewer lanes, host memory on another NUMA node, or a PCIe uplink shared with other GPUs"
            };
            let seen = format!("{} at {gbps:.1} GB/s vs. {:.1} GB/s", own.kind, median(&rates));
            reasons.push(Reason { seen, means: Some(causes) });
        }
    }
    reasons
}

/// Whether its GPU or link differs from most ranks.
fn other_gpu(rank: &RankSummary, ranks: &[&RankSummary]) -> Option<String> {
    let describe = |rank: &RankSummary| {
        let gpu = rank.gpus.first()?;
        Some(format!("{} on {}", gpu.name.as_deref().unwrap_or("unnamed GPU"), gpu.link))
    };
    let own = describe(rank)?;
    let same_gpu = ranks.iter().filter(|other| describe(other).as_ref() == Some(&own)).count();
    (2 * same_gpu < ranks.len()).then(|| format!("Its GPU differs from most ranks: {own}."))
}

fn own_findings(rank: &RankSummary, ranks: &[&RankSummary]) -> Vec<FindingName> {
    let has = |rank: &RankSummary, id: &FindingName| rank.findings.iter().any(|finding| finding.id == *id);
    let having = |id: &FindingName| ranks.iter().filter(|rank| has(rank, id)).count();
    let own = rank.findings.iter().filter(|finding| 2 * having(&finding.id) < ranks.len());
    own.map(|finding| finding.id.clone()).collect()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}
