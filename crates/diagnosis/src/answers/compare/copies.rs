//! How did the copies change, by direction and host memory? Copies that moved to another memory are one row.

use busbound_trace::Direction;

use super::{Figure, FigureGroup};
use crate::activity::copies::{CopyGroup, combined_gbps};
use crate::answers::diagnosis::Diagnosis;
use crate::figures::CopyFigure;

/// Copies that one row describes: all of one kind, or of the two kinds that they moved from and to.
struct Row {
    name: String,
    kinds: Vec<String>,
}

/// From this share of the bytes on, one kind of memory stands for the copies of a run. The rest is small copies such as a
/// loss that is read back.
const NEARLY_ALL: f64 = 0.9;
/// Bytes per step within this factor are the same copies from another memory.
const SIMILAR: f64 = 1.25;

pub(super) fn figures(runs: &[Diagnosis]) -> Vec<Figure> {
    let mut list = Vec::new();
    for row in rows(runs) {
        for figure in CopyFigure::ALL {
            let values = runs.iter().map(|run| row.value(figure, run)).collect();
            let name = format!("{}: {}", row.name, figure.label());
            let of_row = Figure::new(FigureGroup::Copies, name, figure.unit(), values);
            list.extend(of_row.map(|of_row| Figure { has_moved: row.kinds.len() > 1, ..of_row }));
        }
    }
    list
}

fn rows(runs: &[Diagnosis]) -> Vec<Row> {
    let mut kinds: Vec<(Direction, String)> =
        runs.iter().flat_map(|run| &run.copies).map(|group| (group.direction, group.kind())).collect();
    kinds.sort();
    kinds.dedup();
    let mut list = Vec::new();
    for same_direction in kinds.chunk_by(|a, b| a.0 == b.0) {
        let names: Vec<&String> = same_direction.iter().map(|(_, kind)| kind).collect();
        let moved = moved(&names, runs);
        if let Some((from, to)) = moved {
            // `H2D pinned` -> `pinned`.
            let memory = to.split_once(' ').map_or(to, |(_, memory)| memory);
            list.push(Row {
                name: format!("{from} → {memory}"),
                kinds: vec![from.to_owned(), to.to_owned()],
            });
        }
        let is_moved = |name: &str| moved.is_some_and(|(from, to)| name == from || name == to);
        let others = names.into_iter().filter(|name| !is_moved(name));
        list.extend(others.map(|name| Row { name: name.clone(), kinds: vec![name.clone()] }));
    }
    list
}

/// From which kind of memory to which the copies of one direction moved between the first and the last run.
fn moved<'k>(kinds: &[&'k String], runs: &[Diagnosis]) -> Option<(&'k str, &'k str)> {
    let (first, last) = (runs.first()?, runs.last()?);
    let most = |run: &Diagnosis| {
        kinds.iter().copied().max_by(|a, b| bytes_per_step(run, a).total_cmp(&bytes_per_step(run, b)))
    };
    let (from, to) = (most(first)?, most(last)?);
    let of_both = |run: &Diagnosis| bytes_per_step(run, from) + bytes_per_step(run, to);
    let (before, after) = (of_both(first), of_both(last));
    let is_nearly_all =
        bytes_per_step(first, from) >= NEARLY_ALL * before && bytes_per_step(last, to) >= NEARLY_ALL * after;
    let is_similar = before > 0.0 && after > 0.0 && (before / after).max(after / before) <= SIMILAR;
    (from != to && is_nearly_all && is_similar).then_some((from.as_str(), to.as_str()))
}

fn bytes_per_step(run: &Diagnosis, kind: &str) -> f64 {
    let groups = run.copies.iter().filter(|group| group.kind() == kind);
    groups.map(|group| group.bytes as f64).sum::<f64>() / run.step_count()
}

impl Row {
    fn value(&self, figure: CopyFigure, run: &Diagnosis) -> f64 {
        let groups = || run.copies.iter().filter(|group| self.kinds.contains(&group.kind()));
        let rate = |group: &CopyGroup| (group.bytes as f64, group.gbps.map(|rates| rates.weighted));
        match figure {
            CopyFigure::Rate => combined_gbps(groups().map(rate)).unwrap_or(0.0),
            _ => groups().map(|group| figure.of(group, run.step_count())).sum(),
        }
    }
}
