//! What did the ranks do at the same time? Lanes of chosen ranks on one axis, by their aligned clocks.

use std::fmt::Write;

use askama::Template;
use busbound_diagnosis::LaneTimes;
use busbound_diagnosis::quantity::milliseconds;
use busbound_fleet::{AlignedRank, FleetAnswer};

use crate::error::RenderError;

#[derive(Template)]
#[template(path = "lanes.html")]
struct Lanes {
    /// Microseconds.
    length: i64,
    error: String,
    legend: Vec<(&'static str, &'static str)>,
    /// Labels of the axis, from 0 to the length.
    ticks: Vec<String>,
    ranks: Vec<RankRow>,
    /// Ranks that are not on the page, because there are many.
    hidden: usize,
}

struct RankRow {
    rank: String,
    error: String,
    is_late: bool,
    is_shown: bool,
    lanes: Vec<Lane>,
}

struct Lane {
    class: &'static str,
    name: &'static str,
    path: String,
}

/// Ranks on a page, and those that it shows at first.
const MOST: usize = 32;
const FIRST: usize = 4;
const TICKS: i64 = 4;

type LaneOf = fn(&AlignedRank) -> &LaneTimes;

/// The lanes of a rank, with their colors.
const LANES: [(&str, &str, LaneOf); 4] = [
    ("h2d", "H2D copies", |rank| &rank.lanes.h2d),
    ("d2h", "D2H copies", |rank| &rank.lanes.d2h),
    ("communication", "collectives", |rank| &rank.lanes.collectives),
    ("compute", "compute", |rank| &rank.lanes.compute),
];

/// Nothing if the clocks of fewer than two ranks are aligned.
pub(super) fn lanes(fleet: &FleetAnswer) -> Result<String, RenderError> {
    let Some(aligned) = &fleet.aligned else { return Ok(String::new()) };
    let used: Vec<_> =
        LANES.into_iter().filter(|(.., of)| aligned.ranks.iter().any(|rank| !of(rank).is_empty())).collect();
    // The late ones are why somebody looks.
    let mut order: Vec<&AlignedRank> = aligned.ranks.iter().collect();
    order.sort_by_key(|rank| !rank.is_late);
    let hidden = order.len().saturating_sub(MOST);
    order.truncate(MOST);
    let shown: Vec<_> = order.iter().take(FIRST).map(|rank| rank.rank.clone()).collect();
    order.sort_by_key(|rank| aligned.ranks.iter().position(|other| other.rank == rank.rank));
    let row = |rank: &&AlignedRank| RankRow {
        rank: rank.rank.to_string(),
        error: milliseconds(rank.error_us / 1e3),
        is_late: rank.is_late,
        is_shown: shown.contains(&rank.rank),
        lanes: used.iter().map(|(class, name, of)| Lane { class, name, path: path(of(rank)) }).collect(),
    };
    let length = (aligned.length_ns / 1000).max(1);
    let error_us = aligned.ranks.iter().map(|rank| rank.error_us).fold(0.0, f64::max);
    let view = Lanes {
        length,
        error: milliseconds(error_us / 1e3),
        legend: used.iter().map(|(class, name, _)| (*class, *name)).collect(),
        ticks: (0..=TICKS).map(|tick| milliseconds((length * tick) as f64 / (1000 * TICKS) as f64)).collect(),
        ranks: order.iter().map(row).collect(),
        hidden,
    };
    Ok(view.render()?)
}

/// One filled path of all times, in microseconds.
fn path(times: &LaneTimes) -> String {
    let mut path = String::new();
    for (start, end) in times.iter() {
        // What is shorter than a microsecond is drawn as one.
        let (from, until) = (start / 1000, (end / 1000).max(start / 1000 + 1));
        let _ = write!(path, "M{from} 0H{until}V1H{from}z");
    }
    path
}
