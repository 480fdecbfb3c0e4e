//! Which figures does a comparison show, and in which order?

use super::step_ms;
use super::{Figure, FigureGroup, blocks, copies, host_copies, kernels, parts};
use crate::answers::diagnosis::Diagnosis;
use crate::figures::{FigureId, FigureUnit};

const COPY_FIGURES: [FigureId; 2] = [FigureId::CopyMs, FigureId::CopyComputeMs];
/// Of runs without GPU events.
const HOST_FIGURES: [FigureId; 9] = [
    FigureId::CpuCopyMs,
    FigureId::CpuCopies,
    FigureId::CpuCopyMb,
    FigureId::CpuCopyGbps,
    FigureId::AsyncCopies,
    FigureId::AsyncCopyMb,
    FigureId::AsyncCopyLaunchUs,
    FigureId::CpuCollectives,
    FigureId::CpuCollectiveMs,
];
const COMPILED_FIGURES: [FigureId; 4] =
    [FigureId::CompiledRegions, FigureId::GraphBreaks, FigureId::Recompilations, FigureId::CompileMs];
const OTHER_FIGURES: [FigureId; 11] = [
    FigureId::StepUnprofiledMs,
    FigureId::HeadroomMs,
    FigureId::AnalyzedStepMin,
    FigureId::AnalyzedStepMax,
    FigureId::CommMs,
    FigureId::CommComputeMs,
    FigureId::CopyCommMs,
    FigureId::Kernels,
    FigureId::KernelUs,
    FigureId::LaunchCallUs,
    FigureId::SyncMs,
];

pub(super) fn figures(runs: &[Diagnosis]) -> Vec<Figure> {
    let steps = runs.iter().map(step_ms).collect();
    let mut list: Vec<Figure> =
        Figure::of_time(FigureGroup::Step, FigureId::SpanMs.label().to_owned(), steps).into_iter().collect();
    list.extend(parts::figures(runs));
    list.extend(copies::figures(runs));
    list.extend(catalog_figures(FigureGroup::Copies, &COPY_FIGURES, runs));
    list.extend(catalog_figures(FigureGroup::Copies, &HOST_FIGURES, runs));
    list.extend(host_copies::figures(runs));
    list.extend(blocks::figures(runs));
    list.extend(kernels::figures(runs));
    list.extend(compiled_figures(runs));
    list.extend(throughput(runs));
    list.extend(catalog_figures(FigureGroup::Other, &OTHER_FIGURES, runs));
    list
}

fn catalog_figures(group: FigureGroup, figures: &[FigureId], runs: &[Diagnosis]) -> Vec<Figure> {
    let one = |figure: &FigureId| {
        let values = runs.iter().map(|run| figure.of(run).unwrap_or(0.0)).collect();
        Figure::new(group, figure.label().to_owned(), figure.unit(), values)
    };
    figures.iter().filter_map(one).collect()
}

/// A run without compiled code has no graph breaks and no recompilations, but in a run with compiled code, or with a log of
/// torch.compile, the number of graph breaks may be unknown. Then the row is left out.
fn compiled_figures(runs: &[Diagnosis]) -> Vec<Figure> {
    let value = |figure: FigureId, run: &Diagnosis| {
        let compiled = &run.launches.compiled;
        let is_none = compiled.regions == 0 && compiled.log.is_none();
        figure.of(run).or(is_none.then_some(0.0))
    };
    let one = |figure: &FigureId| {
        let values: Option<Vec<f64>> = runs.iter().map(|run| value(*figure, run)).collect();
        Figure::new(FigureGroup::Compiled, figure.label().to_owned(), figure.unit(), values?)
    };
    COMPILED_FIGURES.iter().filter_map(one).collect()
}

/// What was given per step, per second, if every run has it.
fn throughput(runs: &[Diagnosis]) -> Vec<Figure> {
    let Some(first) = runs.first() else { return Vec::new() };
    let per_s = |run: &Diagnosis, name: &str| {
        run.throughput.iter().find(|throughput| throughput.name == name).and_then(|found| found.per_s)
    };
    let one = |name: &String| {
        let values: Option<Vec<f64>> = runs.iter().map(|run| per_s(run, name)).collect();
        Figure::new(FigureGroup::Other, name.clone(), FigureUnit::PerSecond, values?)
    };
    first.throughput.iter().filter_map(|throughput| one(&throughput.name)).collect()
}
