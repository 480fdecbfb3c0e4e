//! Which rank holds the others up, and what is different about it?
//!
//! Ranks that exchange data every step keep step: all have the same step time, the slow one too. What tells it is where
//! the time goes. A collective's kernel runs from when its rank arrives until the last one has: the late rank finds the
//! others waiting and is through soon. So the straggler is the rank with most time outside communication and least
//! inside. Only durations within each rank are compared, which needs no common clock.

use std::fmt;

use busbound_diagnosis::quantity::{bytes, count, milliseconds};
use busbound_diagnosis::{CopyRoute, FigureId, Unit};
use busbound_trace::MemoryKind;
use serde::{Serialize, Serializer};

use crate::name::{FindingName, RankName};
use crate::spread::{Middle, median};
use crate::summary::{RankCopies, RankSummary};

/// A rank with clearly more time of its own than the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Straggler {
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub rank: RankName,
    pub path: String,
    /// Time outside of communication, a step.
    pub own_ms: f64,
    pub median_own_ms: f64,
    pub excess_ms: f64,
    /// What the others wait for it, a step; `null` where nothing shows that they do.
    pub others_wait_ms: Option<f64>,
    /// The answer in a few sentences.
    pub statement: String,
    /// What explains most of it first.
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
    /// Why, as far as its figures tell.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub because: Vec<Reason>,
}

/// Something about a rank that explains a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// What its figures show, against the median rank's.
    pub seen: String,
    /// What that may come from.
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
    /// `exposed copy 82.1 ms, of the median rank 21.0 ms (H2D pinned at 11.8 GB/s, …)`.
    pub fn statement(&self) -> String {
        let reasons: Vec<String> = self.because.iter().map(Reason::to_string).collect();
        let because = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) };
        let (own, median) = (milliseconds(self.ms), milliseconds(self.median_ms));
        format!("{} {own} against {median}{because}", self.part)
    }
}

/// Less than this share of the median step is not worth anybody's night.
const MATTERS: f64 = 0.03;
/// A part of its time that makes up less of the excess explains nothing.
const EXPLAINS: f64 = 0.15;

/// The stragglers among ranks whose figures are for the same unit, the worst first.
pub(crate) fn stragglers(ranks: &[&RankSummary], unit: Unit) -> Vec<Straggler> {
    if why_not(ranks, unit).is_some() {
        return Vec::new();
    }
    let own: Vec<f64> = ranks.iter().map(|rank| rank.time.own_ms()).collect();
    let step = median_of(ranks, RankSummary::step_ms);
    let Some(middle) = Middle::of(&own, MATTERS * step) else { return Vec::new() };
    let slow = ranks.iter().filter(|rank| rank.time.own_ms() - middle.median > middle.far);
    let mut found: Vec<Slow<'_>> =
        slow.filter_map(|rank| Slow::of(rank, ranks, middle.median, unit)).collect();
    if 2 * found.len() >= ranks.len() {
        return Vec::new();
    }
    found.sort_by(|a, b| b.excess_ms.total_cmp(&a.excess_ms));
    found.iter().enumerate().map(|(before, slow)| slow.straggler(ranks, unit, before)).collect()
}

/// Why nobody can be called slow.
pub(crate) fn why_not(ranks: &[&RankSummary], unit: Unit) -> Option<&'static str> {
    let kernels = median_of(ranks, |rank| rank.kernels.count);
    let as_many = |rank: &&RankSummary| (rank.kernels.count / kernels - 1.0).abs() < 0.1;
    match unit {
        Unit::Step => None,
        Unit::Iteration if ranks.iter().all(as_many) => None,
        Unit::Iteration => Some(
            "No steps are marked, and the rounds found hold different numbers of kernels: nobody is called slow for that. Mark steps, or name their annotation with --steps.",
        ),
        Unit::Trace => {
            Some("No steps are marked: recordings may differ in length, and nobody is called slow for that.")
        }
    }
}

/// A rank that is slow, before it is known how many are slower.
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

    /// The answer about it; `before` are the slower ones that are named first.
    fn straggler(&self, ranks: &[&RankSummary], unit: Unit, before: usize) -> Straggler {
        let rank = self.rank;
        let differences = differences(rank, ranks, self.excess_ms);
        let findings_of_its_own = own_findings(rank, ranks);
        let mut statement = self.waiting_sentence(unit, before);
        if !differences.is_empty() {
            let parts: Vec<String> = differences.iter().map(Difference::statement).collect();
            statement.push_str(&format!(" More than the median rank: {}.", parts.join(", ")));
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
        statement.push_str(&format!(" Its own diagnosis: `busbound diagnose {}`.", rank.path));
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

    /// Whether the others wait for it, and how that shows.
    fn waiting_sentence(&self, unit: Unit, before: usize) -> String {
        let (name, shows) = (self.rank.label(), &self.waiting.shows);
        let own = format!(
            "outside communication it spends {} a {unit}, the median rank {}",
            milliseconds(self.own_ms),
            milliseconds(self.own_ms - self.excess_ms)
        );
        match self.waiting.ms {
            None => format!("{} is slower: {own}. {shows}", capital(&name.to_string())),
            Some(ms) => {
                // A collective begins when the last rank comes: who is less late is waited for no longer than for
                // the latest.
                let wait = match before {
                    0 => "The others wait for",
                    _ => "Without those named before it the others would still wait for",
                };
                format!("{wait} {name}, about {} a {unit}: {own}; {shows}", milliseconds(ms))
            }
        }
    }
}

struct Waiting {
    /// What the others wait for it; `None` where nothing shows that they do.
    ms: Option<f64>,
    /// How that shows, or why it does not.
    shows: String,
}

/// Whether the others wait for it: steps are as long as theirs, and by what it has more of its own its collectives are
/// shorter. `None` where neither they are nor its steps longer: it computes beside its communication, which delays nobody.
fn waiting(rank: &RankSummary, ranks: &[&RankSummary], excess_ms: f64, unit: Unit) -> Option<Waiting> {
    let comm = median_of(ranks, |rank| rank.time.comm_ms);
    let step = median_of(ranks, RankSummary::step_ms);
    // The whole collective, and not its exposed part: that also shrinks where work runs beside it.
    let shorter = comm - rank.time.comm_ms;
    let less = median_of(ranks, |rank| rank.time.exposed_comm_ms) - rank.time.exposed_comm_ms;
    let longer = rank.step_ms() - step;
    let not_shown = |why: &str| Waiting { ms: None, shows: why.to_owned() };
    if comm <= 0.0 {
        return Some(not_shown("No communication is recorded, so nothing shows that others wait for it."));
    }
    if shorter > 0.5 * excess_ms && less > 0.5 * excess_ms && longer.abs() < 0.5 * excess_ms {
        let steps = if longer.abs() < 0.01 * step {
            format!("A {unit} takes {} on both", milliseconds(step))
        } else {
            format!("A {unit} takes {} and {}", milliseconds(rank.step_ms()), milliseconds(step))
        };
        return Some(Waiting {
            ms: Some(shorter.min(less).min(excess_ms)),
            shows: format!(
                "in communication {}, the median rank {}. {steps}.",
                milliseconds(rank.time.comm_ms),
                milliseconds(comm),
            ),
        });
    }
    (longer >= 0.5 * excess_ms).then(|| {
        not_shown(
            "It is not through its communication sooner than the others, so nothing shows that they wait for it.",
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

/// More kernels are more work; as many and longer ones are a slower device or larger shapes.
fn kernels(rank: &RankSummary, ranks: &[&RankSummary]) -> Option<Reason> {
    let (own, usual) = (rank.kernels.count, median_of(ranks, |rank| rank.kernels.count));
    if own > 1.05 * usual {
        let (own, usual) = (count(own.round() as u64), count(usual.round() as u64));
        return Some(Reason { seen: format!("{own} kernels against {usual}"), means: Some("more work") });
    }
    let (own, usual) = (rank.kernels.median_us, median_of(ranks, |rank| rank.kernels.median_us));
    (own > 1.03 * usual).then(|| Reason {
        seen: format!("as many kernels, the median one {own:.1} µs against {usual:.1}"),
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
            let seen = format!("{} {} against {usual}", own.kind, bytes(own.bytes as u64));
            reasons.push(Reason { seen, means: None });
        }
        // Less than most of the ranks have is no rate to compare with.
        if let Some(gbps) =
            own.gbps.filter(|gbps| 2 * rates.len() > ranks.len() && *gbps < 0.9 * median(&rates))
        {
            let is_pageable = [own.src, own.dst].contains(&MemoryKind::Pageable);
            let causes = if is_pageable {
                "a busier host, or memory far from the GPU"
            } else {
                "a link trained down or narrower, memory far from the GPU, or a way to the host that others use"
            };
            let seen = format!("{} at {gbps:.1} GB/s against {:.1}", own.kind, median(&rates));
            reasons.push(Reason { seen, means: Some(causes) });
        }
    }
    reasons
}

/// Another model of GPU, or another link.
fn other_gpu(rank: &RankSummary, ranks: &[&RankSummary]) -> Option<String> {
    let describe = |rank: &RankSummary| {
        let gpu = rank.gpus.first()?;
        Some(format!("{} on {}", gpu.name.as_deref().unwrap_or("a GPU without a name"), gpu.link))
    };
    let own = describe(rank)?;
    let alike = ranks.iter().filter(|other| describe(other).as_ref() == Some(&own)).count();
    (2 * alike < ranks.len()).then(|| format!("Most ranks do not have its GPU: {own}."))
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
