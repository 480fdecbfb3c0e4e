//! Which kernels became faster or slower, appeared or went away?

use std::collections::BTreeMap;

use super::{Figure, FigureGroup, step_ms};
use crate::answers::diagnosis::Diagnosis;

/// Kernels that are listed by name, largest difference first.
const LISTED: usize = 8;
/// Differences below this share of the step are not worth a row.
const SMALL: f64 = 0.005;

/// Time per step by kernel. The other kernels are one row, so that all rows sum to the time of all kernels.
pub(super) fn figures(runs: &[Diagnosis]) -> Vec<Figure> {
    let mut by_name: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (i, run) in runs.iter().enumerate() {
        for kernel in &run.kernel_totals {
            by_name.entry(&kernel.name).or_insert_with(|| vec![0.0; runs.len()])[i] += kernel.ms_per_step;
        }
    }
    let named =
        |(name, values): (&str, Vec<f64>)| Figure::of_time(FigureGroup::Kernel, name.to_owned(), values);
    let mut kernels: Vec<Figure> = by_name.into_iter().filter_map(named).collect();
    kernels.sort_by(|a, b| b.delta.abs().total_cmp(&a.delta.abs()));
    let step = runs.iter().map(step_ms).fold(0.0, f64::max);
    let is_large = |kernel: &&Figure| kernel.delta.abs() >= SMALL * step;
    let large = kernels.iter().take(LISTED).take_while(is_large).count();
    let others = kernels.split_off(large);
    if let [only] = others.as_slice() {
        kernels.push(only.clone());
    } else {
        let sum = |run: usize| others.iter().map(|figure| figure.values[run]).sum();
        let name = match kernels.len() {
            0 => format!("all {} kernels", others.len()),
            _ => format!("{} other kernels", others.len()),
        };
        kernels.extend(Figure::of_time(FigureGroup::Kernel, name, (0..runs.len()).map(sum).collect()));
    }
    kernels
}
