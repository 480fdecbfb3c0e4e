//! The answer in twenty lines: what bounds the run, what it would gain, where its time goes, what to change, what next.

use anstyle::Style;
use busbound_diagnosis::{Diagnosis, Finding, Limitation, LimitationId, Severity};

use super::bar::bar;
use super::wrap::{Lead, hanging_with_lead};
use super::{FAINT, STRONG, capitalized, hanging, line};
use crate::text::{diagnosis as text, prize};

/// Lines that the answer takes at most before the empty one at its end.
const LINES: usize = 19;
/// Notes on the trace that change how the answer is read.
const NOTES: usize = 2;

/// Limitations of the file that change what every figure is worth: they come before the figures.
const FIRST: &[LimitationId] = &[
    LimitationId::Lost,
    LimitationId::Duplicates,
    LimitationId::CallRecords,
    LimitationId::GpuTail,
    LimitationId::LostRows,
    LimitationId::NoEnd,
    LimitationId::LongStepLeftOut,
    LimitationId::HostMemory,
];

/// Limitations without which the answer would mislead; the others are for those who want all of it.
const MATTERS: &[LimitationId] = &[
    LimitationId::Events,
    LimitationId::GraphWork,
    LimitationId::KernelRecords,
    LimitationId::CpuOnly,
    LimitationId::LinkWrong,
    LimitationId::Confidential,
    LimitationId::SharedLink,
    LimitationId::Sampled,
    LimitationId::Steps,
    LimitationId::StepsByPeriod,
    LimitationId::Coverage,
    LimitationId::OutliersLeftOut,
    LimitationId::NoKernels,
    LimitationId::EarlyWork,
    LimitationId::ProfilerCost,
    LimitationId::UnlikeGpus,
    LimitationId::Stages,
    LimitationId::Blocks,
];

/// One diagnosis, `width` columns wide.
pub(super) fn answer(out: &mut String, diagnosis: &Diagnosis, width: u16) {
    let head = |show: Show| {
        let mut head = String::new();
        headline(&mut head, diagnosis, width);
        if notes(&mut head, diagnosis, (FIRST, show.first_notes), width) {
            head.push('\n');
        }
        bar(&mut head, diagnosis, width, show.free);
        head
    };
    let tail = |show: Show| {
        let mut tail = String::new();
        warnings(&mut tail, diagnosis, width);
        if show.notes > 0 {
            notes(&mut tail, diagnosis, (MATTERS, show.notes), width);
            phases(&mut tail, diagnosis, width);
        }
        next(&mut tail, diagnosis, width);
        tail
    };
    let room = |head: &str, tail: &str| LINES.saturating_sub(head.lines().count() + tail.lines().count());
    let made = Show::ALL.map(|show| (head(show), tail(show), show));
    let [.., least] = &made;
    let fits = |(head, tail, show): &&(String, String, Show)| {
        room(head, tail) >= lines_of_first(diagnosis, width, *show)
    };
    let (head, tail, show) = made.iter().find(fits).unwrap_or(least);
    out.push_str(head);
    findings(out, diagnosis, width, Room { lines: room(head, tail), show: *show });
    out.push_str(tail);
    out.push('\n');
}

/// What the answer shows besides the verdict, the bar and the fix of the first finding, which are never left out.
#[derive(Clone, Copy)]
struct Show {
    /// What a step would take without each resource.
    free: bool,
    /// Notes that come after the findings.
    notes: usize,
    /// Notes that come before the figures.
    first_notes: usize,
    /// The least that is said of the first finding.
    first: Form,
}

impl Show {
    /// From most to least: what to change is worth more than what would bound the run next, and more than notes that -v has
    /// too.
    const ALL: [Self; 6] = [
        Self { free: true, notes: NOTES, first_notes: NOTES, first: Form::Fix },
        Self { free: false, notes: NOTES, first_notes: NOTES, first: Form::Fix },
        Self { free: false, notes: 1, first_notes: NOTES, first: Form::Fix },
        Self { free: false, notes: 0, first_notes: NOTES, first: Form::Fix },
        Self { free: false, notes: 0, first_notes: NOTES, first: Form::Brief },
        Self { free: false, notes: 0, first_notes: 1, first: Form::Brief },
    ];
}

/// Lines for the findings, and what of them is shown.
#[derive(Clone, Copy)]
struct Room {
    lines: usize,
    show: Show,
}

/// Lines of the first finding and what follows its fix, of what says that there are more, and an empty one.
fn lines_of_first(diagnosis: &Diagnosis, width: u16, show: Show) -> usize {
    let Some(first) = diagnosis.findings.first() else { return 0 };
    let reserved = if diagnosis.findings.len() > 1 { 2 } else { 1 };
    let then = short_follow_ups(diagnosis, width);
    let promised = lines_of_promised_after(0, diagnosis, width, Form::Short);
    entry(0, first, diagnosis, width, show.first).lines().count() + then.lines().count() + promised + reserved
}

/// Lines of the findings after this place in the list that the headline promises to fix: they are never left out.
fn lines_of_promised_after(i: usize, diagnosis: &Diagnosis, width: u16, form: Form) -> usize {
    let is_promised = |finding: &Finding| prize::is_promised(finding, diagnosis);
    lines_after(i, diagnosis, width, |finding| is_promised(finding).then_some(form))
}

/// Lines of the findings after this place in the list, in these forms.
fn lines_after(
    i: usize,
    diagnosis: &Diagnosis,
    width: u16,
    form: impl Fn(&Finding) -> Option<Form>,
) -> usize {
    let rest = diagnosis.findings.iter().enumerate().skip(i + 1);
    let lines = |(at, finding): (usize, &Finding)| {
        form(finding).map(|form| entry(at, finding, diagnosis, width, form).lines().count())
    };
    rest.filter_map(lines).sum()
}

/// What bounds the run, and the prize.
fn headline(out: &mut String, diagnosis: &Diagnosis, width: u16) {
    let Some(prize) = prize::gain(diagnosis) else {
        return super::headline(out, &diagnosis.verdict.statement, width);
    };
    let mut first = String::new();
    hanging(&mut first, "", &prize, width);
    line(out, &format!("{STRONG}{}{STRONG:#}", first.trim_end()));
    hanging(out, "", &diagnosis.verdict.because, width);
    out.push('\n');
}

/// As many findings as there is room for; the first with its evidence.
fn findings(out: &mut String, diagnosis: &Diagnosis, width: u16, room: Room) {
    if let Some(sentence) = text::nothing_to_fix(diagnosis) {
        hanging(out, "  ", sentence, width);
        out.push('\n');
        return;
    }
    let more = |left: usize, which: &str| {
        let findings = if left == 1 { "finding" } else { "findings" };
        format!("  {FAINT}and {left} {which} {findings} (-v){FAINT:#}")
    };
    if let Some(sentence) = text::nothing_worth_fixing(diagnosis) {
        hanging(out, "  ", sentence, width);
        line(out, &more(diagnosis.findings.len(), "small"));
        out.push('\n');
        return;
    }
    let mut shown = String::new();
    let mut left = diagnosis.findings.len();
    let then = short_follow_ups(diagnosis, width);
    let mut is_cut = false;
    for (i, finding) in diagnosis.findings.iter().enumerate() {
        // A finding may refer to the one before it.
        if is_cut && !prize::is_promised(finding, diagnosis) {
            continue;
        }
        // One line says that there are more, and one stays empty.
        let reserved = if left > 1 { 2 } else { 1 } + then.lines().count() + shown.lines().count();
        let text = |form: Form| entry(i, finding, diagnosis, width, form);
        let fitting = |others: usize| {
            let fits = |text: &String| text.lines().count() + others + reserved <= room.lines;
            forms_of(i, finding, diagnosis).iter().map(|form| text(*form)).find(fits)
        };
        // What to change about the other promised findings, and that there are others, is worth more than the evidence for
        // this one.
        let all = |promised: Form| {
            lines_after(i, diagnosis, width, |other| match prize::is_promised(other, diagnosis) {
                true => Some(promised),
                false => forms_of(i + 1, other, diagnosis).last().copied(),
            })
        };
        let some = lines_of_promised_after(i, diagnosis, width, Form::Short);
        let found = fitting(all(Form::Brief)).or_else(|| fitting(all(Form::Short)));
        let Some(text) = found.or_else(|| fitting(some)).or_else(|| {
            // Without what to change, the rest is worth nothing.
            match i {
                0 => Some(text(room.show.first)),
                _ => prize::is_promised(finding, diagnosis).then(|| text(Form::Short)),
            }
        }) else {
            is_cut = true;
            continue;
        };
        shown.push_str(&text);
        left -= 1;
    }
    out.push_str(&shown);
    out.push_str(&then);
    if left > 0 {
        line(out, &more(left, "more"));
    }
    if !shown.is_empty() {
        out.push('\n');
    }
}

/// What may be said of a finding, from most to least. A fix that saves nothing by itself, or that
/// another finding's fix covers, is for those who want all of it.
fn forms_of(i: usize, finding: &Finding, diagnosis: &Diagnosis) -> &'static [Form] {
    let pays = finding.saves_ms_per_step.high > 0.0 && !prize::is_covered(finding, diagnosis);
    match (i, pays) {
        (0, _) => &[Form::Whole, Form::Fix, Form::Brief],
        _ if prize::is_small(finding, diagnosis) => &[],
        (_, true) => &[Form::Whole, Form::Fix, Form::Brief, Form::Title, Form::Short],
        (_, false) => &[Form::Short],
    }
}

/// Fixes that pay after those of the findings.
fn short_follow_ups(diagnosis: &Diagnosis, width: u16) -> String {
    let mut out = String::new();
    for fix in prize::follow_ups(diagnosis) {
        let entry = |text: &str| {
            let mut entry = String::new();
            hanging(&mut entry, "  then ", text, width);
            entry
        };
        let (brief, whole) = (entry(&fix.text), entry(&fix.explained()));
        // The id is not worth a line of its own.
        let is_cut = brief.lines().count() < whole.lines().count();
        out.push_str(if is_cut { &brief } else { &whole });
    }
    out
}

/// Fixes that pay after those of the findings, with how to predict them.
pub(super) fn follow_ups(diagnosis: &Diagnosis, width: u16) -> String {
    let mut out = short_follow_ups(diagnosis, width);
    if let Some(command) = prize::predicts_all(diagnosis).filter(|_| !out.is_empty()) {
        hanging(&mut out, "       ", &command, width);
    }
    out
}

/// How much is said of a finding, from least to most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    Short,
    /// With what to do, in a few words.
    Title,
    /// The first sentence of the fix.
    Brief,
    Fix,
    Whole,
    /// With its severity, and when the fix is worth it.
    Everything,
}

/// The finding with this place in the list.
pub(super) fn entry(i: usize, finding: &Finding, diagnosis: &Diagnosis, width: u16, form: Form) -> String {
    let mut out = String::new();
    let mut rest = match form {
        // What to change is in the title where the fix is not shown.
        Form::Title => format!(": {}  ", prize::saving_by(finding, diagnosis)),
        Form::Everything => format!(": {}  ", prize::saving_and_range(finding, diagnosis)),
        _ => format!(": {}  ", prize::saving(finding, diagnosis)),
    };
    let mut style = STRONG;
    if form == Form::Everything {
        rest.push_str(&format!("[severity: {}]  ", text::severity(finding.severity)));
        // The severity decides what stands out among many.
        style = if finding.severity == Severity::High { STRONG } else { Style::new() };
    }
    let title = |rest: &str| {
        let mut title = String::new();
        let lead = Lead { text: &finding.title, style };
        hanging_with_lead(&mut title, &format!("  {:<2} ", i + 1), &lead, rest, width);
        title
    };
    let (brief, whole) = (title(rest.trim_end()), title(&format!("{rest}[explain: {}]", finding.id)));
    // The last line has the id of the first. Others are not worth a line of their own where there is no room for the rest.
    let is_longer = form <= Form::Brief && brief.lines().count() < whole.lines().count();
    let is_cut = is_longer || i == 0 && form < Form::Everything;
    out.push_str(if is_cut { &brief } else { &whole });
    if form >= Form::Whole {
        hanging(&mut out, "     ", &finding.seen, width);
    }
    if form >= Form::Brief {
        let fix = if form == Form::Brief { first_sentence(&finding.fix) } else { &finding.fix };
        hanging(&mut out, "     Fix: ", fix, width);
    }
    if form == Form::Everything {
        hanging(&mut out, "     ", &format!("Cost: {}", text::cost(finding)), width);
        hanging(&mut out, "     ", &format!("Worth it when: {}", finding.precondition), width);
    }
    out
}

pub(super) fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

/// Findings about wrong results: whatever else there is no room for. The first finding is always shown.
fn warnings(out: &mut String, diagnosis: &Diagnosis, width: u16) {
    for finding in diagnosis.findings.iter().skip(1).filter(|finding| finding.id.is_about_correctness()) {
        let text = format!("{}: {}", finding.title, prize::saving(finding, diagnosis));
        hanging(out, "  warning: ", &format!("{text}  [explain: {}]", finding.id), width);
    }
}

/// Phases from this share of the trace on are worth a note.
const LONG_PHASE: f64 = 0.2;

/// What takes much of the run apart from its steps.
fn phases(out: &mut String, diagnosis: &Diagnosis, width: u16) {
    for phase in diagnosis.phases.iter().filter(|phase| phase.share >= LONG_PHASE).take(NOTES) {
        let text = capitalized(first_sentence(&phase.statement));
        hanging(out, "  note: ", &format!("{}  [explain: phases]", text.trim_end_matches('.')), width);
    }
}

/// What changes how the answer is read. Returns whether there is any.
fn notes(
    out: &mut String,
    diagnosis: &Diagnosis,
    (which, most): (&[LimitationId], usize),
    width: u16,
) -> bool {
    // The verdict says why it is withheld.
    let is_said = |one: &Limitation| diagnosis.verdict.withheld == Some(one.id);
    let important = diagnosis.limitations.iter().filter(|one| which.contains(&one.id) && !is_said(one));
    let mut shown: Vec<&Limitation> = Vec::new();
    for limitation in important {
        // A damaged file may be damaged in two ways: one of them is enough.
        if shown.len() < most && shown.iter().all(|one| one.id != limitation.id) {
            shown.push(limitation);
        }
    }
    for limitation in &shown {
        hanging(out, "  note: ", &capitalized(&limitation.text), width);
    }
    !shown.is_empty()
}

/// What to do with the answer.
fn next(out: &mut String, diagnosis: &Diagnosis, width: u16) {
    let mut steps = vec!["--open (timeline)".to_owned(), "-v (details)".to_owned()];
    let verdict = &diagnosis.verdict;
    // Findings that only -v shows explain nothing of this answer.
    let are_shown =
        text::nothing_to_fix(diagnosis).is_none() && text::nothing_worth_fixing(diagnosis).is_none();
    let first = diagnosis.findings.first().filter(|_| are_shown);
    steps.push(match (verdict.withheld, first) {
        (Some(why), _) => format!("busbound explain {why}"),
        (None, Some(first)) => format!("busbound explain {}", first.id),
        (None, None) => format!("busbound explain {}", verdict.bound.id()),
    });
    let mut text = String::new();
    hanging(&mut text, "  next: ", &steps.join(" · "), width);
    line(out, &format!("{FAINT}{}{FAINT:#}", text.trim_end()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brief_fix_is_its_first_sentence() {
        assert_eq!(first_sentence("Pin 1.5 GB once. Reuse it."), "Pin 1.5 GB once.");
        assert_eq!(first_sentence("Pin it."), "Pin it.");
    }
}
