//! The ranks of one run as pictures: a heat map of their parts, and the order in which they arrive at collectives.

use askama::Template;
use busbound_diagnosis::Unit;
use busbound_diagnosis::quantity::milliseconds;
use busbound_fleet::{CollectiveArrival, FleetAnswer, RankSummary};

use super::lanes::lanes;
use crate::error::RenderError;
use crate::text::fleet as text;

/// Nothing if the files are not ranks of one run.
pub(super) fn pictures(fleet: &FleetAnswer) -> Result<String, RenderError> {
    match fleet.not_one_run {
        None => Ok(heat_map(fleet)? + &arrivals(fleet)? + &lanes(fleet)?),
        Some(_) => Ok(String::new()),
    }
}

#[derive(Template)]
#[template(path = "heat_map.html")]
struct HeatMap {
    unit: Unit,
    columns: Vec<&'static str>,
    rows: Vec<HeatRow>,
    /// Ranks that are not shown, because there are many.
    hidden: usize,
}

struct HeatRow {
    rank: String,
    is_straggler: bool,
    cells: Vec<HeatCell>,
}

struct HeatCell {
    class: &'static str,
    text: String,
    /// Of the largest value in the column.
    percent: f64,
    is_most: bool,
}

type HeatColumn = (&'static str, &'static str, fn(&RankSummary) -> f64);

const HEAT: [HeatColumn; 6] = [
    ("step", "gain", |rank| rank.time.span_ms),
    ("compute", "compute", |rank| rank.time.compute_ms),
    ("copying only", "h2d", |rank| rank.time.exposed_bus_copy_ms),
    ("other copies", "other", |rank| rank.time.exposed_copy_ms - rank.time.exposed_bus_copy_ms),
    ("comm. only", "communication", |rank| rank.time.exposed_comm_ms),
    ("idle", "idle", |rank| rank.time.idle_ms),
];

/// A column is left out if its largest value is below this share of the longest step.
const NOTHING: f64 = 0.005;
/// A value stands out beyond this multiple of the column's median.
const STANDS_OUT: f64 = 1.1;

/// Ranks by parts of their steps. Each column has its own scale.
fn heat_map(fleet: &FleetAnswer) -> Result<String, RenderError> {
    let shown = text::worth_a_row(fleet);
    let most = |of: fn(&RankSummary) -> f64| fleet.ranks.iter().map(of).fold(0.0, f64::max);
    let longest = most(|rank| rank.time.span_ms);
    let columns: Vec<&HeatColumn> = HEAT.iter().filter(|(.., of)| most(*of) > NOTHING * longest).collect();
    if shown.len() < 2 || columns.is_empty() {
        return Ok(String::new());
    }
    let median =
        |of: fn(&RankSummary) -> f64| busbound_machine::median(fleet.ranks.iter().map(of)).unwrap_or(0.0);
    let row = |rank: &&RankSummary| HeatRow {
        rank: rank.label().short(),
        is_straggler: fleet.stragglers.iter().any(|one| one.path == rank.path),
        cells: columns
            .iter()
            .map(|(_, class, of)| HeatCell {
                class,
                text: milliseconds(of(rank).max(0.0)),
                percent: 100.0 * of(rank).max(0.0) / most(*of),
                is_most: of(rank) >= most(*of) && of(rank) > STANDS_OUT * median(*of),
            })
            .collect(),
    };
    let view = HeatMap {
        unit: fleet.unit,
        columns: columns.iter().map(|(name, ..)| *name).collect(),
        rows: shown.iter().map(row).collect(),
        hidden: fleet.ranks.len() - shown.len(),
    };
    Ok(view.render()?)
}

#[derive(Template)]
#[template(path = "arrivals.html")]
struct ArrivalOrder {
    /// The right end of the scale.
    longest: String,
    rows: Vec<ArrivalRow>,
}

struct ArrivalRow {
    at: String,
    last: String,
    delay: String,
    ranks: usize,
    dots: Vec<Dot>,
}

struct Dot {
    what: String,
    /// Of the scale.
    percent: f64,
    is_last: bool,
}

/// The collectives with the longest waits, on one scale.
fn arrivals(fleet: &FleetAnswer) -> Result<String, RenderError> {
    let Some(arrivals) = fleet.arrivals.as_ref().filter(|arrivals| !arrivals.longest.is_empty()) else {
        return Ok(String::new());
    };
    let longest = arrivals.longest.iter().map(|of| of.spread_ms).fold(f64::MIN_POSITIVE, f64::max);
    let row = |of: &CollectiveArrival| ArrivalRow {
        at: milliseconds(of.at_ms),
        last: of.last.short(),
        delay: milliseconds(of.delay_ms),
        ranks: of.ranks,
        dots: of
            .order
            .iter()
            .map(|one| Dot {
                what: format!("{}: {} after the first", one.rank, milliseconds(one.after_ms)),
                percent: 100.0 * one.after_ms / longest,
                is_last: one.rank == of.last,
            })
            .collect(),
    };
    let view =
        ArrivalOrder { longest: milliseconds(longest), rows: arrivals.longest.iter().map(row).collect() };
    Ok(view.render()?)
}
