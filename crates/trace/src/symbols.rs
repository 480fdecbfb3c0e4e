//! Names as other profilers write them: kernels as in the source, calls without the driver's version suffix.

use std::borrow::Cow;

use cpp_demangle::Symbol;

/// Longer names stay mangled: the time to demangle grows faster than their length.
const LONGEST: usize = 4096;

pub(crate) fn shown(name: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(name);
    if !text.starts_with("_Z") || text.len() > LONGEST {
        return text;
    }
    match Symbol::new(name).ok().and_then(|symbol| symbol.demangle().ok()) {
        Some(taken_apart) => Cow::Owned(taken_apart),
        None => text,
    }
}

/// `cudaMemcpyAsync` of `cudaMemcpyAsync_v3020` and `cudaMemcpyAsync_ptsz_v7000`.
pub(crate) fn call(name: &str) -> &str {
    let is_call = name.starts_with("cu") && !name.contains(['(', ' ']);
    if !is_call {
        return name;
    }
    let version = |name: &str| {
        let at = name.rfind("_v")?;
        name[at + 2..].bytes().all(|byte| byte.is_ascii_digit()).then_some(at)
    };
    let bare = version(name).map_or(name, |at| &name[..at]);
    bare.trim_end_matches("_ptsz").trim_end_matches("_ptds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_source() {
        assert_eq!(shown(b"_Z4gemmPfi"), "gemm(float*, int)");
        assert_eq!(shown(b"nvjet_sm90_tst"), "nvjet_sm90_tst");
        assert_eq!(shown(b"_Z-not-a-name"), "_Z-not-a-name");
        assert_eq!(call("cudaMemcpyAsync_v3020"), "cudaMemcpyAsync");
        assert_eq!(call("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel");
        assert_eq!(call("cuLaunchKernelEx"), "cuLaunchKernelEx");
        assert_eq!(call("gemm_v2"), "gemm_v2");
    }
}
