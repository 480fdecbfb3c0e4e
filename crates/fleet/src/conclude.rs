//! What follows from the summaries of all ranks?

use std::collections::BTreeMap;

use busbound_diagnosis::quantity::{count, milliseconds};
use busbound_diagnosis::{Bound, FigureId, FigureUnit, FindingId, Saving, Unit};
use busbound_machine::topology::GpuPlace;
use busbound_trace::Environment;

use crate::absent::absent;
use crate::align::{Alignment, Clock, clocks};
use crate::aligned::AlignedLanes;
use crate::answer::{FleetAnswer, FleetSteps, SharedFinding, VerdictCount};
use crate::arrivals::arrivals;
use crate::fleet::{FLEET_SCHEMA, Fleet};
use crate::job;
use crate::list::some_of;
use crate::name::FindingName;
use crate::one_run::{NotOneRun, one_run};
use crate::pipeline::pipeline;
use crate::sketch::StepSketch;
use crate::spread::{FEWEST, Spread, median};
use crate::statement::statement;
use crate::stragglers::{self, Straggler};
use crate::summary::{LARGEST_WORLD, RankFinding, RankSummary};
use crate::uplinks;
use crate::windows::{Windows, one_window_each};

/// Rates that differ by less than this share count as equal.
const SAME_RATE: f64 = 0.10;
/// Times that differ by less than this share of a step count as equal.
const SAME_TIME: f64 = 0.03;
/// Overlaps that differ by fewer percentage points count as equal.
const SAME_SHARE: f64 = 5.0;

impl Fleet {
    /// Compares the ranks. With the machine's topology, also finds ranks that share a PCIe uplink.
    pub fn answer(&self, topology: Option<&[GpuPlace]>) -> FleetAnswer {
        let Members { ranks, others, evidence, not_one_run, doubt, left_out } = self.members();
        let unit = common_unit(&ranks);
        let compared: Vec<&RankSummary> =
            ranks.iter().filter(|rank| not_one_run.is_none() && rank.is_compared(unit)).collect();
        let world_size = ranks.iter().filter_map(RankSummary::world_size).max();
        let world_size = world_size.filter(|_| not_one_run.is_none());
        let absent = world_size.and_then(|world| {
            let present = ranks.iter().chain(&others).filter_map(|rank| Some(rank.rank.as_ref()?.rank));
            absent(world, &present.chain(self.unread().filter_map(|file| file.rank)).collect())
        });
        let arriving = arriving(&ranks, &compared, unit, not_one_run.is_none());
        let clocks = clocks(&arriving);
        let alignment = Alignment::of(&arriving, &clocks);
        let mut limitations: Vec<String> = doubt.into_iter().chain(left_out).chain(absent).collect();
        limitations.extend(self::limitations(&ranks, &compared, unit));
        limitations.extend(unaligned(alignment.as_ref()));
        let with_device: Vec<&RankSummary> = ranks.iter().filter(|rank| rank.has_device()).collect();
        let clocked: Vec<(&RankSummary, Clock)> =
            arriving.iter().zip(&clocks).filter_map(|(rank, clock)| Some((*rank, (*clock)?))).collect();
        let uplinks = topology
            .filter(|_| not_one_run.is_none())
            .map(|places| uplinks::uplinks(&with_device, places, &clocked));
        let uplinks = uplinks.map_or_else(Vec::new, |placed| {
            limitations.extend(placed.unknown);
            placed.uplinks
        });
        let stragglers = stragglers::stragglers(&compared, unit);
        let arrivals = alignment.as_ref().and_then(|_| arrivals(&arriving, &clocks, unit));
        let step_ms = median(&arriving.iter().map(|rank| rank.step_ms()).collect::<Vec<_>>());
        let job = job::scenarios(&compared, &stragglers, arrivals.as_ref(), step_ms, unit);
        let pipeline = pipeline(&ranks).filter(|_| not_one_run.is_none());
        let aligned = alignment.as_ref().and_then(|_| AlignedLanes::of(&clocked, arrivals.as_ref(), step_ms));
        let mut answer = FleetAnswer {
            schema: FLEET_SCHEMA,
            statement: String::new(),
            world_size,
            evidence,
            not_one_run,
            unit,
            verdicts: verdicts(&ranks),
            steps: steps(&compared),
            figures: figures(&compared, unit),
            findings: findings(&ranks, &stragglers),
            stragglers,
            alignment,
            aligned,
            arrivals,
            job,
            pipeline,
            uplinks,
            environment: environment(&ranks),
            unread: self.unread().cloned().collect(),
            limitations,
            ranks,
            others,
        };
        answer.statement = statement(&answer);
        answer
    }

    fn members(&self) -> Members {
        let Windows { compared, others: windows, left_out } = one_window_each(self.ranks());
        let at = |indices: &[usize]| -> Vec<RankSummary> {
            indices.iter().map(|&index| compared[index].clone()).collect()
        };
        match one_run(&compared) {
            Ok(run) => Members {
                ranks: at(&run.members),
                others: at(&run.others).into_iter().chain(windows).collect(),
                evidence: Some(run.evidence),
                not_one_run: None,
                doubt: run.left_out,
                left_out,
            },
            Err(why) => {
                // The user merged them, so they count as one run unless something contradicts it.
                let may_be_one = why == NotOneRun::NoRank;
                let doubt = if may_be_one {
                    format!("These may not be ranks of one run: {why}.")
                } else {
                    "These are not ranks of one run, so they are not compared with each other.".to_owned()
                };
                let several = compared.len() > 1;
                Members {
                    ranks: compared,
                    others: windows,
                    evidence: None,
                    not_one_run: (several && !may_be_one).then(|| why.to_string()),
                    doubt: several.then_some(doubt),
                    left_out,
                }
            }
        }
    }
}

/// Ranks whose arrivals at collectives are compared: those whose figures are, or, if no rank has GPU events, those that recorded collectives
/// on the host.
fn arriving<'a>(
    ranks: &'a [RankSummary],
    compared: &[&'a RankSummary],
    unit: Unit,
    is_one_run: bool,
) -> Vec<&'a RankSummary> {
    if ranks.iter().any(RankSummary::has_device) {
        return compared.to_vec();
    }
    let is_usable = |rank: &&RankSummary| {
        is_one_run && rank.complete && rank.unit == unit && !rank.collective_times.is_empty()
    };
    ranks.iter().filter(is_usable).collect()
}

/// What differs between the processes of the ranks.
fn environment(ranks: &[RankSummary]) -> Vec<String> {
    let one = |rank| {
        let rank: &RankSummary = rank;
        (rank.label().to_string(), &rank.environment)
    };
    Environment::differences(&ranks.iter().map(one).collect::<Vec<_>>())
}

/// Which summaries are ranks of the run, and how certain that is.
struct Members {
    ranks: Vec<RankSummary>,
    others: Vec<RankSummary>,
    evidence: Option<String>,
    not_one_run: Option<String>,
    doubt: Option<String>,
    /// Which windows of the ranks are not compared.
    left_out: Option<String>,
}

/// The unit of most ranks. Partly read ranks decide only if there are no others.
fn common_unit(ranks: &[RankSummary]) -> Unit {
    let having = |unit: Unit| {
        let of_unit = ranks.iter().filter(|rank| rank.has_device() && rank.unit == unit);
        (of_unit.clone().filter(|rank| rank.complete).count(), of_unit.count())
    };
    [Unit::Trace, Unit::Iteration, Unit::Step]
        .into_iter()
        .max_by_key(|unit| having(*unit))
        .unwrap_or(Unit::Step)
}

fn verdicts(ranks: &[RankSummary]) -> Vec<VerdictCount> {
    let mut counts: BTreeMap<Bound, usize> = BTreeMap::new();
    for rank in ranks {
        *counts.entry(rank.verdict.bound).or_insert(0) += 1;
    }
    let mut list: Vec<_> = counts.into_iter().map(|(bound, ranks)| VerdictCount { bound, ranks }).collect();
    list.sort_by_key(|count| std::cmp::Reverse(count.ranks));
    list
}

fn steps(ranks: &[&RankSummary]) -> Option<FleetSteps> {
    let mut all = StepSketch::default();
    for steps in ranks.iter().filter_map(|rank| rank.steps.as_ref()) {
        all.add(&steps.lengths);
    }
    Some(FleetSteps {
        count: all.count(),
        p50_ms: all.quantile_ms(0.5)?,
        p90_ms: all.quantile_ms(0.9)?,
        p99_ms: all.quantile_ms(0.99)?,
    })
}

/// The figures compared across ranks; the span comes first, labeled with the unit.
const FIGURES: [FigureId; 18] = [
    FigureId::SpanMs,
    FigureId::OwnMs,
    FigureId::ComputeMs,
    FigureId::CommMs,
    FigureId::ExposedCommMs,
    FigureId::ExposedBusCopyMs,
    FigureId::ExposedPeerCopyMs,
    FigureId::IdleMs,
    FigureId::IdleInputMs,
    FigureId::IdleLaunchMs,
    FigureId::IdleSyncMs,
    FigureId::IdleCopyMs,
    FigureId::IdleHostMs,
    FigureId::IdleQueuedMs,
    FigureId::IdleUnexplainedMs,
    FigureId::H2dGbps,
    FigureId::D2hGbps,
    FigureId::CommComputePct,
];

fn figures(ranks: &[&RankSummary], unit: Unit) -> Vec<Spread> {
    let medians =
        |figure: FigureId| median(&ranks.iter().filter_map(|rank| rank.figure(figure)).collect::<Vec<f64>>());
    let step = medians(FigureId::SpanMs);
    let has_comm = ranks.iter().any(|rank| rank.time.comm_ms > 0.0);
    let spread = |figure: FigureId| {
        let least = match figure.unit() {
            FigureUnit::Percent => SAME_SHARE,
            FigureUnit::GigabytesPerSecond => SAME_RATE * medians(figure),
            _ => SAME_TIME * step,
        };
        let name = if figure == FigureId::SpanMs { unit.as_str() } else { figure.label() };
        Spread::over(ranks, name, figure, least)
    };
    let wanted = FIGURES.into_iter().filter(|figure| has_comm || *figure != FigureId::OwnMs);
    wanted.filter_map(spread).collect()
}

/// Collectives that wait for a straggler look slow on all other ranks.
fn note(id: &FindingName, saving: Saving, stragglers: &[Straggler]) -> Option<String> {
    let latest = stragglers.first().filter(|_| *id == FindingId::ExposedCommunication)?;
    // At most the whole saving.
    let ms = latest.others_wait_ms?.min(saving.high);
    (ms > 0.0).then(|| format!("{} of it is waiting for {}", milliseconds(ms), latest.rank))
}

/// Whether a rank was read completely, and what a finding saves on it.
type Had = (bool, Saving);

fn findings(ranks: &[RankSummary], stragglers: &[Straggler]) -> Vec<SharedFinding> {
    let mut by_id: BTreeMap<&str, (&RankFinding, Vec<Had>)> = BTreeMap::new();
    for rank in ranks {
        for finding in &rank.findings {
            let having = &mut by_id.entry(finding.id.as_str()).or_insert((finding, Vec::new())).1;
            having.push((rank.complete, finding.saves_ms_per_step));
        }
    }
    let mut list: Vec<SharedFinding> = by_id
        .into_values()
        .map(|(RankFinding { id, title, .. }, having)| {
            let saves_ms_per_step = median_saving(&having);
            SharedFinding {
                id: id.clone(),
                title: title.clone(),
                ranks: having.len(),
                saves_ms_per_step,
                note: note(id, saves_ms_per_step, stragglers),
            }
        })
        .collect();
    let weight = |finding: &SharedFinding| finding.ranks as f64 * finding.saves_ms_per_step.high;
    // What a straggler causes on the other ranks goes away with its cause: causes first.
    let is_symptom = |finding: &SharedFinding| finding.note.is_some();
    list.sort_by(|a, b| is_symptom(a).cmp(&is_symptom(b)).then(weight(b).total_cmp(&weight(a))));
    list
}

/// Over the completely read ranks, if there are any.
fn median_saving(having: &[Had]) -> Saving {
    let any_whole = having.iter().any(|(complete, _)| *complete);
    let counted = || having.iter().filter(|(complete, _)| *complete || !any_whole);
    Saving {
        low: median(&counted().map(|(_, saving)| saving.low).collect::<Vec<_>>()),
        high: median(&counted().map(|(_, saving)| saving.high).collect::<Vec<_>>()),
    }
}

fn limitations(ranks: &[RankSummary], compared: &[&RankSummary], unit: Unit) -> Vec<String> {
    let named = |list: Vec<&RankSummary>| some_of(&list.iter().map(|rank| rank.label()).collect::<Vec<_>>());
    let those = |is: &dyn Fn(&RankSummary) -> bool| ranks.iter().filter(|rank| is(rank)).collect::<Vec<_>>();
    let mut list = Vec::new();
    let implausible = those(&|rank| {
        rank.rank.as_ref().is_some_and(|ranked| ranked.world_size.is_some()) && rank.world_size().is_none()
    });
    if !implausible.is_empty() {
        list.push(format!(
            "World sizes above {} are implausible and ignored: {}.",
            count(u64::from(LARGEST_WORLD)),
            named(implausible)
        ));
    }
    let cut = those(&|rank| !rank.complete);
    if !cut.is_empty() {
        list.push(format!(
            "Only partly read (* in the table), so not compared with other ranks: {}.",
            named(cut)
        ));
    }
    let without = those(&|rank| !rank.has_device());
    if !without.is_empty() {
        // Their clocks are compared if no rank has a device.
        let but = match without.len() == ranks.len()
            && without.iter().any(|rank| !rank.collective_times.is_empty())
        {
            true => {
                " except for arrivals at collectives, where compute is operators on the host and idle all other time"
            }
            false => "",
        };
        list.push(format!("No GPU events, so not included in any figure{but}: {}.", named(without)));
    }
    let other_unit = those(&|rank| rank.complete && rank.has_device() && rank.unit != unit);
    if !other_unit.is_empty() {
        list.push(format!(
            "Figures are per {}; these ranks have a different unit and are not included: {}.",
            unit.as_str(),
            named(other_unit)
        ));
    }
    if compared.len() > 1 {
        list.extend(stragglers::why_not(compared, unit).map(str::to_owned));
    }
    if (1..FEWEST).contains(&compared.len()) && ranks.len() > 1 {
        list.push(format!(
            "Finding outliers takes at least {FEWEST} ranks; with fewer, only the differences are shown."
        ));
    }
    list
}

/// What is unknown because clocks are not aligned.
fn unaligned(alignment: Option<&Alignment>) -> Option<String> {
    match alignment {
        Some(alignment) if alignment.not_aligned.is_empty() => None,
        Some(alignment) => Some(format!(
            "These ranks have too few collectives in common with the others to align their clocks, so when they arrive is unknown: {}.",
            some_of(&alignment.not_aligned)
        )),
        None => Some(
            "The clocks of the ranks are not synchronized: only durations within each rank are compared, and what ran at the same time on two ranks is unknown."
                .to_owned(),
        ),
    }
}
