//! Which layers of one model, or of several that run one after another, stay on the GPU? Asked with numbers instead of a
//! PyTorch model; the planner is the one of `busbound.offload`.

use busbound_machine::{HostMemory, LinkFacts};
use serde::Serialize;

use super::{Block, Component, MOST_BLOCKS, Stream, StreamInputs, Together};
use crate::Range;
use crate::plan::{BadInput, ensure};

/// A model of equal layers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayeredModel {
    /// `null` if it is the only one.
    pub name: Option<String>,
    pub layers: u32,
    pub layer_bytes: u64,
    /// Compute time of one layer.
    pub compute_ms: Range,
    /// Passes of it, relative to those of the others.
    pub uses: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlacementInputs {
    pub models: Vec<LayeredModel>,
    pub link: LinkFacts,
    /// Ranks whose copies share one PCIe uplink to the host.
    pub sharing: u32,
    /// GPU memory for weights, ring and `outside_bytes`.
    pub gpu_bytes: u64,
    /// Weights outside of the layers and activations; several models use the same memory for them.
    pub outside_bytes: u64,
}

/// A model and its plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Placed {
    pub model: LayeredModel,
    /// Its share of the GPU's memory.
    pub gpu_bytes: u64,
    pub plan: Stream,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Placement {
    pub inputs: PlacementInputs,
    pub models: Vec<Placed>,
    /// All passes of all models.
    pub total_ms: Range,
    pub expected_ms: f64,
}

impl Placement {
    /// # Errors
    /// If an input is invalid, or the memory is not enough for a ring of two slots for each model.
    pub fn plan(inputs: PlacementInputs) -> Result<Self, BadInput> {
        ensure(inputs.sharing >= 1, "--sharing", "1 or more ranks", inputs.sharing)?;
        let plans = match inputs.models.as_slice() {
            [model] => vec![(inputs.gpu_bytes, Stream::plan(&inputs.stream(model, inputs.gpu_bytes)?)?)],
            models => {
                let component = |model: &LayeredModel| {
                    Ok(Component { inputs: inputs.stream(model, 0)?, uses: model.uses })
                };
                let components: Vec<Component> = models.iter().map(component).collect::<Result<_, _>>()?;
                let together = Together::plan(&components, inputs.gpu_bytes)?;
                together.gpu_bytes.into_iter().zip(together.plans).collect()
            }
        };
        let placed = |(model, (gpu_bytes, plan)): (&LayeredModel, (u64, Stream))| {
            let step_ms = inputs.step_ms(model, gpu_bytes, &plan)?;
            Ok(Placed { model: model.clone(), gpu_bytes, plan: Stream { step_ms, ..plan } })
        };
        let models: Vec<Placed> =
            inputs.models.iter().zip(plans).map(placed).collect::<Result<_, BadInput>>()?;
        let total = |of: fn(&Stream) -> f64| models.iter().map(|one| one.model.uses * of(&one.plan)).sum();
        Ok(Self {
            total_ms: Range { low: total(|plan| plan.step_ms.low), high: total(|plan| plan.step_ms.high) },
            expected_ms: total(|plan| plan.expected_ms),
            models,
            inputs,
        })
    }
}

impl PlacementInputs {
    /// What the planner needs to know about one of the models.
    fn stream(&self, model: &LayeredModel, gpu_bytes: u64) -> Result<StreamInputs, BadInput> {
        let layers = model.layers as usize;
        ensure((1..=MOST_BLOCKS).contains(&layers), "the number of layers", "between 1 and 5000", layers)?;
        let expected = self.link.expected_gbps(model.layer_bytes, HostMemory::Pinned);
        let share = self.link.reachable_gbps() / f64::from(self.sharing);
        let compute_ms = f64::midpoint(model.compute_ms.low, model.compute_ms.high);
        Ok(StreamInputs {
            blocks: vec![Block { bytes: model.layer_bytes, compute_ms }; layers],
            outside_ms: 0.0,
            host_ms: 0.0,
            link: self.link.clone(),
            measured_gbps: Some(expected.min(share)),
            gpu_bytes,
            outside_bytes: 0,
            activation_bytes: self.outside_bytes,
            slots: None,
            training: None,
        })
    }

    /// The pass of a plan, for both ends of the compute time.
    fn step_ms(&self, model: &LayeredModel, gpu_bytes: u64, plan: &Stream) -> Result<Range, BadInput> {
        if model.compute_ms.is_one() {
            return Ok(plan.step_ms);
        }
        let at = |compute: f64| {
            let model = LayeredModel { compute_ms: Range::one(compute), ..model.clone() };
            Stream::predict(&self.stream(&model, gpu_bytes)?, plan.resident.clone(), plan.slots)
        };
        let (low, high) = (at(model.compute_ms.low)?, at(model.compute_ms.high)?);
        Ok(Range { low: low.step_ms.low, high: high.step_ms.high })
    }
}

pub const FORMULAS: &[&str] = &[
    "a pass: layers are copied in order, each into a slot of a ring as soon as the layer in that slot has run; the copies go on into the next pass",
    "limit = the longer of compute and streamed bytes / expected rate of a pinned copy of one layer; the link is shared fairly with other ranks",
    "memory = resident layers + slots × the largest streamed layer + --outside; resident layers and the number of slots are those with the shortest simulated pass",
    "several models: each gets the memory that makes the sum of all passes shortest; --outside is needed once, because one model runs at a time",
    "range: compute 5% faster (no gaps between layers) to 13% slower (a GPU that copies while it computes lowers its clock), copies 3% faster to 3.5% slower, 60 µs of host time per streamed layer",
];

#[cfg(test)]
mod tests {
    use busbound_machine::Machine;

    use super::*;

    fn model(name: &str, layers: u32, compute_ms: f64, uses: f64) -> LayeredModel {
        let compute_ms = Range::one(compute_ms);
        LayeredModel { name: Some(name.to_owned()), layers, layer_bytes: 405_000_000, compute_ms, uses }
    }

    fn inputs(models: Vec<LayeredModel>, gpu_bytes: u64) -> PlacementInputs {
        let link = Machine::named("h200").unwrap().link_of(None);
        PlacementInputs { models, link, sharing: 1, gpu_bytes, outside_bytes: 500_000_000 }
    }

    /// One model gets what `busbound.offload` plans for it.
    #[test]
    fn one_model_is_planned_as_by_the_engine() {
        let inputs = inputs(vec![model("decoder", 16, 1.0, 1.0)], 4_700_000_000);
        let plan = Placement::plan(inputs.clone()).unwrap();
        let alone = Stream::plan(&inputs.stream(&inputs.models[0], 4_700_000_000).unwrap()).unwrap();
        assert_eq!(plan.models[0].plan, alone);
        assert_eq!((plan.expected_ms, plan.total_ms), (alone.expected_ms, alone.step_ms));
        // 4.7 GB without 0.5 GB and two slots are eight layers; the other eight take 8 × 7.3 ms.
        assert_eq!(alone.resident.iter().filter(|resident| **resident).count(), 8);
        assert!((plan.expected_ms - 8.0 * 405.0 / 55.4).abs() < 1.0, "{}", plan.expected_ms);
    }

    #[test]
    fn a_range_of_compute_times_widens_the_range_of_the_pass() {
        let range = LayeredModel { compute_ms: Range { low: 8.0, high: 12.0 }, ..model("a", 16, 1.0, 1.0) };
        let plan = Placement::plan(inputs(vec![range], 2_000_000_000)).unwrap();
        assert!((plan.total_ms.low - 16.0 * 8.0 * 0.95).abs() < 1.0, "{:?}", plan.total_ms);
        assert!((plan.total_ms.high - 16.0 * 12.0 * 1.13).abs() < 2.0, "{:?}", plan.total_ms);
    }

    #[test]
    fn ranks_that_share_a_link_get_their_share_of_it() {
        let alone = inputs(vec![model("a", 16, 1.0, 1.0)], 1_500_000_000);
        let four = PlacementInputs { sharing: 4, ..alone.clone() };
        let (alone, four) = (Placement::plan(alone).unwrap(), Placement::plan(four).unwrap());
        assert!((four.expected_ms / alone.expected_ms - 4.0).abs() < 0.05);
    }

    /// A text encoder runs once, a denoiser fifty times: the memory goes to the denoiser.
    #[test]
    fn memory_goes_to_the_model_that_runs_often() {
        let models = vec![model("text", 10, 1.0, 1.0), model("denoiser", 10, 1.0, 50.0)];
        let plan = Placement::plan(inputs(models, 6_000_000_000)).unwrap();
        let resident: Vec<usize> =
            plan.models.iter().map(|one| one.plan.resident.iter().filter(|stays| **stays).count()).collect();
        assert!(resident[1] > resident[0], "{resident:?}");
        let used: u64 = plan.models.iter().map(|one| one.plan.used_bytes).sum();
        assert!(used - 500_000_000 <= 6_000_000_000, "--outside is needed once: {used}");
        let passes = plan.models[0].plan.expected_ms + 50.0 * plan.models[1].plan.expected_ms;
        assert!((plan.expected_ms - passes).abs() < 1e-9);
    }

    #[test]
    fn too_little_memory_says_how_much_is_needed() {
        let error = Placement::plan(inputs(vec![model("a", 16, 1.0, 1.0)], 1_000_000_000)).unwrap_err();
        assert!(error.to_string().starts_with("the GPU memory must be at least 1.31 GB:"), "{error}");
    }
}
