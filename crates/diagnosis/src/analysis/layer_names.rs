//! What does the program call the layer of a kernel?

use std::collections::BTreeSet;

use busbound_cause::WorkId;
use busbound_trace::{Event, EventKind};
use serde::Serialize;

use crate::analysis::blocks::Blocks;
use crate::analysis::facts::Facts;
use crate::pattern::pattern_of;
use crate::quantity::printable;

/// Where the names of layers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum NamedBy {
    /// The annotation (`record_function`, NVTX) in which the kernel was launched.
    Annotation,
    /// The `nn.Module` in which the kernel was launched.
    Module,
    /// The place of their copies in the step: the first is layer 0.
    Position,
}

/// How Kineto names the frames of modules.
const MODULE: &str = "nn.Module: ";

/// A kernel that waited for a copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitingKernel {
    pub(super) step: usize,
    pub(super) device: i32,
    pub(super) kernel: WorkId,
}

/// The name of each kernel's layer.
pub(super) struct LayerNames {
    pub(super) by: NamedBy,
    pub(super) list: Vec<Option<String>>,
}

impl LayerNames {
    /// `None` if neither annotations nor modules tell the layers of a step apart.
    pub(super) fn of(facts: &Facts<'_>, kernels: &[WaitingKernel]) -> Option<Self> {
        let calls: Vec<Option<Event<'_>>> = kernels
            .iter()
            .map(|waiting| facts.host.call_behind(&facts.trace.event(facts.graph.work[waiting.kernel].event)))
            .collect();
        let blocks = Blocks::of(facts.trace, &facts.host, |event| !facts.marks_steps(event.name()));
        let annotated = calls.iter().map(|call| block_of(&blocks, call.as_ref()?)).collect();
        let modules = calls.iter().map(|call| module_of(facts, call.as_ref()?)).collect();
        [(NamedBy::Annotation, annotated), (NamedBy::Module, modules)]
            .into_iter()
            .map(|(by, list)| Self { by, list })
            .find(|names| names.distinguish(kernels))
    }

    /// Whether the waits of a step mostly have names of their own.
    fn distinguish(&self, kernels: &[WaitingKernel]) -> bool {
        let named = kernels
            .iter()
            .zip(&self.list)
            .filter_map(|(waiting, name)| Some((waiting.device, waiting.step, name.as_deref()?)));
        let distinct: BTreeSet<_> = named.clone().collect();
        let numbered = named.clone().filter(|(.., name)| name.bytes().any(|b| b.is_ascii_digit())).count();
        // Two waits of one numbered layer are common: for attention, then for the MLP.
        let least = if 2 * numbered > kernels.len() { kernels.len() / 3 } else { kernels.len() * 4 / 5 };
        5 * named.count() >= 4 * kernels.len() && distinct.len() >= least.max(1)
    }
}

/// The innermost annotation with a number around a call, else the innermost.
fn block_of(blocks: &Blocks<'_>, call: &Event<'_>) -> Option<String> {
    let innermost = blocks.around(call)?;
    let around = std::iter::successors(Some(innermost), |block| blocks.list[block.index()].parent);
    let mut names = around.map(|block| blocks.list[block.index()].event.name());
    let first = names.clone().next()?;
    let name = names.find(|name| pattern_of(name).contains('*')).unwrap_or(first);
    Some(printable(name))
}

fn module_of(facts: &Facts<'_>, call: &Event<'_>) -> Option<String> {
    let is_module =
        |event: &Event<'_>| event.kind() == EventKind::PythonFrame && event.name().starts_with(MODULE);
    let frame = facts.trace.track(call.track_id()).enclosing(call.start(), is_module)?;
    Some(printable(frame.name().trim_start_matches(MODULE)))
}
