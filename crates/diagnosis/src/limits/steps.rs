//! Limits of what is known about steps.

use super::Scope;
use crate::quantity::plural;
use crate::steps::window::StepsFound;

pub(super) fn none(scope: &Scope<'_>) -> Option<String> {
    scope.facts.window.steps.is_empty().then(|| match &scope.options.steps {
        Some(wanted) => {
            format!("No annotation matches --steps {wanted}, so figures are for the whole trace.")
        }
        None => {
            "No steps are marked and no period shows in the launches, so figures are for the whole trace."
                .to_owned()
        }
    })
}

pub(super) fn by_period(scope: &Scope<'_>) -> Option<String> {
    let window = &scope.facts.window;
    (window.found == Some(StepsFound::Period)).then(|| {
        format!(
            "No steps are marked: a round is {}, and a step of the program may be several. Name an annotation with --steps.",
            window.pattern.as_deref().unwrap_or_default()
        )
    })
}

/// Above this share of the steps, work that was queued before the first one shifts figures per step.
const MUCH_EARLY_WORK: f64 = 0.05;

pub(super) fn early_work(scope: &Scope<'_>) -> Option<String> {
    let window = &scope.facts.window;
    (window.early_rounds > MUCH_EARLY_WORK * window.steps.len() as f64).then(|| {
        format!(
            "Work of about {:.1} steps had been queued when the first step began and counts too; its copies may have been over before, so \
             that figures a step tend to the kernels. --steps '{}' speaks of whole steps alone.",
            window.early_rounds,
            window.pattern.as_deref().unwrap_or_default().trim_end_matches('*'),
        )
    })
}

pub(super) fn outliers(scope: &Scope<'_>) -> Option<String> {
    let left_out = scope.left_out;
    (left_out.others > 0).then(|| {
        format!(
            "Steps that took clearly longer make up much of the trace; figures are for the {} steps {} to {} without one. --warmup 0 keeps them all.",
            left_out.steady.len(),
            left_out.steady.start,
            left_out.steady.end - 1
        )
    })
}

pub(super) fn warm_up(scope: &Scope<'_>) -> Option<String> {
    (scope.left_out.warm_up > 0 && scope.options.warmup.is_none()).then(|| {
        format!(
            "Left out as warm-up, because longer than 1.5 times what came after: {} at the beginning; --warmup 0 keeps all.",
            plural(scope.left_out.warm_up as u64, "step", "steps")
        )
    })
}
