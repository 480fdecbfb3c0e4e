//! Which kernels do matrix work?

/// Substrings of the names of kernels that keep tensor cores busy.
const MATRIX: [&str; 12] = [
    "gemm",
    "nvjet",
    "cutlass",
    "xmma",
    "wgmma",
    "conv",
    "flash",
    "attention",
    "fmha",
    "mma",
    "_sm80_",
    "sm90_",
];

/// Whether a kernel does matrix work, by its name.
pub fn is_matrix_kernel(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    MATRIX.iter().any(|part| name.contains(part))
}
