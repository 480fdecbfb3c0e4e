//! Which findings does a run have, and what does each save?

use busbound_cause::Resource;
use busbound_whatif::replay::{Change, Predicted};

use super::draft::Draft;
use super::finding::{Finding, WithoutCode};
use super::pageable::is_pageable;
use crate::activity::copies::Copy;
use crate::analysis::bounds::Asked;
use crate::analysis::facts::Facts;
use crate::analysis::program::Program;
use crate::analysis::replay;
use crate::findings::FindingId;
use crate::quantity::milliseconds_change;
use crate::saving::Saving;
use crate::verdict::unknown_share;

/// The basis of a saving that a replay gave.
const REPLAYED: &str = "replay of the trace with the fix applied (`busbound whatif`)";

/// A draft that becomes a finding.
struct Made {
    id: FindingId,
    draft: Draft,
    basis: &'static str,
    /// The replay with its fix alone.
    predicted: Option<Predicted>,
}

/// All findings, largest expected saving first.
pub(crate) fn findings(facts: &Facts<'_>, asked: Option<&Asked<'_>>) -> Vec<Finding> {
    if facts.time.analyzed_ms <= 0.0 {
        return Vec::new();
    }
    let check = |&id: &FindingId| {
        let rule = id.rule();
        let mut draft = (rule.check)(facts)?;
        if !draft.fix.gains {
            draft.saves = Saving::NONE;
        }
        Some(Made { id, draft, basis: rule.basis, predicted: None })
    };
    let mut made: Vec<Made> = FindingId::ALL.iter().filter_map(check).collect();
    let found: Vec<FindingId> = made.iter().map(|made| made.id).collect();
    made.retain(|made| !made.id.rule().unless.iter().any(|better| found.contains(better)));
    scale_bounds(facts, &mut made);
    replace_bounds(facts, &mut made);
    if let Some(asked) = asked {
        cap_bounds(asked, &mut made);
    }
    let step_ms = facts.own_step_ms();
    let finding = |made: Made| {
        let mut finding = Finding::of(made.id, made.draft, made.basis, step_ms);
        let pins = finding.changes.iter().flatten().any(Change::pins);
        finding.cost.pinned_bytes = pins.then(|| pageable_bytes(facts));
        finding.cost.host_bytes = facts.host_memory.filter(|_| pins);
        finding.cost.gpu_bytes =
            made.predicted.as_ref().map(|made| made.extra_bytes).filter(|bytes| *bytes > 0);
        Finding { predicted: made.predicted, ..finding }
    };
    let mut findings: Vec<_> = made.into_iter().map(finding).collect();
    findings.sort_by(|a, b| {
        let by_saving = expected_ms(b, step_ms).total_cmp(&expected_ms(a, step_ms));
        // What saves nothing: wrong results first.
        let is_wrong = |finding: &Finding| finding.id.is_about_correctness();
        by_saving.then(is_wrong(b).cmp(&is_wrong(a))).then_with(|| a.id.as_str().cmp(b.id.as_str()))
    });
    say_without_code(facts, &mut findings);
    findings
}

/// What a step copies from and to pageable memory: pinning its buffers pins at most this much.
fn pageable_bytes(facts: &Facts<'_>) -> u64 {
    let copies = facts.copies.iter().filter(|copy| is_pageable(facts, copy));
    let all = copies.filter_map(Copy::bytes).fold(0, u64::saturating_add);
    (all as f64 / facts.steps()) as u64
}

/// Gains below this share of the step are not worth another run.
const WORTH_TRYING: f64 = 0.05;

fn expected_ms(finding: &Finding, step_ms: f64) -> f64 {
    let replayed = finding.predicted.as_ref().filter(|predicted| predicted.applies);
    replayed.map_or(finding.saves_ms_per_step.middle(), |predicted| step_ms - predicted.step_ms)
}

/// No fix saves time whose cause is not visible: the replay may shorten it by chance.
pub(crate) fn limit_to_visible(facts: &Facts<'_>, findings: &mut [Finding]) {
    let visible = (1.0 - unknown_share(facts)).max(0.0) * facts.own_step_ms();
    for finding in findings.iter_mut().filter(|finding| finding.saves_ms_per_step.high > visible) {
        let Saving { low, .. } = finding.saves_ms_per_step;
        finding.saves_ms_per_step = Saving { low: low.min(0.0), high: visible };
        finding.predicted = None;
    }
}

/// A known saving of this share of the step comes before an unknown one.
const MUCH: f64 = 0.25;

/// A finding about what bounds the run comes first if it may save as much as the one before it.
pub(crate) fn explaining_first(findings: &mut [Finding], bound: &[Resource], step_ms: f64) {
    let explains = |finding: &Finding| finding.id.rule().relieves.iter().any(|one| bound.contains(one));
    let Some(first) = findings.first().filter(|first| !explains(first)) else { return };
    let expected = expected_ms(first, step_ms);
    let is_little = expected < MUCH * step_ms;
    let is_enough =
        |finding: &Finding| finding.saves_ms_per_step.high >= expected || !finding.saving_known && is_little;
    let may = |finding: &Finding| explains(finding) && is_enough(finding);
    if let Some(at) = findings.iter().position(may) {
        findings[..=at].rotate_right(1);
    }
}

/// The first finding that can be fixed without a change of the program says what that gains.
fn say_without_code(facts: &Facts<'_>, findings: &mut [Finding]) {
    let mut with = findings
        .iter_mut()
        .filter_map(|finding| Some((finding.id.rule().candidate.without_code()?, finding)));
    let Some((changes, finding)) = with.next() else { return };
    let Some(replay) = facts.replay() else { return };
    let predicted = replay.predict(&changes);
    if !predicted.applies || predicted.step_ms > (1.0 - WORTH_TRYING) * replay.step_ms() {
        return;
    }
    let now = facts.own_step_ms();
    let Predicted { step_ms, low_ms, high_ms, .. } = predicted;
    let command = match facts.program {
        Program::Cuda => "busbound try -- CMD",
        Program::PyTorch | Program::Xla => "busbound try -- python train.py",
    };
    let gain = milliseconds_change(now, step_ms);
    finding.fix.push_str(&format!(" Without code changes: {command} speeds up these copies (about {gain})."));
    finding.without_code = Some(WithoutCode {
        command,
        candidate: changes.iter().map(ToString::to_string).collect(),
        step_ms,
        low_ms,
        high_ms,
    });
}

/// Bounds come from recorded times, and the profiler is part of those. No fix saves more than the step.
fn scale_bounds(facts: &Facts<'_>, all: &mut [Made]) {
    let own = facts.own_step_ms();
    let share = own / facts.step_ms();
    for made in all {
        let Saving { low, high } = made.draft.saves;
        made.draft.saves = Saving { low: (low * share).min(own), high: (high * share).min(own) };
    }
}

/// Exposed time is not all gained: what it hides may bound the step next.
fn cap_bounds(asked: &Asked<'_>, all: &mut [Made]) {
    for made in all.iter_mut().filter(|made| made.basis != REPLAYED && made.draft.saves.high > 0.0) {
        let relieves = made.id.rule().relieves;
        if !relieves.is_empty() {
            let most = asked.gain(relieves).max(0.0);
            let Saving { low, high } = made.draft.saves;
            made.draft.saves = Saving { low: low.min(most), high: high.min(most) };
        }
    }
}

/// If the fix is a change that can be replayed, the saving is what the replay saves, not a bound.
fn replace_bounds(facts: &Facts<'_>, all: &mut [Made]) {
    let fixes: Vec<Option<Vec<Change>>> =
        all.iter().map(|made| made.id.rule().changes(&made.draft)).collect();
    if fixes.iter().all(Option::is_none) {
        return;
    }
    let Some(replay) = facts.replay() else { return };
    for (made, fix) in all.iter_mut().zip(&fixes) {
        let Some(changes) = fix else { continue };
        // Two findings with the same fix would each promise the whole saving, so they keep their own bounds.
        if fixes.iter().filter(|other| *other == fix).count() > 1 {
            continue;
        }
        let predicted = replay.predict(changes);
        if let Some(saving) = replay::saving(replay, &predicted) {
            made.draft.saves = saving;
            made.basis = REPLAYED;
        }
        made.predicted = Some(predicted);
    }
}
