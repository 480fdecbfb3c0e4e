//! The timeline and the throughput below it, which the script draws, and what their colors mean.

use std::collections::BTreeSet;

use askama::Template;
use busbound_diagnosis::{GapCause, LaneKind, Picture, PieceMark};

use super::{Context, SectionSpec};
use crate::error::RenderError;
use crate::html::data::idle_class;

pub(super) const SECTION: SectionSpec =
    SectionSpec { id: "timeline", heading: "Timeline", link: "Timeline", needs_script: true, body };

#[derive(Template)]
#[template(path = "timeline.html")]
struct TimelineView {
    several: bool,
    legend: Vec<LegendEntry>,
}

fn body(context: &Context<'_>) -> Result<Option<String>, RenderError> {
    let picture = &context.drawn.picture;
    if picture.groups.is_empty() {
        return Ok(None);
    }
    Ok(Some(TimelineView { several: false, legend: legend([picture]) }.render()?))
}

/// A color in the lanes: its class, and what it means.
pub(in super::super) struct LegendEntry {
    pub(in super::super) class: &'static str,
    pub(in super::super) what: String,
}

/// The colors that these pictures use, in the order of the lanes.
pub(in super::super) fn legend<'a>(pictures: impl IntoIterator<Item = &'a Picture>) -> Vec<LegendEntry> {
    let mut kinds: BTreeSet<LaneKind> = BTreeSet::new();
    let mut causes: BTreeSet<&'static str> = BTreeSet::new();
    let mut is_pageable = false;
    for lane in pictures.into_iter().flat_map(|picture| &picture.groups).flat_map(|group| &group.lanes) {
        // A lane of pageable copies has their color only.
        if lane.rows.iter().flat_map(|row| &row.pieces).any(|piece| piece.mark == PieceMark::None) {
            kinds.insert(lane.sort);
        }
        for piece in lane.rows.iter().flat_map(|row| &row.pieces) {
            match piece.mark {
                PieceMark::None => {}
                PieceMark::Pageable => is_pageable = true,
                PieceMark::Idle(cause) => _ = causes.insert(cause.id()),
            }
        }
    }
    let entry = |class: &'static str, what: &str| LegendEntry { class, what: what.to_owned() };
    let of_kind = |kind: &LaneKind| match kind {
        LaneKind::Compute => Some(entry("compute", "compute")),
        LaneKind::Communication => Some(entry("communication", "communication")),
        LaneKind::ToDevice => Some(entry("h2d", "H2D, pinned")),
        LaneKind::ToHost => Some(entry("d2h", "D2H, pinned")),
        LaneKind::OtherCopies => Some(entry("other", "other copies, memsets")),
        LaneKind::Idle | LaneKind::Host => None,
    };
    let mut entries: Vec<LegendEntry> = kinds.iter().filter_map(of_kind).collect();
    entries.extend(is_pageable.then(|| entry("pageable", "pageable memory, both directions")));
    let drawn = GapCause::ALL.iter().filter(|cause| causes.contains(cause.id()));
    entries.extend(drawn.map(|cause| entry(idle_class(*cause), &format!("idle: {}", cause.describe()))));
    entries
}
