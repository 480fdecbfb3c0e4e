//! What is unknown about the steps?

use busbound_trace::{Interval, IntervalSet};

use super::Scope;
use crate::analysis::facts::Facts;
use crate::quantity::{milliseconds, plural};
use crate::steps::window::StepsFound;
use crate::verdict::capitalized;

pub(super) fn none(scope: &Scope<'_>) -> Option<String> {
    // Without work on a GPU and without copies, there are no figures.
    let has_figures = !scope.facts.timelines.is_empty() || !scope.cpu_copies.is_empty();
    let is_asked = has_figures || scope.options.steps.is_some();
    (is_asked && scope.facts.window.steps.is_empty()).then(|| match &scope.options.steps {
        Some(wanted) => {
            format!("No annotation matches --steps {wanted}, so figures are for the whole trace.")
        }
        None => {
            "No steps are marked and no iteration is detected in the launches, so figures are for the whole trace."
                .to_owned()
        }
    })
}

pub(super) fn sampled(scope: &Scope<'_>) -> Option<String> {
    part_of_long_trace(scope.facts)
}

/// Which part stands for a long trace without steps.
pub(crate) fn part_of_long_trace(facts: &Facts<'_>) -> Option<String> {
    let replayed = facts.replayed_part()?;
    let part = replayed.part?;
    let (length, from) = (part.length().as_millis(), (part.start - replayed.begin).as_millis());
    Some(format!(
        "The trace is long and has no steps: verdict and predictions are computed from {} of its {}, from {} on, where the \
         GPU's work is most like the whole. Mark steps, or name an annotation with --steps, for figures per step.",
        milliseconds(length),
        milliseconds(length / replayed.share),
        milliseconds(from),
    ))
}

pub(super) fn start_up(scope: &Scope<'_>) -> Option<String> {
    scope.start_up.map(|withheld| format!("{}.", capitalized(&withheld.why)))
}

pub(super) fn by_period(scope: &Scope<'_>) -> Option<String> {
    let window = &scope.facts.window;
    (window.found == Some(StepsFound::Period)).then(|| {
        format!(
            "An iteration (detected) is {}; a step of the program may contain several. --steps names an annotation.",
            window.pattern.as_deref().unwrap_or_default()
        )
    })
}

/// Detected iterations that cover at least this share of the time stand for all of it.
const COVERED: f64 = 0.8;

/// What detected iterations leave out, where that is much: the start of a program, another phase.
pub(super) fn coverage(scope: &Scope<'_>) -> Option<String> {
    let window = &scope.facts.window;
    let covered = window.hull().filter(|_| window.found == Some(StepsFound::Period))?;
    let whole = scope.facts.trace.whole();
    let work = || whole.events().filter(|event| event.kind().is_gpu_work()).map(|event| event.interval());
    let all = work().reduce(Interval::hull)?;
    let ms = |part: Interval| part.length().as_millis();
    if ms(covered) >= COVERED * ms(all) {
        return None;
    }
    let busy = IntervalSet::from_unsorted(work());
    let part = |when: &str, part: Interval| {
        let share = busy.length_within(part).as_millis() / ms(part);
        let is_much = ms(part) >= (1.0 - COVERED) * 0.25 * ms(all);
        is_much.then(|| format!("{when} {} (GPU {:.0}% busy)", milliseconds(ms(part)), 100.0 * share))
    };
    let before = part("before:", Interval::new(all.start, covered.start));
    let after = part("after:", Interval::new(covered.end, all.end));
    let left_out: Vec<String> = before.into_iter().chain(after).collect();
    Some(format!(
        "The figures are for the detected iterations ({}), which cover {} of the {} in which the GPU had work; {}.",
        window.pattern.as_deref().unwrap_or_default(),
        milliseconds(ms(covered)),
        milliseconds(ms(all)),
        left_out.join(", ")
    ))
}

/// Above this share of the steps, work that was queued before the first step distorts per-step figures.
const MUCH_EARLY_WORK: f64 = 0.05;

pub(super) fn early_work(scope: &Scope<'_>) -> Option<String> {
    let window = &scope.facts.window;
    (window.early_steps > MUCH_EARLY_WORK * window.steps.len() as f64).then(|| {
        format!(
            "The recording starts with about {:.1} steps still queued on the GPU. Their kernels are counted, so kernel time per \
             step is too high; --steps '{}' counts only steps that the recording has from start to end.",
            window.early_steps,
            window.pattern.as_deref().unwrap_or_default().trim_end_matches('*'),
        )
    })
}

pub(super) fn outliers(scope: &Scope<'_>) -> Option<String> {
    let left_out = scope.left_out;
    if left_out.apart > 0 {
        return Some(format!(
            "In {}, the program evaluates, saves or loads; they are reported apart. Figures are for the longest stretch without them: {}, {} to {}. --warmup 0 keeps all steps.",
            plural(left_out.apart as u64, "step", "steps"),
            plural(left_out.steady.len() as u64, "step", "steps"),
            left_out.stretch.0,
            left_out.stretch.1
        ));
    }
    (left_out.others > 0).then(|| {
        let unit = scope.facts.unit();
        let why = match left_out.longest {
            Some(_) => String::new(),
            None => format!("Some {unit}s took much longer than the others. "),
        };
        format!(
            "{why}Figures are for the longest stretch without such {unit}s: {}, {} to {}. To use all: --warmup 0.",
            left_out.steady.len(),
            left_out.stretch.0,
            left_out.stretch.1
        )
    })
}

pub(super) fn long_step(scope: &Scope<'_>) -> Option<String> {
    let longest = scope.left_out.longest.as_ref()?;
    Some(format!("{}. No figure includes it.", capitalized(&longest.statement)))
}

pub(super) fn warm_up(scope: &Scope<'_>) -> Option<String> {
    (scope.left_out.warm_up > 0 && scope.options.warmup.is_none()).then(|| {
        format!(
            "Excluded as warm-up (more than 1.5x as long as later steps): {} at the start. --warmup 0 keeps all steps.",
            plural(scope.left_out.warm_up as u64, "step", "steps")
        )
    })
}
