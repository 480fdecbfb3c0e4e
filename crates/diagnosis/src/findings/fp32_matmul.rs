//! Do matrix products run in fp32, without tensor cores?

use std::collections::BTreeMap;

use busbound_cause::Resource;
use busbound_trace::{EventKind, Interval, NameId, Nanos};
use serde_json::json;

use super::common::kernels::{WORTH_IT, short_name};
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::links::capability;
use crate::analysis::facts::Facts;
use crate::quantity::milliseconds;
use crate::saving::Saving;

pub(super) static RULE: Rule = Rule {
    title: "Matrix products in fp32",
    doing: "allowing TF32 in matrix products",
    precondition: "The model tolerates matrix products with 10 bits of mantissa (TF32), or bf16: compare the loss over some hundred steps.",
    basis: "bound: the time of these kernels; tensor cores gain nothing where memory bandwidth limits them",
    candidate: Candidate::None(
        "No what-if change replaces kernels: how much faster a TF32 kernel is depends on shapes that the trace does not have.",
    ),
    effort: Effort::OneLine,
    unless: &[],
    relieves: &[Resource::Compute],
    check,
    document: Document {
        meaning: "Matrix products run in kernels that multiply in fp32 on the CUDA cores. GPUs since Ampere have tensor cores that \
                  multiply fp32 inputs as TF32 (10 bits of mantissa, fp32 sums). PyTorch uses them for matrix products only if the \
                  program asks for it.",
        computed: "Evidence: kernels named `sgemm` or `gemm_f32f32_f32f32`, of 20 µs or more each, take at least 5% of the time, on an NVIDIA GPU of \
                   compute capability 8.0 or higher, and compute bounds the run. Convolutions do not count: they use TF32 by \
                   default. Saving: on data-center GPUs (compute capability x.0) at most 7/8 of their time, because the peak in \
                   TF32 is up to 8 times that in fp32, and at least nothing; on other GPUs it is not stated.",
        fix: "Allow TF32 with one line at the start, or run the model in bf16 with autocast.",
        code: &[CODE],
        assumes: "The model tolerates the precision. Small products and products with a vector are limited by memory, and gain \
                  nothing.",
    },
};

const CODE: &str = "\
torch.set_float32_matmul_precision(\"high\")    # TF32 in matrix products
# or bf16, which also halves the memory traffic:
with torch.autocast(\"cuda\", dtype=torch.bfloat16):
    loss = model(batch)";

/// The first compute capability with TF32.
const AMPERE: (u32, u32) = (8, 0);
/// The most that TF32 gains over fp32 by peak rates: 156 vs. 19.5 Tflop/s on A100; 494 vs. 67 on H100.
const MOST_TIMES: f64 = 8.0;

/// Shorter kernels are bound by their latency, not by the rate of multiplications.
const SHORTEST: Nanos = Nanos::new(20_000);

/// Whether a kernel multiplies matrices in fp32 without tensor cores, by the names of cuBLAS and CUTLASS.
fn is_fp32_product(name: &str) -> bool {
    const FP32: [&str; 2] = ["sgemm", "gemm_f32f32_f32f32_f32"];
    const OTHERS: [&str; 8] = ["tf32", "bf16", "f16", "16816", "conv", "fprop", "dgrad", "wgrad"];
    let name = name.to_ascii_lowercase();
    FP32.iter().any(|part| name.contains(part)) && !OTHERS.iter().any(|part| name.contains(part))
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    let device = facts.timelines.first().map(|line| line.device);
    let (major, minor) = capability(facts.trace, device).filter(|known| *known >= AMPERE)?;
    let is_product: Vec<bool> = facts.trace.names().iter().map(is_fp32_product).collect();
    let mut by_name: BTreeMap<NameId, Nanos> = BTreeMap::new();
    let mut at: Vec<Interval> = Vec::new();
    for event in facts.trace.events().filter(|event| event.kind() == EventKind::Kernel) {
        if is_product[event.name_id().index()] && event.duration() >= SHORTEST {
            *by_name.entry(event.name_id()).or_default() += event.duration();
            at.push(event.interval());
        }
    }
    let total = by_name.values().copied().sum::<Nanos>().as_millis();
    if total < WORTH_IT * facts.time.analyzed_ms {
        return None;
    }
    let (longest, _) = by_name.iter().max_by_key(|(name, time)| (**time, std::cmp::Reverse(**name)))?;
    let longest = short_name(facts.trace.names().get(*longest));
    let steps = facts.gpu_steps();
    let (ms, kernels) = (total / steps, at.len() as f64 / steps);
    let high = if minor == 0 { ms * (1.0 - 1.0 / MOST_TIMES) } else { 0.0 };
    Some(Draft {
        title: None,
        seen: format!(
            "{kernels:.0} matrix products per {} take {} ({:.0}% of the time) in fp32 kernels without tensor cores, mostly {longest}. The GPU (compute capability {major}.{minor}) has TF32.",
            facts.unit(),
            milliseconds(ms),
            100.0 * total / facts.time.analyzed_ms,
        ),
        evidence: json!({
            "kernels_per_step": kernels,
            "kernel_ms_per_step": ms,
            "share": total / facts.time.analyzed_ms,
            "kernel": longest,
        }),
        saves: Saving { low: 0.0, high },
        fix: Fix::new(
            "Call torch.set_float32_matmul_precision(\"high\") once at the start, or run the model under torch.autocast in bf16.",
        )
        .code(CODE),
        at,
    })
}

#[cfg(test)]
mod tests {
    use super::is_fp32_product;

    #[test]
    fn names_say_which_precision_a_product_has() {
        let fp32 = [
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nt_align1>(cutlass_80_simt_sgemm_256x128_8x4_nt_align1::Params)",
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__51_cublas",
            "ampere_sgemm_128x64_tn",
            "volta_sgemm_64x32_sliced1x4_nn",
        ];
        let others = [
            "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x64x32_stage3_warpsize2x2x1_tensor16x8x8_kernel",
            "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4>(Params)",
            "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
            "ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_tn",
            "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT",
            "implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false, false, true>",
            "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckcrs_nhwc_tilesize128x64x8_kernel",
            "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>",
        ];
        assert!(fp32.iter().all(|name| is_fp32_product(name)));
        assert!(!others.iter().any(|name| is_fp32_product(name)));
    }
}
