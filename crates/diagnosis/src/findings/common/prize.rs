//! What would the run take with its findings fixed, one after another?

use busbound_trace::Direction;
use busbound_whatif::replay::{Change, Predicted, Prefetch, Replay};
use serde::Serialize;

use super::finding::Finding;
use crate::analysis::facts::Facts;
use crate::findings::FindingId;

/// What the run would take with its findings fixed, by replaying it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Prize {
    /// Milliseconds per step now, without the profiler where that is known.
    pub step_ms: f64,
    /// Milliseconds per step with all of `fixes` made, and the range it is expected in.
    pub fixed_ms: f64,
    pub low_ms: f64,
    pub high_ms: f64,
    /// `step_ms` as a multiple of `fixed_ms`.
    pub speedup: f64,
    /// In the order in which they are made.
    pub fixes: Vec<AppliedFix>,
}

/// One fix, made after those before it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct AppliedFix {
    /// The finding that it fixes. A fix that pays only after those before it has no finding in the list yet.
    pub finding: FindingId,
    /// As `busbound whatif --apply` takes them.
    pub apply: Vec<String>,
    /// What is done, to follow "by".
    #[serde(skip)]
    pub doing: Vec<&'static str>,
    /// Other findings that the same changes fix: the gain is of all of them together.
    pub together_with: Vec<FindingId>,
    /// Milliseconds per step before and after.
    pub before_ms: f64,
    pub after_ms: f64,
}

/// A fix that gains less than this share of the step is not part of the prize.
const WORTH_A_FIX: f64 = 0.01;
/// A fix that no finding asks for yet must gain more: this share of the step.
const WORTH_A_FOLLOW_UP: f64 = 0.05;

/// The search for the fixes that pay one after another.
struct Search<'r> {
    replay: &'r Replay,
    changes: Vec<Change>,
    /// Milliseconds per step with the changes.
    now_ms: f64,
    /// With the first fix alone, if that is known.
    alone: Option<Predicted>,
    fixes: Vec<AppliedFix>,
}

impl Search<'_> {
    /// Keeps the changes if they gain enough on top of those already made.
    fn try_fix(&mut self, finding: FindingId, changes: &[Change], alone: Option<Predicted>, worth: f64) {
        let new: Vec<Change> =
            changes.iter().filter(|change| !self.changes.contains(change)).cloned().collect();
        if new.is_empty() {
            return;
        }
        let all: Vec<Change> = self.changes.iter().chain(&new).cloned().collect();
        // The first fix is alone, and that may be known.
        let known = alone.filter(|known| self.changes.is_empty() && known.applies);
        let expected = known.map(|known| known.step_ms).or_else(|| self.replay.expect_ms(&all));
        let Some(after_ms) = expected.filter(|ms| self.now_ms - ms >= worth * self.replay.step_ms()) else {
            return;
        };
        self.fixes.push(AppliedFix {
            finding,
            together_with: Vec::new(),
            apply: new.iter().map(ToString::to_string).collect(),
            doing: new.iter().map(|change| change.about().doing).collect(),
            before_ms: self.now_ms,
            after_ms,
        });
        (self.changes, self.now_ms, self.alone) = (all, after_ms, known);
    }
}

/// `None` where no finding has a fix that the replay can make, or none gains anything.
pub(crate) fn prize(facts: &Facts<'_>, findings: &[Finding]) -> Option<Prize> {
    // What goes up may be what came down just before: then nothing overlaps.
    let may_depend = findings.iter().any(|finding| finding.id == FindingId::RoundTrip);
    let is_possible = |changes: &Vec<Change>| !(may_depend && changes.iter().any(Change::overlaps_copies));
    let fixes: Vec<(&Finding, Vec<Change>)> = findings
        .iter()
        .filter_map(|finding| Some((finding, finding.changes.clone().filter(is_possible)?)))
        .collect();
    if fixes.is_empty() {
        return None;
    }
    let replay = facts.replay()?;
    let step_ms = facts.own_step_ms();
    let now_ms = replay.step_ms();
    let mut search = Search { replay, changes: Vec::new(), now_ms, alone: None, fixes: Vec::new() };
    for (finding, changes) in &fixes {
        search.try_fix(finding.id, changes, finding.predicted, WORTH_A_FIX);
    }
    let has_copies = facts.groups.iter().any(|group| group.direction == Direction::HostToDevice);
    if has_copies && !may_depend && !search.changes.is_empty() {
        // Copies that are fast may still wait for compute, and only then is that the next thing to change.
        search.try_fix(FindingId::SerializedCopies, &[Prefetch(1).into()], None, WORTH_A_FOLLOW_UP);
    }
    if search.fixes.is_empty() {
        return None;
    }
    let best = search.alone.unwrap_or_else(|| replay.predict(&search.changes));
    for fix in &mut search.fixes {
        let own = fixes.iter().find(|(finding, _)| finding.id == fix.finding).map(|(_, changes)| changes);
        let same =
            fixes.iter().filter(|(finding, changes)| finding.id != fix.finding && own == Some(changes));
        fix.together_with = same.map(|(finding, _)| finding.id).collect();
    }
    Some(Prize {
        step_ms,
        fixed_ms: best.step_ms,
        low_ms: best.low_ms,
        high_ms: best.high_ms,
        speedup: step_ms / best.step_ms,
        fixes: search.fixes,
    })
}
