//! What do copies from and to pageable memory cost? Shared by three findings.

use busbound_machine::LinkSource;
use busbound_trace::{Direction, EventKind, Interval, MemoryKind};
use serde_json::{Value, json};

use super::draft::Fix;
use super::frameworks::{ACCELERATE_PIN_CODE, DIFFUSERS_CODE, FSDP_PIN_CODE, Framework, Hooks};
use super::pinning::pin_operators;
use crate::activity::copies::{Copy, expected_ns};
use busbound_cause::idle::GapCause;

use crate::activity::gaps::{call_times, idle_around_ms};
use crate::analysis::facts::Facts;
use crate::analysis::program::Program;
use crate::quantity::{bytes, milliseconds, plural};
use crate::saving::Saving;
use crate::unit::Unit;

/// Smaller copies are bound by the cost of their call, not by staging.
const SMALLEST: u64 = 64 << 10;
/// Share of the time. Copies that take less, or whose fix saves less, are not reported.
const WORTH_IT: f64 = 0.01;

pub(in crate::findings) const PRECONDITION: &str = "The same host buffer is reused in many steps. Pinning a buffer for a single copy costs more than it saves.";
pub(in crate::findings) const BASIS: &str =
    "bound: copy time beyond the link's pinned rate for these sizes, limited to exposed time";

pub(in crate::findings) const LOADER_CODE: &str = "\
loader = DataLoader(dataset, batch_size, pin_memory=True, num_workers=4)
for batch in loader:
    batch = batch.to(device, non_blocking=True)";

pub(in crate::findings) const PIN_CODE: &str = "\
host = [weight.pin_memory() for weight in weights]    # once, before the loop
for step in range(steps):
    for buffer, source in zip(buffers, host):
        buffer.copy_(source, non_blocking=True)";

/// A copy whose call takes this share of its time, and that needs no more than this share of it at the pinned rate, is staged.
const WAITS: f64 = 0.8;
const STAGED: f64 = 0.5;

/// Below this share of the bytes from pageable memory, what is copied from pinned memory is something else.
const IN_VAIN: f64 = 0.1;
const PINNED_IN_VAIN: &str = " The program calls pin_memory() in each step, but what it copies is not the result: a cast, contiguous() or a slice after it makes a \
                              new pageable tensor. Pin last, or copy first and cast on the GPU.";

/// On a link between chips, the GPU can read pageable memory itself: such copies are only reported if they take this many times as long
/// as pinned ones. Not tried on such a machine.
const SLOW_ON_CHIPS: f64 = 2.0;

/// The code of every way to pin, for documentation.
pub(in crate::findings) const PIN_CODES: &[&str] =
    &[PIN_CODE, LOADER_CODE, FSDP_PIN_CODE, ACCELERATE_PIN_CODE, DIFFUSERS_CODE];

/// Where the copied buffers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::findings) enum Buffers {
    /// Batches of PyTorch's `DataLoader`, which can pin them.
    Loader,
    /// Weights that a framework offloads.
    Offloaded(Framework),
    /// Buffers of the program, usually weights.
    Own,
    /// Those of a program without PyTorch.
    Cuda,
}

impl Buffers {
    /// Those of these copies.
    pub(in crate::findings) fn of(facts: &Facts<'_>, copies: &[&Copy<'_>]) -> Self {
        if let Some(framework) = Hooks::issuing(facts, copies) {
            return Self::Offloaded(framework);
        }
        if facts.trace.names().iter().any(|name| name.starts_with("enumerate(DataLoader)")) {
            return Self::Loader;
        }
        let inferred = Hooks::of(facts).filter(|hooks| hooks.inferred);
        let own = if facts.program == Program::Cuda { Self::Cuda } else { Self::Own };
        inferred.map_or(own, |hooks| Self::Offloaded(hooks.framework))
    }

    /// How to pin them.
    fn pin(self) -> &'static str {
        match self {
            Self::Loader => "Use DataLoader(…, pin_memory=True), then batch.to(device, non_blocking=True).",
            Self::Offloaded(Framework::Fsdp) => "Use CPUOffloadPolicy(pin_memory=True).",
            Self::Offloaded(Framework::Accelerate) => {
                "Pin the weights once and pass them on: cpu_offload(model, state_dict=pinned)."
            }
            Self::Offloaded(Framework::Diffusers) => {
                "Use enable_group_offload(…, use_stream=True), which pins the weights."
            }
            Self::Own => {
                "Pin the buffers once, when you create them (buf = buf.pin_memory()), reuse them, and copy with non_blocking=True."
            }
            Self::Cuda => {
                "Allocate the buffers once with cudaMallocHost, or pin them with cudaHostRegister, reuse them, and copy with cudaMemcpyAsync."
            }
        }
    }

    /// The fix with its code in PyTorch; `more` follows it.
    pub(in crate::findings) fn fix(self, more: &str) -> Fix {
        let code = match self {
            Self::Loader => LOADER_CODE,
            Self::Offloaded(Framework::Fsdp) => FSDP_PIN_CODE,
            Self::Offloaded(Framework::Accelerate) => ACCELERATE_PIN_CODE,
            Self::Offloaded(Framework::Diffusers) => DIFFUSERS_CODE,
            Self::Own => PIN_CODE,
            Self::Cuda => return Fix::new(format!("{}{more}", self.pin())),
        };
        Fix::new(format!("{}{more}", self.pin())).code(code)
    }
}

/// Pageable copies in one direction that are large enough to analyze.
pub(in crate::findings) fn pageable<'f, 'a>(
    facts: &'f Facts<'a>,
    direction: Direction,
) -> impl Iterator<Item = &'f Copy<'a>> {
    facts.issued_copies().filter(move |copy| {
        copy.transfer.direction == direction
            && is_pageable(facts, copy)
            && copy.bytes().is_some_and(|bytes| bytes >= SMALLEST)
    })
}

/// Whether its host memory is pageable, as recorded or inferred.
pub(in crate::findings) fn is_pageable(facts: &Facts<'_>, copy: &Copy<'_>) -> bool {
    match copy.host_memory() {
        Some(MemoryKind::Pageable) => true,
        Some(MemoryKind::Unknown) => looks_pageable(facts, copy),
        _ => false,
    }
}

/// ROCm does not record the kind of memory. Copies from pageable memory wait for staging, and are far slower than pinned ones.
fn looks_pageable(facts: &Facts<'_>, copy: &Copy<'_>) -> bool {
    let nanos = copy.event.duration().get() as f64;
    facts.link.source != LinkSource::Assumed
        && copy.is_large()
        && copy.blocked.get() as f64 >= WAITS * nanos
        && expected_ns(copy, &facts.links) < STAGED * nanos
}

/// Requested with `non_blocking=True`, or issued on a copy-only stream, but the call waited anyway.
pub(in crate::findings) fn is_asynchronous_in_name_only(facts: &Facts<'_>, copy: &Copy<'_>) -> bool {
    if copy.blocked.get() == 0 {
        return false;
    }
    let Some(call) = copy.call else { return false };
    let operator = facts.trace.track(call.track_id()).enclosing(call.start(), |event| {
        event.kind() == EventKind::Operator && event.copy_operator().is_some()
    });
    match operator.and_then(|operator| operator.copy_operator()?.non_blocking) {
        Some(flag) => flag,
        None => facts.shares_stream_with_kernels(copy) == Some(false),
    }
}

/// Whether these buffers are copied once: all of them in before the first kernel, or out after the last, in a trace without steps.
pub(in crate::findings) fn is_once(facts: &Facts<'_>, copies: &[&Copy<'_>]) -> bool {
    let kernels = facts.timelines.iter().filter_map(|line| line.compute.hull()).reduce(Interval::hull);
    let Some(kernels) = kernels.filter(|_| facts.unit() == Unit::Trace) else { return false };
    let is_before = |copy: &&Copy<'_>| copy.event.end() <= kernels.start;
    let is_after = |copy: &&Copy<'_>| copy.event.start() >= kernels.end;
    copies.iter().all(is_before) || copies.iter().all(is_after)
}

/// The fix of buffers that are copied once.
pub(in crate::findings) fn copied_once() -> Fix {
    Fix::new(
        "Each of these buffers is copied once in this trace: pinning it would cost more than that saves. If the program copies it again and again, pin it once and reuse it.",
    )
    .gains_nothing()
}

/// What pageable copies cost, and what they would cost with pinned memory; over all steps, in milliseconds.
pub(in crate::findings) struct Staged<'c, 'f, 'a> {
    facts: &'f Facts<'a>,
    copies: &'c [&'f Copy<'a>],
    moved: u64,
    total: f64,
    /// Their time at the link's pinned rate for their sizes.
    pub(in crate::findings) pinned: f64,
    pub(in crate::findings) exposed: f64,
    /// Host time inside the copy calls.
    blocked: f64,
    /// Idle time while the driver stages data in its own buffers.
    pub(in crate::findings) staging: f64,
    /// Copy time that pinning saves.
    pub(in crate::findings) faster: f64,
}

impl<'c, 'f, 'a> Staged<'c, 'f, 'a> {
    /// `None` if the copies take too little of the time.
    pub(in crate::findings) fn of(facts: &'f Facts<'a>, copies: &'c [&'f Copy<'a>]) -> Option<Self> {
        let total: f64 = copies.iter().map(|copy| copy.event.duration().as_millis()).sum();
        if copies.is_empty() || total < WORTH_IT * facts.time.analyzed_ms {
            return None;
        }
        let pinned: f64 = copies.iter().map(|copy| expected_ns(copy, &facts.links)).sum::<f64>() / 1e6;
        if facts.link.is_between_chips() && total < SLOW_ON_CHIPS * pinned {
            return None;
        }
        let calls = call_times(copies.iter().filter_map(|copy| copy.call));
        Some(Self {
            facts,
            copies,
            moved: copies.iter().filter_map(|copy| copy.bytes()).sum(),
            total,
            pinned,
            exposed: facts.exposed_ms(copies.iter().copied()),
            blocked: copies.iter().map(|copy| copy.blocked.as_millis()).sum(),
            staging: idle_around_ms(&facts.gaps, &[GapCause::Copy], &calls),
            faster: (total - pinned).max(0.0),
        })
    }

    /// Hidden copies cost nothing, so a fix saves at most the exposed time. At the pinned rate, the rest of the copy time
    /// may still be exposed.
    pub(in crate::findings) fn bound(&self) -> (f64, f64) {
        let (faster, exposed, staging) = (self.faster, self.exposed, self.staging);
        (0.85 * faster.min(exposed), (faster + staging).min(exposed + staging))
    }

    /// Converts a bound over all steps to a saving per step; `None` if it is too small.
    pub(in crate::findings) fn saving(&self, (low, high): (f64, f64)) -> Option<Saving> {
        let steps = self.facts.gpu_steps();
        let is_worth_it = high >= WORTH_IT * self.facts.time.analyzed_ms;
        is_worth_it.then(|| Saving { low: (low / steps).min(high / steps), high: high / steps })
    }

    fn gbps(&self) -> f64 {
        self.moved as f64 / 1e6 / self.total
    }

    fn pinned_gbps(&self) -> f64 {
        self.moved as f64 / 1e6 / self.pinned
    }

    /// `12 copies of 168 MB per step from pageable memory at 9.8 GB/s …`; `preposition` is `from` or `to`.
    pub(in crate::findings) fn seen(&self, preposition: &str) -> String {
        let (copies, unit) = (self.copies.len(), self.facts.unit());
        let blocking = if self.blocked > 0.0 {
            format!(", each blocking the host for {}", milliseconds(self.blocked / copies as f64))
        } else {
            String::new()
        };
        let direction = self.copies[0].transfer.direction;
        let is_smaller = |copy: &Copy<'_>| {
            copy.transfer.direction == direction
                && copy.host_memory() == Some(MemoryKind::Pageable)
                && copy.bytes().is_some_and(|bytes| bytes < SMALLEST)
        };
        // The table of copies counts small ones too.
        let (one, several) = match self.facts.issued_copies().any(is_smaller) {
            true => ("large copy", "large copies"),
            false => ("copy", "copies"),
        };
        let is_recorded = |copy: &&Copy<'_>| copy.host_memory() == Some(MemoryKind::Pageable);
        let kind = match self.copies.iter().copied().any(|copy| is_recorded(&copy)) {
            true => "pageable memory",
            false => {
                "memory that is probably pageable (its kind is not recorded; the copies wait, and are slow)"
            }
        };
        let origin = self.copies[0].call.map(|call| self.facts.host.around(&call)).unwrap_or_default();
        format!(
            "{} of {} per {unit} {preposition} {kind} at {:.1} GB/s{}{blocking}; pinned memory reaches {:.1} GB/s on {}.{}",
            plural((copies as f64 / self.facts.steps()).round().max(1.0) as u64, one, several),
            bytes(self.moved / copies as u64),
            self.gbps(),
            origin.clause(),
            self.pinned_gbps(),
            self.facts.link.name,
            if self.is_pinned_in_vain() { PINNED_IN_VAIN } else { "" },
        )
    }

    /// Whether the program pins tensors in each step, and copies hardly any from pinned memory.
    fn is_pinned_in_vain(&self) -> bool {
        let direction = self.copies[0].transfer.direction;
        if direction != Direction::HostToDevice
            || (pin_operators(self.facts).len() as f64) < self.facts.steps()
        {
            return false;
        }
        let is_pinned = |copy: &&Copy<'_>| {
            copy.transfer.direction == direction && copy.host_memory() == Some(MemoryKind::Pinned)
        };
        let pinned = self.facts.issued_copies().filter(is_pinned).filter_map(|copy| copy.bytes());
        (pinned.fold(0, u64::saturating_add) as f64) < IN_VAIN * self.moved as f64
    }

    pub(in crate::findings) fn evidence(&self) -> Value {
        let (copies, steps) = (self.copies, self.facts.steps());
        let place = copies[0].call.and_then(|call| self.facts.host.around(&call).describe());
        json!({
            "copies": copies.len(),
            "copies_per_step": copies.len() as f64 / steps,
            "bytes": self.moved,
            "gbps": self.gbps(),
            "pinned_gbps": self.pinned_gbps(),
            "ms_per_step": self.total / steps,
            "exposed_ms_per_step": self.exposed / steps,
            "host_blocked_ms_per_step": self.blocked / steps,
            "host_staging_idle_ms_per_step": self.staging / steps,
            "share_of_the_commonest_size": largest_share_of_one_size(copies),
            "place": place,
        })
    }
}

/// Share of copies with the most common size: near 1 if the same buffers are sent repeatedly.
fn largest_share_of_one_size(copies: &[&Copy<'_>]) -> f64 {
    let mut sizes: Vec<_> = copies.iter().filter_map(|copy| copy.bytes()).collect();
    sizes.sort_unstable();
    let longest = sizes.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0);
    longest as f64 / copies.len() as f64
}
