//! Does attention run as separate kernels: a matrix product, softmax, and another matrix product?

use busbound_cause::Resource;
use busbound_trace::{Event, EventKind, Interval, Nanos};
use serde_json::json;

use super::common::kernels::WORTH_IT;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Attention without a fused kernel",
    doing: "using fused attention kernels",
    precondition: "The inputs fit a fused kernel: for flash attention fp16 or bf16 and a head dimension of at most 256; for memory-efficient attention also fp32.",
    basis: "bound: the time of the kernels between the two matrix products, which a fused kernel does not need",
    candidate: Candidate::None(
        "No what-if change fuses kernels: what the fused one takes depends on shapes that the trace does not have.",
    ),
    effort: Effort::FewLines,
    unless: &[],
    relieves: &[Resource::Compute],
    check,
    document: Document {
        meaning: "Attention runs as a batched matrix product, softmax and a second batched matrix product. Each writes its whole \
                  result to memory, and the next one reads it. A fused kernel (flash or memory-efficient attention) keeps it on \
                  the chip.",
        computed: "Evidence: softmax kernels launched after one `aten::bmm` or `aten::baddbmm` and before another, at most six \
                   kernels away on the same stream; with these products, they take at least 5% of the time, and compute bounds \
                   the run. Traces without operators do not show it. Saving: at most the time of the kernels between the two \
                   products, and at least nothing. The products may get faster too, which is not counted.",
        fix: "Call `torch.nn.functional.scaled_dot_product_attention`, which picks a fused kernel. If it is called already, its \
              inputs keep it from one: see the warnings of `sdpa_kernel` with only the fused backends allowed.",
        code: &[CODE],
        assumes: "No program reads the attention weights themselves: a fused kernel does not write them.",
    },
};

const CODE: &str = "\
out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
# says why a fused kernel does not fit:
with torch.nn.attention.sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):
    model(batch)";

/// The products of one attention are at most this many kernels away from its softmax: scale, mask, dropout and casts are between.
const NEAR: usize = 6;

/// Attention in separate kernels.
#[derive(Default)]
struct Unfused {
    count: u64,
    /// With the two products.
    all: Nanos,
    between: Nanos,
    at: Vec<Interval>,
}

/// Softmax, and not the logarithm of it, which is part of a loss.
fn is_softmax(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("softmax") && !name.contains("logsoftmax") && !name.contains("log_softmax")
}

fn is_product(facts: &Facts<'_>, kernel: &Event<'_>) -> bool {
    let operator = facts.host.call_behind(kernel).and_then(|call| facts.host.operator_around(&call));
    operator.is_some_and(|operator| matches!(operator.name(), "aten::bmm" | "aten::baddbmm"))
}

impl Unfused {
    /// Adds a softmax between two products.
    fn add(&mut self, facts: &Facts<'_>, kernels: &[Event<'_>], softmax: usize) {
        let is_near = |at: &usize| is_product(facts, &kernels[*at]);
        let before = (softmax.saturating_sub(NEAR)..softmax).rev().find(is_near);
        let after = (softmax + 1..(softmax + 1 + NEAR).min(kernels.len())).find(is_near);
        let (Some(first), Some(last)) = (before, after) else { return };
        self.count += 1;
        self.all += kernels[first..=last].iter().map(|kernel| kernel.duration()).sum();
        self.between += kernels[first + 1..last].iter().map(|kernel| kernel.duration()).sum();
        self.at.push(Interval::new(kernels[first].start(), kernels[last].end()));
    }

    fn of(facts: &Facts<'_>) -> Self {
        let mut all = Self::default();
        let names = facts.trace.names();
        let is_softmax: Vec<bool> = names.iter().map(is_softmax).collect();
        if !is_softmax.contains(&true) {
            return all;
        }
        for stream in facts.trace.streams() {
            let kernels: Vec<Event<'_>> =
                stream.events().filter(|event| event.kind() == EventKind::Kernel).collect();
            for (at, kernel) in kernels.iter().enumerate() {
                if is_softmax[kernel.name_id().index()] {
                    all.add(facts, &kernels, at);
                }
            }
        }
        all
    }
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let Unfused { count, all, between, at } = Unfused::of(facts);
    if count == 0 || all.as_millis() < WORTH_IT * facts.time.analyzed_ms {
        return None;
    }
    let steps = facts.gpu_steps();
    let (all_ms, between_ms) = (all.as_millis() / steps, between.as_millis() / steps);
    Some(Draft {
        title: None,
        seen: format!(
            "{:.0} times per {}, a matrix product, softmax and another matrix product run as separate kernels: {} ({:.0}% of the time), of which {} between the products.",
            count as f64 / steps,
            facts.unit(),
            milliseconds(all_ms),
            100.0 * all.as_millis() / facts.time.analyzed_ms,
            milliseconds(between_ms),
        ),
        evidence: json!({
            "turns_per_step": count as f64 / steps,
            "attention_ms_per_step": all_ms,
            "between_products_ms_per_step": between_ms,
            "share": all.as_millis() / facts.time.analyzed_ms,
        }),
        saves: Saving { low: 0.0, high: between_ms },
        fix: Fix::new(
            "Call torch.nn.functional.scaled_dot_product_attention. If the model calls it already, allow only its fused backends with sdpa_kernel: the warnings say why they do not fit.",
        )
        .code(CODE),
        at,
    })
}
