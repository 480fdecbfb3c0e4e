//! Which options do not fit the trace? Figures are then for something else than was asked for.

use crate::analysis::facts::Facts;
use crate::options::{BlockChoice, Options};
use crate::steps::steady::LeftOut;
use crate::steps::window::StepsFound;

/// An option that does not fit the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// No annotation matches [`Options::steps`].
    Steps,
    /// The trace has too few steps for [`Options::warmup`].
    Warmup { steps: usize, dropped: usize },
    /// No annotation matches [`Options::blocks`].
    Blocks,
    /// Copies are faster than the machine's link.
    Link,
}

/// In the order of the warnings. `has_blocks` says whether any time is attributed to the chosen blocks.
pub(crate) fn misfits(
    facts: &Facts<'_>,
    options: &Options,
    left_out: &LeftOut,
    has_blocks: impl FnOnce() -> bool,
) -> Vec<Misfit> {
    let window = &facts.window;
    let mut all = Vec::new();
    if options.steps.is_some() && (window.steps.is_empty() || window.found == Some(StepsFound::Period)) {
        all.push(Misfit::Steps);
    }
    if let (Some(warmup), Some(times)) = (options.warmup, window.times())
        && left_out.warm_up != warmup
    {
        let dropped = left_out.warm_up;
        all.push(Misfit::Warmup { steps: times.count + dropped + left_out.others, dropped });
    }
    if matches!(options.blocks, BlockChoice::Matching(_)) && !has_blocks() {
        all.push(Misfit::Blocks);
    }
    if facts.is_faster_than_link() {
        all.push(Misfit::Link);
    }
    all
}
