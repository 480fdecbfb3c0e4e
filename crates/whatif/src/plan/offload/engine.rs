//! Which layers does an inference engine stream with given settings, and how long is its step?
//!
//! vLLM's prefetch offloader and SGLang's second offloader choose by one rule: the *last* layers of each group are
//! streamed, and the copy of a streamed layer begins when the one `prefetch_step` before it has run, over the end of a
//! pass too. So a `prefetch_step` of 1 overlaps nothing, and many streamed layers in a row wait for the link.

use super::super::stream::ring::{Turn, pass_ms};
use crate::Range;

/// An engine with settings for streamed layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Streams into a fixed ring of `prefetch_step` buffers: streamed layer j is in buffer j modulo `prefetch_step`.
    Vllm,
    /// Allocates the memory of each copy.
    Sglang,
}

/// `offload_group_size`, `offload_num_in_group` and `offload_prefetch_step`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineSettings {
    pub group_size: u32,
    pub num_in_group: u32,
    pub prefetch_step: u32,
}

/// The layers of one pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EngineLayers {
    pub count: u32,
    pub compute_ms: Range,
    /// The copy of one layer.
    pub copy_ms: f64,
}

/// What an engine does with its settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EngineStep {
    pub settings: EngineSettings,
    pub streamed: u32,
    /// Layers that are in GPU memory at the same time.
    pub on_gpu: u32,
    pub step_ms: Range,
}

/// Larger groups choose almost the same share.
const LARGEST_GROUP: u32 = 24;
const DEEPEST: u32 = 8;
/// Among settings within this share of the shortest step, the one with the least memory is chosen.
const AS_SHORT: f64 = 1.02;

impl EngineSettings {
    /// Per layer: whether it is streamed.
    pub fn streams(self, layers: u32) -> Vec<bool> {
        let resident = self.group_size - self.num_in_group;
        (0..layers).map(|layer| layer % self.group_size >= resident).collect()
    }

    /// `None` if the engine fails or computes with the wrong weights.
    pub fn simulate(self, engine: Engine, layers: EngineLayers) -> Option<EngineStep> {
        self.simulate_within(engine, layers, layers.count)
    }

    /// `None` also with more than `most_on_gpu` layers in GPU memory, which needs no simulation.
    fn simulate_within(self, engine: Engine, layers: EngineLayers, most_on_gpu: u32) -> Option<EngineStep> {
        let streams = self.streams(layers.count);
        let streamed = streams.iter().filter(|streams| **streams).count() as u32;
        let step = self.prefetch_step;
        // SGLang frees a layer that is its own successor.
        if step == 0 || step >= streamed {
            return None;
        }
        // At the end of a pass vLLM fills the buffer of the first layers again. Unless the ring comes out even, another
        // layer that has yet to run is still in that buffer.
        if engine == Engine::Vllm && !streamed.is_multiple_of(step) {
            return None;
        }
        // SGLang allocates the next layer before it frees the one that has run.
        let slots = if engine == Engine::Sglang { step + 1 } else { step };
        let on_gpu = layers.count - streamed + slots;
        if on_gpu > most_on_gpu {
            return None;
        }
        let step_ms = layers.compute_ms.map(|compute_ms| {
            let turn = |&streams: &bool| Turn { compute_ms, copy_ms: streams.then_some(layers.copy_ms) };
            let turns: Vec<Turn> = streams.iter().map(turn).collect();
            pass_ms(&turns, 0.0, step as usize)
        });
        Some(EngineStep { settings: self, streamed, on_gpu, step_ms })
    }
}

/// The settings with the shortest step among those that have at most `most_on_gpu` layers in GPU memory; `None` if none has.
pub fn engine_settings(engine: Engine, layers: EngineLayers, most_on_gpu: u32) -> Option<EngineStep> {
    let groups = 1..=LARGEST_GROUP.min(layers.count);
    let settings = groups.flat_map(|group_size| {
        (1..=group_size).flat_map(move |num_in_group| {
            (1..=DEEPEST).map(move |prefetch_step| EngineSettings { group_size, num_in_group, prefetch_step })
        })
    });
    let simulated = settings.filter_map(|settings| settings.simulate_within(engine, layers, most_on_gpu));
    let steps: Vec<EngineStep> = simulated.collect();
    let total = |step: &EngineStep| step.step_ms.low + step.step_ms.high;
    let shortest = steps.iter().map(total).min_by(f64::total_cmp)?;
    let as_short = steps.into_iter().filter(|step| total(step) <= AS_SHORT * shortest);
    as_short.min_by_key(|step| (step.on_gpu, step.settings))
}

#[cfg(test)]
mod tests {
    use busbound_machine::Machine;

    use super::super::{Offload, OffloadInputs};
    use super::*;

    const BOTH: [Engine; 2] = [Engine::Vllm, Engine::Sglang];

    fn settings(group_size: u32, num_in_group: u32, prefetch_step: u32) -> EngineSettings {
        EngineSettings { group_size, num_in_group, prefetch_step }
    }

    /// 40 layers of 168 MB at 55.3 GB/s.
    fn forty() -> EngineLayers {
        EngineLayers { count: 40, compute_ms: Range::one(1.5), copy_ms: 3.04 }
    }

    /// The example in vLLM's documentation of `offload_group_size`.
    #[test]
    fn the_last_layers_of_each_group_are_streamed() {
        let streams = settings(8, 2, 1).streams(24);
        let chosen: Vec<usize> = (0..24).filter(|&layer| streams[layer]).collect();
        assert_eq!(chosen, [6, 7, 14, 15, 22, 23]);
    }

    /// 19 of 40 were recommended as one group of 40: the link was idle while 21 layers ran, and the rest waited.
    #[test]
    fn one_large_group_stalls_and_one_slot_overlaps_nothing() {
        let step = |settings: EngineSettings| {
            settings.simulate(Engine::Sglang, forty()).unwrap().step_ms.low.round()
        };
        assert_eq!(step(settings(40, 19, 3)), 83.0);
        assert_eq!(step(settings(2, 1, 2)), 61.0);
        // Half of the layers run while nothing is copied.
        assert_eq!(step(settings(1, 1, 1)), (40.0 * (1.5 + 3.04_f64)).round());
    }

    /// Five streamed layers in a ring of two: after the fourth, the first one is copied over the fifth.
    #[test]
    fn a_ring_that_does_not_come_out_even_is_never_chosen_for_vllm() {
        let five = EngineLayers { count: 5, ..forty() };
        assert_eq!(settings(1, 1, 2).simulate(Engine::Vllm, five), None);
        assert!(settings(1, 1, 2).simulate(Engine::Sglang, five).is_some());
        for count in 2..60 {
            let layers = EngineLayers { count, ..forty() };
            let Some(chosen) = engine_settings(Engine::Vllm, layers, count) else { continue };
            assert_eq!(chosen.streamed % chosen.settings.prefetch_step, 0, "{chosen:?}");
        }
    }

    /// Each engine, simulated by its own rules with the settings chosen for it, takes what the plan predicts.
    #[test]
    fn the_engines_take_the_step_that_the_plan_predicts() {
        for (layers, bytes, compute) in
            [(40, 168e6, 1.5), (40, 168e6, 3.2), (32, 405e6, 5.0), (48, 200e6, 10.0), (60, 900e6, 12.0)]
        {
            let inputs = |resident: f64, depth: u32| OffloadInputs {
                layers,
                layer_bytes: bytes,
                compute_ms: Range::one(compute),
                link: Machine::named("h200").unwrap().link_of(None),
                pinned: true,
                depth,
                resident,
                sharing: 1,
                all_to_all_bytes: 0.0,
            };
            let resident = Offload::plan(inputs(0.0, 2)).unwrap().resident_that_hides.high;
            let depth = Offload::plan(inputs(resident, 2)).unwrap().enough_depth.max(1);
            let plan = Offload::plan(inputs(resident, depth)).unwrap();
            for engine in BOTH {
                let chosen = plan.engine_step(engine).unwrap();
                let off = chosen.step_ms.low / plan.step_ms.low - 1.0;
                assert!(
                    off.abs() < 0.05,
                    "{engine:?} {layers} {compute}: {off:.3} {chosen:?} {}",
                    plan.step_ms.low
                );
                assert!(f64::from(chosen.on_gpu) * bytes <= plan.gpu_bytes + bytes, "{chosen:?}");
            }
        }
    }

    #[test]
    fn no_settings_fit_into_too_little_memory() {
        for engine in BOTH {
            assert_eq!(engine_settings(engine, forty(), 0), None);
            assert_eq!(engine_settings(engine, EngineLayers { count: 1, ..forty() }, 40), None);
        }
    }
}
