//! Which part of the trace do the figures cover? Everything after the warm-up; without outlier steps if those
//! take much of the time.

use std::ops::Range;

use busbound_trace::Trace;

use crate::options::Options;
use crate::steps::basis::Basis;
use crate::steps::phases::{self, FoundPhase};
use crate::steps::window::{OutlierStep, StepTimes, StepsFound, Window};

/// Which steps the figures leave out.
#[derive(Debug)]
pub(crate) struct LeftOut {
    pub(crate) warm_up: usize,
    /// Steps after the warm-up that are left out.
    pub(crate) others: usize,
    /// Outlier steps after the warm-up, including those left out; only the longest if there are many.
    pub(crate) outliers: Vec<OutlierStep>,
    pub(crate) outlier_count: usize,
    /// The longest step that is left out, if it alone takes much of the time.
    pub(crate) longest: Option<OutlierStep>,
    /// The indices of all outlier steps, in order.
    pub(crate) outlier_steps: Vec<usize>,
    /// All steps after the warm-up, if some of them are left out.
    pub(crate) with_outliers: Option<StepTimes>,
    /// The steps that the figures cover.
    pub(crate) steady: Range<usize>,
    /// The numbers of the first and the last of them, as the program counts.
    pub(crate) stretch: (u64, u64),
    /// What the run does apart from its steps.
    pub(crate) phases: Vec<FoundPhase>,
    /// Steps after the warm-up that are left out because they evaluate, save or load.
    pub(crate) apart: usize,
}

/// Share of the time from which on a single step that is left out is named before the figures.
const LONG: f64 = 0.2;
/// Most outliers listed.
const LISTED: usize = 20;

/// Detected iterations whose longest stretch has less than this share of the GPU's work say nothing about the run.
const COVERS: f64 = 0.5;

/// The part of the trace that the figures cover; `None` if that is the whole trace. Detected iterations that cover little of it
/// are dropped: then an optimizer may mark steps, or the whole trace is analyzed.
pub(crate) fn steady(basis: &mut Basis<'_>, options: &Options) -> (Option<Trace>, LeftOut) {
    let (part, left_out) = stretch(basis, options);
    let is_detected = basis.window.found == Some(StepsFound::Period) && options.warmup.is_none();
    if !is_detected || basis.window.share_of_work(&left_out.steady, basis.trace) >= COVERS {
        return (part, left_out);
    }
    basis.window = Window::by_optimizer(basis.trace, &basis.host, options);
    stretch(basis, options)
}

fn stretch(basis: &Basis<'_>, options: &Options) -> (Option<Trace>, LeftOut) {
    let window = &basis.window;
    let all = window.steps.len();
    let warm_up = options.warmup.map_or_else(|| window.warm_up(), |given| given.min(all.saturating_sub(1)));
    let mut outliers = window.outliers(basis.trace, &basis.host);
    outliers.retain(|outlier| outlier.index >= warm_up);
    // If the user gives the warm-up, all steps after it are kept.
    let phases = phases::find(basis);
    let apart = phases::steps_apart(&phases, window);
    let steady =
        if options.warmup.is_some() { warm_up..all } else { window.steady(warm_up, &outliers, &apart) };
    let outlier_count = outliers.len();
    let outlier_steps = outliers.iter().map(|outlier| outlier.index).collect();
    outliers.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    outliers.truncate(LISTED);
    outliers.sort_by_key(|outlier| outlier.index);
    let is_part = (steady.len() < all || window.is_part_of_the_trace()) && all > 0;
    let part = if is_part { window.only(steady.clone(), basis.trace) } else { None };
    let number = |step: usize| window.numbers.get(step).copied().unwrap_or(step as u64);
    let mut left_out = LeftOut {
        stretch: (number(steady.start), number(steady.end.saturating_sub(1))),
        warm_up: 0,
        others: 0,
        outliers,
        outlier_count,
        outlier_steps,
        longest: None,
        with_outliers: None,
        apart: 0,
        phases,
        steady,
    };
    if part.is_some() {
        left_out.warm_up = warm_up;
        let steady = &left_out.steady;
        left_out.apart = apart.iter().filter(|step| **step >= warm_up && !steady.contains(step)).count();
        left_out.others = all - left_out.steady.len() - warm_up;
        if left_out.others > 0 {
            left_out.with_outliers = window.times_from(warm_up);
            let all = window.steps[warm_up..].iter().map(|step| step.length().as_millis()).sum::<f64>();
            let is_left_out = |outlier: &&OutlierStep| !left_out.steady.contains(&outlier.index);
            let longest = left_out.outliers.iter().filter(is_left_out).max_by(|a, b| a.ms.total_cmp(&b.ms));
            left_out.longest = longest.filter(|longest| longest.ms >= LONG * all).cloned();
        }
    }
    (part, left_out)
}
