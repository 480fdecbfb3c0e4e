//! What is the program written with? Fixes are in its terms.

use crate::analysis::facts::Facts;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::findings) enum Program {
    PyTorch,
    /// JAX, TensorFlow.
    Xla,
    /// CUDA in C++, Fortran, Julia or Python without PyTorch.
    Cuda,
}

impl Program {
    pub(in crate::findings) fn of(facts: &Facts<'_>) -> Self {
        let is_torch =
            |name: &str| name.starts_with("aten::") || name.contains("at::native") || name.contains("torch");
        match facts.trace.origin().format.id {
            "xplane" => Self::Xla,
            "kineto-json" | "stage-log" => Self::PyTorch,
            // The others record any program.
            _ if facts.trace.names().iter().any(is_torch) => Self::PyTorch,
            _ => Self::Cuda,
        }
    }
}
