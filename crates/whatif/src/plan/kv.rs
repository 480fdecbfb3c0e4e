//! How do the blocks of a KV cache cross the bus fastest, and is reloading them faster than computing them again?
//!
//! A block of a cache is one piece of memory or many: K and V of each layer usually lie apart. The pieces are what the
//! bus sees.

use busbound_machine::bench::{Direction, ScatterMethod};
use busbound_machine::{Blocks, HostMemory, LinkFacts, ScatterChoice, ScatterSource};
use serde::Serialize;

use super::contention::chunk;
use super::{BadInput, ensure};

/// The part of a model that decides the size of its KV cache, per GPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KvShape {
    pub layers: u32,
    /// On one GPU.
    pub kv_heads: u32,
    pub head_dim: u32,
    pub bytes_per_value: f64,
}

impl KvShape {
    /// Bytes of K, or of V, of one layer.
    fn half_layer(&self, tokens: u32) -> f64 {
        f64::from(tokens) * f64::from(self.kv_heads) * f64::from(self.head_dim) * self.bytes_per_value
    }
}

/// What lies together in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum KvLayout {
    /// K of one layer, and V of one layer.
    KeyOrValue,
    /// K and V of one layer.
    Layer,
    /// All layers.
    Block,
}

/// How a block of the cache lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KvPieces {
    pub layout: KvLayout,
    pub piece_bytes: u64,
    pub per_block: u64,
}

impl KvPieces {
    fn of(&self, blocks: u64, direction: Direction, memory: HostMemory) -> Blocks {
        Blocks {
            direction,
            memory,
            block_bytes: self.piece_bytes,
            blocks: blocks.saturating_mul(self.per_block),
        }
    }
}

/// The size of a block: given, or from a model.
#[derive(Debug, Clone, PartialEq)]
pub enum KvBlock {
    /// One or several sizes to compare, each in one piece.
    Bytes(Vec<u64>),
    Shape(KvShape),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KvInputs {
    pub link: LinkFacts,
    pub pageable: bool,
    pub block_tokens: u32,
    /// `null` if the size was given.
    pub shape: Option<KvShape>,
    /// The layouts to compare.
    pub pieces: Vec<KvPieces>,
    /// Numbers of blocks to compare.
    pub blocks: Vec<u64>,
    pub prefill_tokens_per_s: Option<f64>,
}

/// What the user asks.
#[derive(Debug, Clone, PartialEq)]
pub struct KvQuestion {
    pub link: LinkFacts,
    pub pageable: bool,
    pub block_tokens: u32,
    pub block: KvBlock,
    pub blocks: Vec<u64>,
    pub prefill_tokens_per_s: Option<f64>,
}

/// Some blocks in one direction, by every method.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KvMove {
    pub pieces: KvPieces,
    pub direction: Direction,
    pub blocks: u64,
    pub choice: ScatterChoice,
    /// A prefill of this rate takes as long.
    pub equal_prefill_tokens_per_s: f64,
}

/// From how many tokens on moving beats computing again; `null` if not up to the most blocks that are considered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KvBreakEven {
    pub pieces: KvPieces,
    /// The blocks are in host memory already.
    pub reload_from_tokens: Option<u64>,
    /// They are also written there, and something waits for that.
    pub swap_from_tokens: Option<u64>,
}

/// When to use which method, for engines that take a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KvThresholds {
    pub direction: Direction,
    pub piece_bytes: u64,
    /// From this many pieces of this size on, one call or one kernel is faster than a loop of copies.
    pub together_from_pieces: Option<u64>,
    /// From this many pieces of this size on, the kernel is faster than the copy engine.
    pub kernel_from_pieces: Option<u64>,
    /// For the most blocks asked for: from this piece size on, the copy engine is as fast as the kernel.
    pub copy_engine_from_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KvPlan {
    pub inputs: KvInputs,
    pub source: ScatterSource,
    pub moves: Vec<KvMove>,
    /// Empty without a prefill rate.
    pub break_even: Vec<KvBreakEven>,
    pub thresholds: Vec<KvThresholds>,
    /// The fewest tokens whose contiguous copy reaches 90% of the rate of large ones.
    pub contiguous_tokens: u64,
}

/// A method must be this much faster before a threshold prefers it.
const CLEARLY: f64 = 1.05;
/// Blocks, and pieces, that break-evens and thresholds consider.
const MOST: u64 = 1 << 16;

impl KvPlan {
    /// # Errors
    /// If a size, a number or a rate is zero.
    pub fn plan(question: KvQuestion) -> Result<Self, BadInput> {
        let inputs = KvInputs::of(question)?;
        let both = [Direction::H2d, Direction::D2h];
        let mut moves = Vec::new();
        let mut thresholds = Vec::new();
        for &pieces in &inputs.pieces {
            for direction in both {
                moves.extend(inputs.blocks.iter().map(|&blocks| inputs.moved(pieces, blocks, direction)));
                thresholds.push(inputs.thresholds(pieces, direction));
            }
        }
        let break_even = inputs.prefill_tokens_per_s.map_or(Vec::new(), |prefill| {
            inputs.pieces.iter().map(|&pieces| inputs.break_even(pieces, prefill)).collect()
        });
        let (chunk_bytes, _) = chunk(&inputs.link);
        let contiguous_tokens = (chunk_bytes as f64 / inputs.token_bytes()).ceil() as u64;
        let is_measured = |one: &KvMove| one.choice.source == ScatterSource::Measured;
        let source =
            if moves.iter().all(is_measured) { ScatterSource::Measured } else { ScatterSource::Assumed };
        Ok(Self { inputs, source, moves, break_even, thresholds, contiguous_tokens })
    }
}

impl KvInputs {
    fn of(question: KvQuestion) -> Result<Self, BadInput> {
        let KvQuestion { link, pageable, block_tokens, block, blocks, prefill_tokens_per_s } = question;
        ensure(block_tokens > 0, "--block-tokens", "above zero", block_tokens)?;
        let valid = |blocks: &u64| (1..=MOST).contains(blocks);
        let wrong = blocks.iter().find(|blocks| !valid(blocks)).copied();
        ensure(
            wrong.is_none() && !blocks.is_empty(),
            "--blocks",
            "between 1 and 65536",
            wrong.unwrap_or_default(),
        )?;
        let prefill = prefill_tokens_per_s.unwrap_or(1.0);
        ensure(prefill > 0.0 && prefill.is_finite(), "--prefill-tokens-per-s", "above zero", prefill)?;
        let (pieces, shape) = match block {
            KvBlock::Bytes(sizes) => {
                let whole =
                    |&piece_bytes: &u64| KvPieces { layout: KvLayout::Block, piece_bytes, per_block: 1 };
                (sizes.iter().map(whole).collect(), None)
            }
            KvBlock::Shape(shape) => (layouts(&shape, block_tokens)?, Some(shape)),
        };
        Ok(Self { link, pageable, block_tokens, shape, pieces, blocks, prefill_tokens_per_s })
    }

    fn memory(&self) -> HostMemory {
        if self.pageable { HostMemory::Pageable } else { HostMemory::Pinned }
    }

    /// Bytes of one token, of the first layout.
    fn token_bytes(&self) -> f64 {
        let bytes = self.pieces.first().map_or(1.0, |one| (one.piece_bytes * one.per_block) as f64);
        (bytes / f64::from(self.block_tokens)).max(f64::MIN_POSITIVE)
    }

    fn scatter(&self, pieces: KvPieces, blocks: u64, direction: Direction) -> ScatterChoice {
        self.link.scatter(&pieces.of(blocks, direction, self.memory()))
    }

    fn moved(&self, pieces: KvPieces, blocks: u64, direction: Direction) -> KvMove {
        let choice = self.scatter(pieces, blocks, direction);
        let tokens = (blocks * u64::from(self.block_tokens)) as f64;
        let equal_prefill_tokens_per_s = tokens / (choice.best().us / 1e6);
        KvMove { pieces, direction, blocks, choice, equal_prefill_tokens_per_s }
    }

    fn break_even(&self, pieces: KvPieces, prefill: f64) -> KvBreakEven {
        let us = |blocks, direction| self.scatter(pieces, blocks, direction).best().us;
        let computed = |blocks: u64| (blocks * u64::from(self.block_tokens)) as f64 / prefill * 1e6;
        let tokens = |blocks: Option<u64>| blocks.map(|blocks| blocks * u64::from(self.block_tokens));
        let reload = first_that(|blocks| us(blocks, Direction::H2d) <= computed(blocks));
        let swap =
            first_that(|blocks| us(blocks, Direction::H2d) + us(blocks, Direction::D2h) <= computed(blocks));
        KvBreakEven { pieces, reload_from_tokens: tokens(reload), swap_from_tokens: tokens(swap) }
    }

    fn thresholds(&self, pieces: KvPieces, direction: Direction) -> KvThresholds {
        let at = |piece_bytes: u64, count: u64| {
            self.scatter(KvPieces { piece_bytes, per_block: 1, ..pieces }, count, direction)
        };
        let piece_bytes = pieces.piece_bytes;
        let most = self.blocks.iter().max().copied().unwrap_or(1).saturating_mul(pieces.per_block);
        // In steps of 4 KiB, which is what caches are made of.
        let engine = |quarter: u64| !is_kernel_faster(&at(quarter * 4096, most));
        let has_kernel = at(piece_bytes, most).of(ScatterMethod::Kernel).is_some();
        KvThresholds {
            direction,
            piece_bytes,
            together_from_pieces: first_that(|count| is_together_faster(&at(piece_bytes, count))),
            kernel_from_pieces: first_that(|count| is_kernel_faster(&at(piece_bytes, count))),
            copy_engine_from_bytes: first_that(engine).filter(|_| has_kernel).map(|quarter| quarter * 4096),
        }
    }
}

/// The layouts of one block of this model, the most scattered first.
fn layouts(shape: &KvShape, tokens: u32) -> Result<Vec<KvPieces>, BadInput> {
    let (half, layers) = (shape.half_layer(tokens), u64::from(shape.layers));
    ensure(
        half >= 1.0 && layers > 0,
        "--layers, --kv-heads, --head-dim",
        "above zero",
        format!("{} × {} × {}", shape.layers, shape.kv_heads, shape.head_dim),
    )?;
    let half = half as u64;
    Ok(vec![
        KvPieces { layout: KvLayout::KeyOrValue, piece_bytes: half, per_block: 2 * layers },
        KvPieces { layout: KvLayout::Layer, piece_bytes: 2 * half, per_block: layers },
        KvPieces { layout: KvLayout::Block, piece_bytes: 2 * half * layers, per_block: 1 },
    ])
}

fn is_together_faster(choice: &ScatterChoice) -> bool {
    let (one_by_one, best) = (choice.of(ScatterMethod::Loop), choice.best());
    one_by_one.is_some_and(|cost| cost.us > CLEARLY * best.us)
}

fn is_kernel_faster(choice: &ScatterChoice) -> bool {
    let engine = [ScatterMethod::Loop, ScatterMethod::Batch].into_iter().filter_map(|one| choice.of(one));
    let engine = engine.map(|cost| cost.us).fold(f64::INFINITY, f64::min);
    choice.of(ScatterMethod::Kernel).is_some_and(|kernel| engine > CLEARLY * kernel.us)
}

/// The smallest number from which this holds for all larger ones, up to [`MOST`]. It is looked for among powers of two, and
/// then between the last that fails and the first that holds.
fn first_that(holds: impl Fn(u64) -> bool) -> Option<u64> {
    let powers = || (0..=MOST.ilog2()).map(|power| 1u64 << power);
    let mut low = match powers().rev().find(|&number| !holds(number)) {
        None => return Some(1),
        Some(MOST) => return None,
        Some(fails) => fails,
    };
    let mut high = 2 * low;
    while high - low > 1 {
        let middle = low.midpoint(high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

pub const FORMULAS: &[&str] = &[
    "pieces = blocks × pieces per block; a piece of a layer is tokens × KV heads × head size × bytes per value, for K and for V",
    "time of a method = what `busbound bench --suite scatter` measured for that many pieces of that size, until the host knows that all arrived; between its points in proportion, beyond them at the last rate",
    "reload or recompute: time H2D ≤ tokens / prefill rate; swap: time D2H + time H2D ≤ tokens / prefill rate",
    "thresholds: the smallest number or size from which it holds for all larger ones; faster means by 5% or more",
];

#[cfg(test)]
mod tests {
    use busbound_machine::Machine;

    use super::*;

    const LLAMA_8B: KvShape = KvShape { layers: 32, kv_heads: 8, head_dim: 128, bytes_per_value: 2.0 };

    fn question(block: KvBlock) -> KvQuestion {
        KvQuestion {
            link: Machine::default().link_of(Some("NVIDIA H200")),
            pageable: false,
            block_tokens: 16,
            block,
            blocks: vec![64, 256],
            prefill_tokens_per_s: Some(10_000.0),
        }
    }

    /// 64 tensors of 32 KiB, as in vllm#38460.
    #[test]
    fn a_block_of_a_model_is_many_pieces_or_one() {
        let plan = KvPlan::plan(question(KvBlock::Shape(LLAMA_8B))).unwrap();
        let sizes: Vec<(u64, u64)> =
            plan.inputs.pieces.iter().map(|one| (one.piece_bytes, one.per_block)).collect();
        assert_eq!(sizes, [(32 << 10, 64), (64 << 10, 32), (2 << 20, 1)]);
        assert_eq!((plan.moves.len(), plan.source), (12, ScatterSource::Assumed));
        // 128 KiB per token; 1 MiB and 2 MiB reach 88% and 92% of the rate.
        assert_eq!(plan.contiguous_tokens, 16);
        // 64 pieces of 2 MiB take the link's time and a wait.
        let whole = &plan.moves[8];
        assert_eq!((whole.blocks, whole.pieces.layout), (64, KvLayout::Block));
        assert!((whole.choice.best().us / 2430.0 - 1.0).abs() < 0.05, "{whole:?}");
    }

    /// 128 KiB per token are 2.4 µs at 55 GB/s; computing a token takes 100 µs at 10,000 tokens/s, and 1 µs at a million.
    #[test]
    fn reloading_beats_a_slow_prefill_from_the_first_block_and_a_fast_one_never() {
        let even = |prefill: f64| {
            let asked =
                KvQuestion { prefill_tokens_per_s: Some(prefill), ..question(KvBlock::Shape(LLAMA_8B)) };
            KvPlan::plan(asked).unwrap().break_even[2]
        };
        assert_eq!(even(10_000.0).reload_from_tokens, Some(16));
        assert_eq!(even(10_000.0).swap_from_tokens, Some(16));
        assert_eq!(even(1e6).reload_from_tokens, None);
        // Reloading just wins once the wait at its end does not matter; twice the bytes do not.
        let close = even(400_000.0);
        assert!(close.reload_from_tokens.is_some_and(|tokens| tokens > 32), "{close:?}");
        assert_eq!(close.swap_from_tokens, None);
        let without = KvQuestion { prefill_tokens_per_s: None, ..question(KvBlock::Bytes(vec![1 << 20])) };
        assert!(KvPlan::plan(without).unwrap().break_even.is_empty());
    }

    #[test]
    fn thresholds_are_where_a_method_starts_to_win() {
        let small = KvPlan::plan(question(KvBlock::Bytes(vec![8 << 10]))).unwrap().thresholds[0];
        assert!(small.kernel_from_pieces.is_some_and(|pieces| pieces <= 64), "{small:?}");
        assert!(small.together_from_pieces.is_some_and(|pieces| pieces <= 16), "{small:?}");
        let pageable = KvQuestion { pageable: true, ..question(KvBlock::Bytes(vec![8 << 10])) };
        let pageable = KvPlan::plan(pageable).unwrap().thresholds[0];
        assert_eq!((pageable.kernel_from_pieces, pageable.copy_engine_from_bytes), (None, None));
    }

    #[test]
    fn the_first_that_holds_for_all_larger_ones_is_exact() {
        assert_eq!(first_that(|number| number >= 37), Some(37));
        assert_eq!(first_that(|_| true), Some(1));
        assert_eq!(first_that(|number| number < 37), None);
    }

    #[test]
    fn zero_is_refused() {
        let none = KvQuestion { blocks: vec![0], ..question(KvBlock::Bytes(vec![4096])) };
        assert_eq!(
            KvPlan::plan(none).unwrap_err().to_string(),
            "--blocks must be between 1 and 65536, not 0"
        );
        let flat = KvBlock::Shape(KvShape { head_dim: 0, ..LLAMA_8B });
        assert!(KvPlan::plan(question(flat)).is_err());
    }
}
