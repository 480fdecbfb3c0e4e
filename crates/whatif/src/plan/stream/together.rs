//! Several models that run one after another share the memory of a GPU: which one gets how much? A text encoder runs once per
//! image and a denoiser fifty times, so a GB is worth more to the denoiser.

use serde::Serialize;

use super::choice::Choice;
use super::{Stream, StreamInputs, Task, check};
use crate::plan::{BadInput, at_least, at_most, ensure};

/// One of the models.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Component {
    /// Its `gpu_bytes` are ignored: they are what is planned.
    pub inputs: StreamInputs,
    /// Passes of it, relative to those of the others.
    pub uses: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Together {
    /// In the order of the components.
    pub plans: Vec<Stream>,
    /// The memory of each, with its activations. Activations share their memory, because one model runs at a time.
    pub gpu_bytes: Vec<u64>,
    /// All passes of all of them.
    pub total_ms: f64,
}

/// The memory beyond what each needs is given away in this many parts.
const PARTS: usize = 48;

impl Together {
    /// The shortest time of all passes together.
    ///
    /// # Errors
    /// If an input is invalid, or the memory is not enough for a ring of two slots for each.
    pub fn plan(components: &[Component], gpu_bytes: u64) -> Result<Self, BadInput> {
        ensure(!components.is_empty(), "the number of models", "at least one", components.len())?;
        for component in components {
            check(&component.inputs)?;
            let is_number = component.uses.is_finite() && component.uses > 0.0;
            ensure(is_number, "the passes of a model", "above zero", component.uses)?;
        }
        let activations =
            components.iter().map(|component| component.inputs.activation_bytes).max().unwrap_or(0);
        let least: u64 = activations
            + components
                .iter()
                .map(|one| least_bytes(&one.inputs) - one.inputs.activation_bytes)
                .sum::<u64>();
        let Some(room) = gpu_bytes.checked_sub(least) else {
            let valid =
                format!("{}: two blocks of each model, and what is outside of blocks", at_least(least));
            return Err(BadInput { what: "the GPU memory", valid, given: at_most(gpu_bytes) });
        };
        let of_all = |one: &Component| times(one, room).into_iter().map(|ms| one.uses * ms).collect();
        let tables: Vec<Vec<f64>> = components.iter().map(of_all).collect();
        let parts = shared_out(&tables);
        let given: Vec<u64> =
            components.iter().zip(parts).map(|(one, parts)| bytes_with(&one.inputs, room, parts)).collect();
        let plan = |(component, gpu_bytes): (&Component, &u64)| {
            Stream::plan(&StreamInputs { gpu_bytes: *gpu_bytes, ..component.inputs.clone() })
        };
        let plans: Vec<Stream> = components.iter().zip(&given).map(plan).collect::<Result<_, _>>()?;
        let total = components.iter().zip(&plans).map(|(component, plan)| component.uses * plan.expected_ms);
        Ok(Self { total_ms: total.sum(), gpu_bytes: given, plans })
    }
}

/// The least memory that a model runs with: that of a small ring, or of all of it if that is less.
fn least_bytes(inputs: &StreamInputs) -> u64 {
    let all = Choice::given(inputs, vec![true; inputs.blocks.len()], 0);
    Choice::least_bytes(inputs).min(all.used_bytes(inputs))
}

/// The memory of a model with this many parts of the room.
fn bytes_with(inputs: &StreamInputs, room: u64, parts: usize) -> u64 {
    least_bytes(inputs) + (room as f64 * parts as f64 / PARTS as f64) as u64
}

/// What a pass takes with 0, 1, 2, … parts of the room, until more gain nothing.
fn times(component: &Component, room: u64) -> Vec<f64> {
    let mut times: Vec<f64> = Vec::new();
    let inputs = &Task::of(&component.inputs);
    for parts in 0..=PARTS {
        let choice = Choice::best(inputs, bytes_with(inputs, room, parts));
        let step_ms = choice.as_ref().map_or(f64::INFINITY, |choice| choice.step_ms(inputs));
        // More memory never makes it slower.
        times.push(times.last().map_or(step_ms, |before| step_ms.min(*before)));
        if choice.is_some_and(|choice| choice.resident.iter().all(|resident| *resident)) {
            break;
        }
    }
    times
}

/// How many parts each gets, so that the sum of their times is least.
fn shared_out(tables: &[Vec<f64>]) -> Vec<usize> {
    // The least time of the models so far with this many parts, and how many of them the last one has.
    let mut stages: Vec<Vec<(f64, usize)>> = Vec::new();
    for table in tables {
        let before = stages.last();
        let stage = (0..=PARTS).map(|parts| {
            let with = |own: usize| {
                let others = before.map_or(0.0, |before: &Vec<(f64, usize)>| before[parts - own].0);
                (others + table[own], own)
            };
            let all = (0..=parts.min(table.len().saturating_sub(1))).map(with);
            all.min_by(|(a, _), (b, _)| a.total_cmp(b)).unwrap_or((0.0, 0))
        });
        let stage = stage.collect();
        stages.push(stage);
    }
    let mut left = PARTS;
    let mut given: Vec<usize> = stages
        .iter()
        .rev()
        .map(|stage| {
            let own = stage[left].1;
            left -= own;
            own
        })
        .collect();
    given.reverse();
    given
}
