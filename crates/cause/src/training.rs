//! Does a program train? PyTorch's names say so: those of autograd's functions, of the optimizer, and of kernels.

use busbound_trace::EventKind;

/// Parts of the names of kernels that run in training only, in lowercase.
const KERNELS: [&str; 7] = ["backward", "_bwd", "bwd_", "wgrad", "dgrad", "grad_input", "multi_tensor_apply"];

/// A function that autograd runs in a backward pass.
pub fn is_backward(name: &str) -> bool {
    name.starts_with("autograd::engine::")
}

/// What an optimizer does, which torch.profiler marks: `Optimizer.step#AdamW.step`, `Optimizer.zero_grad#AdamW.zero_grad`.
pub fn is_optimizer(name: &str) -> bool {
    name.starts_with("Optimizer.")
}

/// An optimizer updates weights.
pub fn is_optimizer_step(name: &str) -> bool {
    name.starts_with("Optimizer.step")
}

/// Whether something of this name is part of a backward pass or of an optimizer's step.
pub fn is_training(kind: EventKind, name: &str) -> bool {
    match kind {
        EventKind::Operator | EventKind::Annotation => is_backward(name) || is_optimizer_step(name),
        EventKind::Kernel => {
            let name = name.to_ascii_lowercase();
            KERNELS.iter().any(|part| name.contains(part))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_training_are_known_by_name() {
        use EventKind::{Annotation, Kernel, Operator};
        for (kind, name) in [
            (Operator, "autograd::engine::evaluate_function: AddmmBackward0"),
            (Annotation, "Optimizer.step#AdamW.step"),
            (Kernel, "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<...>"),
            (Kernel, "flash_bwd_kernel<...>"),
            (Kernel, "GeluBackwardCUDAKernelImpl"),
        ] {
            assert!(is_training(kind, name), "{name}");
        }
        for (kind, name) in [
            (Operator, "aten::mm"),
            (Annotation, "Optimizer.zero_grad#AdamW.zero_grad"),
            (Kernel, "flash_fwd_kernel<...>"),
            (EventKind::RuntimeCall, "backward"),
        ] {
            assert!(!is_training(kind, name), "{name}");
        }
    }
}
