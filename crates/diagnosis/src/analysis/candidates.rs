//! Which what-if changes are worth trying on a trace?

use busbound_trace::Direction;
use busbound_whatif::replay::{
    Async, Change, Coalesce, CudaGraph, Keep, LoaderPin, NoSync, Optimizer, Pin, Prefetch, Resident, Stage,
    Stream, Workers,
};

use crate::analysis::confidential;
use crate::analysis::cpu_optimizer::CpuOptimizer;
use crate::analysis::facts::Facts;
use crate::analysis::input_loader::InputLoader;
use crate::analysis::program::Program;
use crate::analysis::returned::Returned;

/// Changes worth trying for this trace.
pub(crate) fn candidates(facts: &Facts<'_>) -> Vec<Vec<Change>> {
    let pageable = facts
        .copies
        .iter()
        .any(|copy| [copy.transfer.src, copy.transfer.dst].contains(&busbound_trace::MemoryKind::Pageable));
    let mut all: Vec<Vec<Change>> = Vec::new();
    let mut bases: Vec<Vec<Change>> = vec![vec![]];
    // Batches of a loader are pinned by the loader.
    let fetches = large_fetches(facts);
    let are_batches = facts.host.inputs().next().is_some() && fetches < LAYERS;
    if pageable {
        bases.push(vec![if are_batches { LoaderPin.into() } else { Pin.into() }]);
    }
    let comes_back = Returned::of(facts).is_some();
    // These remove the host work around the copies, as PyTorch's hooks do. In other programs it may be the program's own.
    let is_torch = facts.program == Program::PyTorch;
    for base in &bases {
        let mut add = |more: &[Change]| all.push(base.iter().cloned().chain(more.iter().cloned()).collect());
        add(&[]);
        for depth in [1, 2, 4] {
            add(&[Prefetch(depth).into()]);
        }
        add(&[Async.into()]);
        add(&[NoSync.into()]);
        add(&[Coalesce.into()]);
        add(&[NoSync.into(), Prefetch(1).into()]);
        add(&[CudaGraph.into()]);
        if comes_back {
            add(&[Keep.into()]);
        }
        if fetches >= BATCHES && is_torch {
            add(&[Resident(0.5).into()]);
            add(&[Resident(0.5).into(), Prefetch(1).into()]);
            if fetches >= LAYERS {
                add(&[Stream.into()]);
            }
        }
    }
    if let Some(optimizer) = CpuOptimizer::of(facts) {
        let offered =
            [(Optimizer::Overlap, !optimizer.is_overlapped), (Optimizer::Gpu, optimizer.on_gpu.is_some())];
        all.extend(offered.into_iter().filter(|(_, is)| *is).map(|(change, _)| vec![change.into()]));
    }
    if let Some(loader) = InputLoader::of(facts).filter(|loader| loader.is_in_main_process) {
        all.push(vec![Workers(loader.workers()).into()]);
    }
    if pageable {
        all.push(vec![Stage.into()]);
    }
    if facts.timelines.is_empty() {
        // Without a GPU, there is nothing to change but where batches are made.
        all = vec![vec![Workers(1).into()], vec![Workers(4).into()]];
    }
    all.retain(|changes| !changes.is_empty());
    // Values that decide what runs next can neither be left unread nor be read together.
    if facts.syncs.mostly_decide() {
        all.retain(|changes| {
            !changes.iter().any(|change| matches!(change, Change::NoSync(_) | Change::Coalesce(_)))
        });
    }
    if confidential::is_on(facts.trace) {
        all.retain(|changes| !changes.iter().any(confidential::is_moot));
    }
    all
}

/// From this many large H2D copies per step on, they are more than a batch; from this many, they look like the layers of a model.
const BATCHES: f64 = 4.0;
const LAYERS: f64 = 8.0;

/// Large H2D copies per step; per batch, where a loader fetches several per step.
fn large_fetches(facts: &Facts<'_>) -> f64 {
    let batches = facts.host.inputs().count() as f64 / facts.steps();
    let large = facts.issued_copies().filter(|copy| {
        copy.transfer.direction == Direction::HostToDevice && copy.bytes().unwrap_or(0) >= 1 << 20
    });
    large.count() as f64 / facts.steps() / batches.max(1.0)
}
