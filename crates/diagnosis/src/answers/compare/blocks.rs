//! Which blocks that the program annotates became faster or slower?

use std::collections::BTreeMap;

use super::{Figure, FigureGroup, step_ms};
use crate::analysis::attribution::BlockTime;
use crate::answers::diagnosis::Diagnosis;

/// Blocks that are listed, largest difference first.
const LISTED: usize = 8;
/// Differences below this share of the step are not worth a row.
const SMALL: f64 = 0.01;

/// GPU and host time of a block, in milliseconds per step.
#[derive(Clone, Copy, Default)]
struct Times {
    gpu: f64,
    host: f64,
}

/// Blocks by their path in the tree.
type ByPath = BTreeMap<String, Times>;

const OUTSIDE: &str = "outside any block";

pub(super) fn figures(runs: &[Diagnosis]) -> Vec<Figure> {
    let Some(by_run) = by_run(runs).filter(|by_run| has_common(by_run)) else { return Vec::new() };
    let mut paths: Vec<&String> = by_run.iter().flat_map(BTreeMap::keys).collect();
    paths.sort();
    paths.dedup();
    let values = |path: &String, of: fn(&Times) -> f64| -> Vec<f64> {
        by_run.iter().map(|blocks| blocks.get(path).map_or(0.0, of)).collect()
    };
    let step = runs.iter().map(step_ms).fold(0.0, f64::max);
    let mut changed: Vec<(f64, Vec<Figure>)> = Vec::new();
    for path in paths {
        let one =
            |what: &str, of| Figure::of_time(FigureGroup::Block, format!("{path}: {what}"), values(path, of));
        let both = [one("GPU", |times| times.gpu), one("host", |times| times.host)];
        let figures: Vec<Figure> =
            both.into_iter().flatten().filter(|figure| figure.delta.abs() >= SMALL * step).collect();
        let most = figures.iter().map(|figure| figure.delta.abs()).fold(0.0, f64::max);
        changed.push((most, figures));
    }
    changed.sort_by(|a, b| b.0.total_cmp(&a.0));
    changed.into_iter().take(LISTED).flat_map(|(_, figures)| figures).collect()
}

/// Why blocks are not compared although every run has some.
pub(super) fn limitation(runs: &[Diagnosis]) -> Option<String> {
    let by_run = by_run(runs)?;
    (!has_common(&by_run)).then(|| "The runs have no annotated block in common.".to_owned())
}

/// `None` unless every run has blocks.
fn by_run(runs: &[Diagnosis]) -> Option<Vec<ByPath>> {
    runs.iter().map(blocks_of).collect()
}

fn blocks_of(run: &Diagnosis) -> Option<ByPath> {
    let attribution = run.attribution.as_ref()?;
    let (mut blocks, mut path): (ByPath, Vec<&str>) = (ByPath::new(), Vec::new());
    let mut add = |name: String, block: &BlockTime| {
        let times = blocks.entry(name).or_default();
        times.gpu += block.gpu_ms;
        times.host += block.host_ms;
    };
    for block in &attribution.blocks {
        path.truncate(block.depth);
        path.push(&block.name);
        add(path.join(" / "), block);
    }
    add(OUTSIDE.to_owned(), &attribution.outside);
    Some(blocks)
}

fn has_common(by_run: &[ByPath]) -> bool {
    let (Some(first), Some(last)) = (by_run.first(), by_run.last()) else { return false };
    first.keys().any(|path| path != OUTSIDE && last.contains_key(path))
}
