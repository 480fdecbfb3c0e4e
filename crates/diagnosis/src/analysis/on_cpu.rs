//! Does a program without GPU events compute on the CPU?

use std::collections::BTreeMap;

use busbound_cause::thresholds::LONG_LAUNCH;
use busbound_trace::{Event, EventKind, Nanos, Trace};

/// Operators that run on the CPU only, by how their names begin.
const CPU_ONLY: [&str; 3] =
    ["aten::mkldnn_", "mkldnn::", "aten::_scaled_dot_product_flash_attention_for_cpu"];
/// Operators that run on a GPU only.
const GPU_ONLY: [&str; 4] =
    ["aten::cudnn_", "aten::miopen_", "aten::_flash_attention_", "aten::_efficient_attention_"];
/// Matrix products. To launch one takes microseconds on any GPU.
const PRODUCTS: [&str; 4] = ["aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"];

/// What shows that a program computes on the CPU.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OnCpu {
    /// The operator that takes most of the time.
    pub(crate) operator: String,
    pub(crate) ms: f64,
}

/// `None` if the trace does not show where the program computes. `has_gpu` says whether it has work on a GPU, or launches of it.
pub(super) fn on_cpu(trace: &Trace, has_gpu: bool) -> Option<OnCpu> {
    let begins = |starts: &[&str], name: &str| starts.iter().any(|start| name.starts_with(start));
    if has_gpu || trace.names().iter().any(|name| begins(&GPU_ONLY, name)) {
        return None;
    }
    let (mut named, mut products) = (Vec::new(), Vec::new());
    for event in trace.events().filter(|event| event.kind() == EventKind::Operator) {
        if begins(&CPU_ONLY, event.name()) {
            named.push(event);
        } else if PRODUCTS.contains(&event.name()) {
            products.push(event);
        }
    }
    if !named.is_empty() {
        return longest(&named);
    }
    // A file that lists a GPU may be of a program whose launches wait for a full queue, as long as its kernels take.
    if !trace.origin().gpus.is_empty() {
        return None;
    }
    let long = products.iter().filter(|event| event.duration().get() >= LONG_LAUNCH).count();
    (2 * long > products.len()).then(|| longest(&products)).flatten()
}

fn longest(operators: &[Event<'_>]) -> Option<OnCpu> {
    let mut sums: BTreeMap<&str, Nanos> = BTreeMap::new();
    for event in operators {
        let sum = sums.entry(event.name()).or_insert(Nanos::new(0));
        *sum = [*sum, event.duration()].into_iter().sum();
    }
    let (operator, time) = sums.into_iter().max_by_key(|(_, time)| *time)?;
    Some(OnCpu { operator: operator.to_owned(), ms: time.as_millis() })
}
