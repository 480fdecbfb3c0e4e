//! What is the program written with? Fixes are in its terms.

use busbound_cause::training::{is_backward, is_optimizer_step};
use busbound_trace::Trace;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    PyTorch,
    /// JAX, TensorFlow.
    Xla,
    /// CUDA in C++, Fortran, Julia or Python without PyTorch.
    Cuda,
}

impl Program {
    /// What runs where nothing is recorded.
    pub(crate) fn not_recorded(self) -> &'static str {
        match self {
            Self::PyTorch | Self::Xla => "Python or code that is not recorded",
            Self::Cuda => "code that is not recorded",
        }
    }

    pub(crate) fn of(trace: &Trace) -> Self {
        let is_torch =
            |name: &str| name.starts_with("aten::") || name.contains("at::native") || name.contains("torch");
        match trace.origin().format.id {
            "xplane" => Self::Xla,
            "kineto-json" | "stage-log" => Self::PyTorch,
            // The others record any program.
            _ if trace.names().iter().any(is_torch) => Self::PyTorch,
            _ => Self::Cuda,
        }
    }
}

/// Whether operators of PyTorch are recorded, and none of a backward pass or an optimizer: advice for training does not apply.
pub(crate) fn only_infers(trace: &Trace) -> bool {
    let has = |is_it: fn(&str) -> bool| trace.names().iter().any(is_it);
    let trains = |name: &str| {
        is_backward(name) || is_optimizer_step(name) || name.starts_with("DistributedDataParallel.")
    };
    has(|name| name.starts_with("aten::")) && !has(trains)
}
