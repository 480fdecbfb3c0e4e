//! What does a run gain by fixes? The first line of an answer, and the line of each finding.

use busbound_diagnosis::quantity::{milliseconds, milliseconds_change, milliseconds_range};
use busbound_diagnosis::{AppliedFix, Bound, Diagnosis, Finding, FindingId, Prize, Unit};

use super::step_time;

/// A smaller speedup is said in percent: as a factor it would have one digit that matters.
const SAID_IN_PERCENT: f64 = 1.25;

/// A fix with a smaller share of what is gained is not in the first line.
const WORTH_SAYING: f64 = 0.1;

fn is_worth_saying(fix: &AppliedFix, prize: &Prize) -> bool {
    fix.before_ms - fix.after_ms >= WORTH_SAYING * (prize.step_ms - prize.fixed_ms)
}

/// The prize, if its fixes gain 5% for sure and the finding that saves most is part of it: then the headline promises it.
fn promised(diagnosis: &Diagnosis) -> Option<&Prize> {
    fix_of(diagnosis.findings.first()?, diagnosis)?;
    let is_something = |prize: &&Prize| prize.fixes.iter().any(|fix| !fix.doing.is_empty());
    diagnosis.prize.as_ref().filter(|prize| prize.step_ms >= 1.05 * prize.high_ms).filter(is_something)
}

/// `Transfer-bound: 274 ms/step → about 81 ms (3.4x) by pinning host buffers.`
fn promise(diagnosis: &Diagnosis, prize: &Prize) -> String {
    let said = prize.fixes.iter().filter(|fix| is_worth_saying(fix, prize));
    let doing: Vec<&str> = said.flat_map(|fix| fix.doing.iter().copied()).collect();
    let doing = match doing.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        few => few.concat(),
    };
    // A prediction that may be far off is a range, not one number.
    let is_wide = prize.high_ms - prize.low_ms > 0.16 * prize.fixed_ms;
    let gain = match is_wide {
        true => range(diagnosis, prize.low_ms, prize.high_ms),
        false if prize.speedup < SAID_IN_PERCENT => {
            format!("about {} ({:.0}% faster)", milliseconds(prize.fixed_ms), 100.0 * (prize.speedup - 1.0))
        }
        false => format!("about {} ({:.1}x)", milliseconds(prize.fixed_ms), prize.speedup),
    };
    format!("{}: {} → {gain} by {doing}.", diagnosis.verdict.title(), step_time::now(diagnosis))
}

/// `2.77–5.48 ms (1.8–3.5x)`; without factors where two ranges make none, or one is too small to be a factor.
fn range(diagnosis: &Diagnosis, low_ms: f64, high_ms: f64) -> String {
    let (step, range) = (diagnosis.window.baseline_ms, milliseconds_range(low_ms, high_ms));
    match step_time::is_vague(diagnosis) || low_ms <= 0.0 || step < SAID_IN_PERCENT * low_ms {
        true => range,
        false => format!("{range} ({:.1}–{:.1}x)", step / high_ms, step / low_ms),
    }
}

/// `fix saves ~170 ms/step (274 → 104 ms)`.
fn applied(by: &str, fix: &AppliedFix, diagnosis: &Diagnosis) -> String {
    let change = milliseconds_change(fix.before_ms, fix.after_ms);
    let saves = milliseconds(fix.before_ms - fix.after_ms);
    format!("{by} saves ~{saves}{} ({change})", diagnosis.unit().per())
}

/// The fixes of the prize, in the order in which they are made.
fn fixes(diagnosis: &Diagnosis) -> impl Iterator<Item = &AppliedFix> {
    diagnosis.prize.iter().flat_map(|prize| &prize.fixes)
}

/// The fix of the prize that is for this finding.
fn fix_of<'d>(finding: &Finding, diagnosis: &'d Diagnosis) -> Option<&'d AppliedFix> {
    fixes(diagnosis).find(|fix| fix.finding == finding.id)
}

/// The fix of another finding that fixes this one too.
fn covering<'d>(finding: &Finding, diagnosis: &'d Diagnosis) -> Option<&'d AppliedFix> {
    fixes(diagnosis).find(|fix| fix.together_with.contains(&finding.id))
}

/// Whether the fix of another finding fixes this one too.
pub(crate) fn is_covered(finding: &Finding, diagnosis: &Diagnosis) -> bool {
    covering(finding, diagnosis).is_some()
}

/// Whether the headline promises to fix this finding.
pub(crate) fn is_promised(finding: &Finding, diagnosis: &Diagnosis) -> bool {
    let fix = fix_of(finding, diagnosis);
    promised(diagnosis).zip(fix).is_some_and(|(prize, fix)| is_worth_saying(fix, prize))
}

/// The prize, if the finding that saves most is part of it; else what that finding saves.
pub(crate) fn gain(diagnosis: &Diagnosis) -> Option<String> {
    let first = diagnosis.findings.first()?;
    if let Some(prize) = promised(diagnosis) {
        return Some(promise(diagnosis, prize));
    }
    if diagnosis.verdict.bound == Bound::Unknown {
        return None;
    }
    let (step, saves) = (diagnosis.window.baseline_ms, first.saves_ms_per_step);
    let at_best = saves.low < 0.01 * saves.high;
    // Faster kernels may be possible: that is no promise about the bus.
    if saves.high < 0.05 * step || saves.high >= step || at_best && diagnosis.verdict.bound == Bound::Compute
    {
        return None;
    }
    let after = |saved: f64| step - saved;
    let after = match at_best {
        true => format!("down to {}", milliseconds(after(saves.high))),
        false => range(diagnosis, after(saves.high), after(saves.low)),
    };
    let (title, now) = (diagnosis.verdict.title(), step_time::now(diagnosis));
    Some(format!("{title}: {now} → {after} by {}.", first.doing))
}

/// The first lines of the answer in every format: what can be gained, then what bounds the run.
pub(crate) fn headline(diagnosis: &Diagnosis) -> String {
    match gain(diagnosis) {
        Some(prize) => format!("{prize} {}", diagnosis.verdict.because),
        None => diagnosis.verdict.statement.clone(),
    }
}

/// `fix saves ~170 ms/step (274 → 104 ms)` where the fix of a finding is part of the prize, with the findings that the same
/// changes fix; `None` where it is not.
fn in_prize(finding: &Finding, diagnosis: &Diagnosis, by: &str) -> Option<String> {
    let place =
        |id: FindingId| diagnosis.findings.iter().position(|finding| finding.id == id).map(|at| at + 1);
    if let Some(fix) = covering(finding, diagnosis) {
        return Some(format!("covered by the fix of finding {}", place(fix.finding)?));
    }
    let fix = fix_of(finding, diagnosis)?;
    let others: Vec<String> =
        fix.together_with.iter().filter_map(|id| place(*id)).map(|at| at.to_string()).collect();
    let with = match others.as_slice() {
        [] => String::new(),
        [one] => format!(", finding {one} included"),
        [first @ .., last] => format!(", findings {} and {last} included", first.join(", ")),
    };
    Some(applied(by, fix, diagnosis) + &with)
}

/// What a finding saves, and by what: `using CUDA graphs saves ~3.16 ms/step (9.73 → 6.56 ms)`.
pub(crate) fn saving_by(finding: &Finding, diagnosis: &Diagnosis) -> String {
    saving_of(finding, diagnosis, &finding.doing)
}

/// `fix saves 144–171 ms/step`.
pub(crate) fn saving(finding: &Finding, diagnosis: &Diagnosis) -> String {
    saving_of(finding, diagnosis, "fix")
}

/// What a finding saves, where there is room for everything: for one of the prize also its range, `162–178 ms alone`.
pub(crate) fn saving_and_range(finding: &Finding, diagnosis: &Diagnosis) -> String {
    let saving = saving(finding, diagnosis);
    match range_alone(finding, diagnosis) {
        Some(range) => format!("{saving}; {range}"),
        None => saving,
    }
}

fn range_alone(finding: &Finding, diagnosis: &Diagnosis) -> Option<String> {
    let fix = fix_of(finding, diagnosis)?;
    let saves = finding.saves_ms_per_step;
    let is_known = fix.together_with.is_empty() && finding.saving_known && saves.low >= 0.01 * saves.high;
    is_known.then(|| format!("{} alone", milliseconds_range(saves.low, saves.high)))
}

/// A fix that pays once the findings are fixed.
pub(crate) struct FollowUp {
    /// `prefetching on a second stream saves ~810 µs/step (3.42 → 2.61 ms)`.
    pub(crate) text: String,
    id: FindingId,
}

impl FollowUp {
    /// With its explanation: `… [explain: serialized_copies]`.
    pub(crate) fn explained(&self) -> String {
        format!("{}  [explain: {}]", self.text, self.id)
    }
}

/// Fixes that pay once the findings are fixed: what they are, and what they gain then.
pub(crate) fn follow_ups(diagnosis: &Diagnosis) -> Vec<FollowUp> {
    let is_found = |fix: &&AppliedFix| diagnosis.findings.iter().any(|finding| finding.id == fix.finding);
    let text =
        |fix: &AppliedFix| FollowUp { text: applied(&fix.doing.join(", "), fix, diagnosis), id: fix.finding };
    fixes(diagnosis).filter(|fix| !is_found(fix)).map(text).collect()
}

/// The command that predicts all fixes of the prize together.
pub(crate) fn predicts_all(diagnosis: &Diagnosis) -> Option<String> {
    let fixes = &diagnosis.prize.as_ref()?.fixes;
    let apply: Vec<&str> = fixes.iter().flat_map(|fix| fix.apply.iter().map(String::as_str)).collect();
    Some(format!("(busbound whatif {} --apply {})", diagnosis.source.path, apply.join(" --apply ")))
}

/// A finding that saves a smaller share of the step is for those who want all of it.
const WORTH_A_LINE: f64 = 0.01;
/// Nor is one that saves fewer milliseconds of a whole trace.
const WORTH_A_LINE_ONCE: f64 = 0.1;

/// Whether the finding saves something, but too little for a line. What the headline promises is worth one.
pub(crate) fn is_small(finding: &Finding, diagnosis: &Diagnosis) -> bool {
    let saves = finding.saves_ms_per_step.high;
    let least = WORTH_A_LINE * diagnosis.window.baseline_ms;
    let once = if diagnosis.unit() == Unit::Trace { WORTH_A_LINE_ONCE } else { 0.0 };
    saves > 0.0
        && finding.saving_known
        && !is_promised(finding, diagnosis)
        && !is_covered(finding, diagnosis)
        && saves < least.max(once)
}

fn saving_of(finding: &Finding, diagnosis: &Diagnosis, by: &str) -> String {
    if let Some(saving) = in_prize(finding, diagnosis, by) {
        return saving;
    }
    let (saves, unit) = (finding.saves_ms_per_step, diagnosis.unit().per());
    if !finding.saving_known {
        return "saving unknown".to_owned();
    }
    if finding.id.is_about_correctness() {
        return "results may be wrong".to_owned();
    }
    if saves.high <= 0.0 {
        let is_first = diagnosis.findings.first().is_some_and(|first| first.id == finding.id);
        let text = match diagnosis.findings.len() {
            _ if is_first || !finding.gains => "no direct saving",
            2 => "saves nothing until finding 1 is fixed",
            _ => "saves nothing until the others are fixed",
        };
        return text.to_owned();
    }
    // It does not add up with the fixes that the headline promises.
    let alone = if promised(diagnosis).is_some() { " alone" } else { "" };
    let saving = match saves.low < 0.01 * saves.high {
        true => format!("up to {}", milliseconds(saves.high)),
        false => milliseconds_range(saves.low, saves.high),
    };
    format!("{by}{alone} saves {saving}{unit}")
}
