//! Which part of the trace do the figures speak of? Without warm-up, and where steps that took clearly
//! longer make up much of it, without those.

use std::ops::Range;

use busbound_trace::Trace;

use crate::options::Options;
use crate::steps::basis::Basis;
use crate::steps::window::{OutlierStep, StepTimes};

/// What is left out, and what there was.
#[derive(Debug)]
pub(crate) struct LeftOut {
    pub(crate) warm_up: usize,
    /// Steps after the warm-up.
    pub(crate) others: usize,
    /// Steps after the warm-up that took longer, also those left out; of many, the longest.
    pub(crate) outliers: Vec<OutlierStep>,
    pub(crate) outlier_count: usize,
    /// Which steps they are, all of them, in order.
    pub(crate) outlier_steps: Vec<usize>,
    /// All steps after the warm-up, where others are left out.
    pub(crate) with_outliers: Option<StepTimes>,
    /// The steps that are spoken of.
    pub(crate) steady: Range<usize>,
}

/// Outliers told.
const TOLD: usize = 20;

/// The part of the trace that counts, where that is not all of it.
pub(crate) fn steady(basis: &Basis<'_>, options: &Options) -> (Option<Trace>, LeftOut) {
    let window = &basis.window;
    let all = window.steps.len();
    let warm_up = options.warmup.map_or_else(|| window.warm_up(), |given| given.min(all.saturating_sub(1)));
    let mut outliers = window.outliers(basis.trace, &basis.host);
    outliers.retain(|outlier| outlier.index >= warm_up);
    // Who says how long the warm-up is gets all that comes after it.
    let steady = if options.warmup.is_some() { warm_up..all } else { window.steady(warm_up, &outliers) };
    let outlier_count = outliers.len();
    let outlier_steps = outliers.iter().map(|outlier| outlier.index).collect();
    outliers.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    outliers.truncate(TOLD);
    outliers.sort_by_key(|outlier| outlier.index);
    let is_part = (steady.len() < all || window.is_part_of_the_trace()) && all > 0;
    let part = if is_part { window.only(steady.clone(), basis.trace) } else { None };
    let mut left_out = LeftOut {
        warm_up: 0,
        others: 0,
        outliers,
        outlier_count,
        outlier_steps,
        with_outliers: None,
        steady,
    };
    if part.is_some() {
        left_out.warm_up = warm_up;
        left_out.others = all - left_out.steady.len() - warm_up;
        if left_out.others > 0 {
            left_out.with_outliers = window.times_from(warm_up);
        }
    }
    (part, left_out)
}
