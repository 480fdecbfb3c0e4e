//! What the findings of a run argue for.

use super::offload::{Offloading, pinned, set};
use super::{Advice, Because, Target};
use crate::answers::diagnosis::Diagnosis;
use crate::findings::Finding;

/// Settings for every finding that a setting mends; code that must change is not among them.
pub fn advice_of_diagnosis(diagnosis: &Diagnosis) -> Advice {
    let mut settings = Vec::new();
    for finding in &diagnosis.findings {
        let mut because = Because {
            settings: &mut settings,
            why: finding.seen.clone(),
            when: finding.precondition.clone(),
        };
        let number = |key: &str| finding.evidence.get(key).and_then(serde_json::Value::as_f64);
        match finding.id {
            "input_wait" => {
                because.set(Target::DataLoader, "num_workers", 4);
            }
            "pageable_copies" if comes_from_a_loader(finding) => {
                because.set(Target::DataLoader, "pin_memory", "true");
            }
            "pageable_copies" | "non_blocking_pageable" => pinned(&mut because),
            "late_prefetch" => set(&mut because, &Offloading { depth: 2, resident: 0.0, layers: None }),
            "bandwidth_deficit" => {
                let resident = number("resident_share_needed").unwrap_or(0.0).clamp(0.0, 1.0);
                set(&mut because, &Offloading { depth: 2, resident, layers: None });
            }
            "unneeded_offload" => {
                because.set(Target::Vllm, "cpu_offload_gb", 0).set(Target::Sglang, "cpu_offload_gb", 0).set(
                    Target::SglangDiffusion,
                    "dit_layerwise_offload",
                    "false",
                );
            }
            "allocation_in_loop" => {
                because.set(Target::Environment, "PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True");
            }
            "launch_bound" => {
                because
                    .set(Target::Compile, "mode", "reduce-overhead")
                    .set(Target::Vllm, "enforce_eager", "false")
                    .set(Target::Sglang, "disable_cuda_graph", "false");
            }
            // The rest is mended in code, or not at all by a setting.
            _ => {}
        }
    }
    settings.sort_by_key(|setting| setting.target);
    Advice { from: diagnosis.source.path.clone(), statement: diagnosis.verdict.statement.clone(), settings }
}

/// Whether the fix that was found speaks of a DataLoader: then batches are copied, and not weights.
fn comes_from_a_loader(finding: &Finding) -> bool {
    finding.fix.contains("DataLoader")
}
