//! What does synchronizing gradients cost a step of data-parallel training?
//!
//! Buckets of gradients become ready one after the other during the backward pass and are reduced in that
//! order; what is not done when the pass ends is exposed. With accumulation only the last micro-batch of a
//! step synchronizes. The volume does not depend on the batch size.

use serde::Serialize;

use super::allreduce::{Cluster, allreduce_ms};
use super::{BadInput, ensure};
use crate::Range;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DdpInputs {
    pub cluster: Cluster,
    /// Gradients of the model.
    pub bytes: f64,
    pub bucket_bytes: f64,
    /// Forward and backward of one micro-batch.
    pub compute_ms: Range,
    /// Share of it that is the backward pass.
    pub backward_share: f64,
    pub accumulation: u32,
    /// Samples of one micro-batch on one rank.
    pub samples: f64,
    pub steps: u64,
    pub wanted_efficiency: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ddp {
    pub inputs: DdpInputs,
    pub buckets: u64,
    /// All buckets, one after the other.
    pub sync_ms: f64,
    pub with_overlap: DdpStep,
    /// If nothing ran beside the backward pass.
    pub without_overlap: DdpStep,
    /// Micro-batches a step from which on the wanted efficiency is reached; by the upper end of the range.
    pub smallest_accumulation: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DdpStep {
    pub exposed_ms: Range,
    pub step_ms: Range,
    /// Compute over step, 0 to 1.
    pub efficiency: Range,
    pub samples_per_second: Range,
    pub hours_for_all_steps: Range,
}

impl Ddp {
    /// # Errors
    /// If an input makes no sense.
    pub fn plan(inputs: DdpInputs) -> Result<Self, BadInput> {
        inputs.cluster.check()?;
        let bytes = inputs.bytes;
        ensure(bytes > 0.0 && bytes < 1e18, "the size", "above zero and below 1 EB", bytes)?;
        ensure(inputs.bucket_bytes > 0.0, "--bucket", "above zero", inputs.bucket_bytes)?;
        ensure(
            (0.0..=1.0).contains(&inputs.backward_share),
            "--backward",
            "between 0 and 1",
            inputs.backward_share,
        )?;
        ensure(inputs.accumulation >= 1, "--accumulation", "1 or more", inputs.accumulation)?;
        ensure(inputs.samples > 0.0, "--batch", "above zero", inputs.samples)?;
        let wanted = inputs.wanted_efficiency;
        ensure(wanted > 0.0 && wanted < 1.0, "--efficiency", "above 0 and below 1", wanted)?;
        let buckets = (inputs.bytes / inputs.bucket_bytes).ceil().max(1.0);
        let each = allreduce_ms(&inputs.cluster, inputs.bytes / buckets);
        let sync_ms = buckets * each;
        let exposed = |compute: f64| exposed_ms(compute * inputs.backward_share, buckets, each);
        let with_overlap = step(&inputs, exposed);
        let without_overlap = step(&inputs, |_| sync_ms);
        // A C / (A C + exposed) ≥ wanted.
        let needed = |compute: f64| exposed(compute) * wanted / (1.0 - wanted) / compute;
        let most = needed(inputs.compute_ms.low).max(needed(inputs.compute_ms.high));
        Ok(Self {
            buckets: buckets as u64,
            sync_ms,
            with_overlap,
            without_overlap,
            // A whole number that floats miss by a hair is that number.
            smallest_accumulation: ((most - 1e-9).ceil().max(1.0)) as u64,
            inputs,
        })
    }
}

fn step(inputs: &DdpInputs, exposed: impl Fn(f64) -> f64) -> DdpStep {
    let accumulation = f64::from(inputs.accumulation);
    let ranks = f64::from(inputs.cluster.ranks);
    let step = |compute: f64| accumulation * compute + exposed(compute);
    let compute = inputs.compute_ms;
    DdpStep {
        exposed_ms: compute.map(&exposed),
        step_ms: compute.map(step),
        efficiency: compute.map(|compute| accumulation * compute / step(compute)),
        samples_per_second: compute
            .map(|compute| ranks * accumulation * inputs.samples / step(compute) * 1e3),
        hours_for_all_steps: compute.map(|compute| step(compute) * inputs.steps as f64 / 3.6e6),
    }
}

/// Buckets ready at equal distances during the backward pass, reduced one after the other.
fn exposed_ms(backward_ms: f64, buckets: f64, each_ms: f64) -> f64 {
    // Either the reductions keep up and only the last is left, or they queue from the first on.
    let kept_up = backward_ms + each_ms;
    let queued = backward_ms / buckets + buckets * each_ms;
    kept_up.max(queued) - backward_ms
}

pub const FORMULAS: &[&str] = &[
    "sync = buckets × all-reduce of one bucket (see `plan allreduce`); it does not depend on the batch",
    "exposed = max(backward + one, backward / buckets + buckets × one) − backward: what is left when the backward pass ends",
    "step = accumulation × compute + exposed; efficiency = accumulation × compute / step",
    "smallest accumulation ≥ exposed / compute × wanted / (1 − wanted)",
];

#[cfg(test)]
mod tests {
    use busbound_machine::Interconnect;
    use proptest::prelude::*;

    use super::*;

    fn inputs(gbps: &str, compute: Range) -> DdpInputs {
        DdpInputs {
            cluster: Cluster::one_node(8, Interconnect::named(gbps).unwrap()),
            bytes: 125e6 * 4.0,
            bucket_bytes: 25e6,
            compute_ms: compute,
            backward_share: 2.0 / 3.0,
            accumulation: 1,
            samples: 4.0,
            steps: 1000,
            wanted_efficiency: 0.95,
        }
    }

    #[test]
    fn the_volume_does_not_depend_on_the_batch() {
        let small = Ddp::plan(inputs("16", Range::one(100.0))).unwrap();
        let large = Ddp::plan(DdpInputs { samples: 8.0, ..inputs("16", Range::one(200.0)) }).unwrap();
        assert_eq!(small.sync_ms, large.sync_ms);
        // 125 M parameters in fp32 at 16 GB/s: 54.7 ms and what latency adds, not seconds.
        assert!((54.7..60.0).contains(&small.sync_ms), "{}", small.sync_ms);
        assert!(large.with_overlap.efficiency.low > small.with_overlap.efficiency.low);
    }

    #[test]
    fn the_smallest_accumulation_reaches_the_efficiency_and_one_less_does_not() {
        let plan = Ddp::plan(inputs("pcie3x16", Range::one(20.0))).unwrap();
        let at = |accumulation: u64| {
            let inputs =
                DdpInputs { accumulation: accumulation as u32, ..inputs("pcie3x16", Range::one(20.0)) };
            Ddp::plan(inputs).unwrap().with_overlap.efficiency.low
        };
        let smallest = plan.smallest_accumulation;
        assert!(smallest > 1 && at(smallest) >= 0.95 && at(smallest - 1) < 0.95, "{smallest}");
    }

    #[test]
    fn a_range_gives_a_range() {
        let plan = Ddp::plan(inputs("pcie4x16", Range { low: 20.0, high: 40.0 })).unwrap();
        assert!(plan.with_overlap.step_ms.low < plan.with_overlap.step_ms.high);
        assert!(plan.with_overlap.efficiency.low < plan.with_overlap.efficiency.high);
    }

    proptest! {
        /// The closed form is what queueing the buckets one by one gives.
        #[test]
        fn the_queue_of_buckets_is_the_formula(backward in 1.0f64..500.0, buckets in 1u32..60, each in 0.01f64..50.0) {
            let mut done = 0.0f64;
            for bucket in 1..=buckets {
                let ready = backward * f64::from(bucket) / f64::from(buckets);
                done = done.max(ready) + each;
            }
            let formula = exposed_ms(backward, f64::from(buckets), each);
            prop_assert!((done - backward - formula).abs() < 1e-6 * done, "{} {}", done - backward, formula);
        }
    }
}
