//! The text of a plan for the blocks of a KV cache.

use busbound_diagnosis::quantity::{bytes, count, milliseconds, plural};
use busbound_machine::ScatterSource;
use busbound_machine::bench::{Direction, FEWEST_BLOCKS, MOST_BLOCKS, ScatterMethod};
use busbound_whatif::plan::kv::{
    FORMULAS, KvBreakEven, KvInputs, KvLayout, KvMove, KvPieces, KvPlan, KvThresholds,
};

use super::{PlanTable, PlanText};

pub(super) fn text(plan: &KvPlan) -> PlanText {
    PlanText {
        kind: "kv",
        statement: statement(plan),
        inputs: inputs(plan),
        tables: tables(plan),
        notes: notes(plan),
        formulas: FORMULAS,
    }
}

fn tables(plan: &KvPlan) -> Vec<PlanTable> {
    let mut tables = vec![best(plan)];
    tables.extend([Direction::H2d, Direction::D2h].map(|direction| every_method(plan, direction)));
    tables.push(thresholds(plan));
    tables.extend(break_even(plan));
    tables
}

/// The most blocks, H2D, in the most scattered layout.
fn headline(plan: &KvPlan) -> Option<&KvMove> {
    let first = plan.inputs.pieces.first();
    let reload = plan.moves.iter().filter(|one| one.direction == Direction::H2d);
    reload.filter(|one| Some(&one.pieces) == first).max_by_key(|one| one.blocks)
}

fn statement(plan: &KvPlan) -> String {
    let Some(one) = headline(plan) else { return String::new() };
    let best = one.choice.best();
    let pieces = one.blocks.saturating_mul(one.pieces.per_block);
    let mut text = format!(
        "To reload {} ({} of {}), use the {}: {} at {}{}",
        plural(one.blocks, "block", "blocks"),
        plural(pieces, "piece", "pieces"),
        size(one.pieces.piece_bytes),
        best.method.words(),
        milliseconds(best.us / 1e3),
        gbps(best.gbps),
        compared(one)
    );
    if plan.source == ScatterSource::Assumed {
        text.push_str(", with assumed costs");
    }
    text.push('.');
    if let Some(even) = plan.break_even.first() {
        text.push_str(&format!(" {}", reload_or_recompute(even)));
    }
    text
}

fn compared(one: &KvMove) -> String {
    let best = one.choice.best();
    match one.choice.of(ScatterMethod::Loop) {
        Some(cost) if best.method != ScatterMethod::Loop => {
            format!(", {:.1} times as fast as a loop of copies", cost.us / best.us)
        }
        _ => String::new(),
    }
}

fn reload_or_recompute(even: &KvBreakEven) -> String {
    match even.reload_from_tokens {
        Some(tokens) => format!("Reloading beats recomputing from {} tokens on.", count(tokens)),
        None => "Recomputing is faster than reloading, however many tokens.".to_owned(),
    }
}

fn gbps(rate: f64) -> String {
    format!("{} GB/s", figure(rate))
}

fn figure(rate: f64) -> String {
    if rate < 1.0 { format!("{rate:.2}") } else { format!("{rate:.1}") }
}

fn inputs(plan: &KvPlan) -> Vec<(&'static str, String)> {
    let KvInputs { link, pageable, block_tokens, shape, prefill_tokens_per_s, .. } = &plan.inputs;
    let mut inputs = Vec::new();
    if let (Some(shape), Some(block)) = (shape, plan.inputs.pieces.last()) {
        let size = size(block.piece_bytes);
        inputs.push((
            "model",
            format!("{} layers, {} KV heads of {}", shape.layers, shape.kv_heads, shape.head_dim),
        ));
        inputs.push(("block", format!("{block_tokens} tokens, {size}")));
    } else {
        inputs.push(("block", format!("{block_tokens} tokens")));
    }
    let memory = if *pageable { "pageable" } else { "pinned" };
    inputs.push(("link", format!("{} ({}), {memory} host memory", link.name, link.source.describe())));
    inputs.push((
        "methods",
        match plan.source {
            ScatterSource::Measured => "measured on this machine".to_owned(),
            ScatterSource::Assumed => {
                "assumed, from one H200 host: `busbound bench --suite copy,scatter` measures this one"
                    .to_owned()
            }
        },
    ));
    inputs.extend(
        prefill_tokens_per_s.map(|rate| ("prefill", format!("{} tokens/s", count(rate.round() as u64)))),
    );
    inputs
}

fn best(plan: &KvPlan) -> PlanTable {
    let row = |one: &KvMove| {
        let best = one.choice.best();
        let mut row = what(one);
        row.extend([
            best.method.words().to_owned(),
            milliseconds(best.us / 1e3),
            figure(best.gbps),
            count(one.equal_prefill_tokens_per_s.round() as u64),
        ]);
        row
    };
    let titles = ["pieces", "of", "way", "best", "time", "GB/s", "= prefill tokens/s"];
    PlanTable::new(&titles, plan.moves.iter().map(row).collect())
}

/// `4,096`, `32 KiB (a layer)`, `H2D`.
fn what(one: &KvMove) -> Vec<String> {
    vec![
        count(one.blocks.saturating_mul(one.pieces.per_block)),
        piece(&one.pieces),
        one.direction.words().to_owned(),
    ]
}

fn piece(pieces: &KvPieces) -> String {
    let size = size(pieces.piece_bytes);
    match pieces.layout {
        KvLayout::KeyOrValue => format!("{size} (K or V)"),
        KvLayout::Layer => format!("{size} (a layer)"),
        KvLayout::Block => format!("{size} (a block)"),
    }
}

/// Time and GB/s of each method.
fn every_method(plan: &KvPlan, direction: Direction) -> PlanTable {
    let cost = |one: &KvMove, method| {
        let cost = one.choice.of(method);
        cost.map_or("–".to_owned(), |cost| {
            format!("{}, {}", milliseconds(cost.us / 1e3), figure(cost.gbps))
        })
    };
    let row = |one: &KvMove| {
        let pieces = one.blocks.saturating_mul(one.pieces.per_block);
        let mut row = vec![count(pieces), size(one.pieces.piece_bytes)];
        row.extend(ScatterMethod::ALL.map(|method| cost(one, method)));
        row
    };
    let way = format!("{} of", direction.words());
    let titles = ["pieces", &way, "loop, GB/s", "batch, GB/s", "kernel, GB/s", "gathered, GB/s"];
    let these = plan.moves.iter().filter(|one| one.direction == direction);
    PlanTable::new(&titles, these.map(row).collect())
}

fn thresholds(plan: &KvPlan) -> PlanTable {
    let number = |from: Option<u64>| from.map_or("never".to_owned(), pieces_from);
    let row = |one: &KvThresholds| {
        vec![
            size(one.piece_bytes),
            one.direction.words().to_owned(),
            number(one.together_from_pieces),
            number(one.kernel_from_pieces),
            one.copy_engine_from_bytes.map_or("–".to_owned(), size),
        ]
    };
    let titles =
        ["pieces of", "way", "no loop from pieces", "kernel from pieces", "copy engine from piece size"];
    PlanTable::new(&titles, plan.thresholds.iter().map(row).collect())
}

/// Fewer pieces than `bench` measures are extrapolated, which is not good enough for a threshold.
fn pieces_from(pieces: u64) -> String {
    let fewest = u64::from(FEWEST_BLOCKS);
    if pieces <= fewest { format!("≤ {fewest}") } else { count(pieces) }
}

/// `32 KiB`, `2 MiB`: blocks are powers of two, and so are the thresholds of engines.
fn size(amount: u64) -> String {
    match amount {
        whole if whole.is_multiple_of(1 << 20) => format!("{} MiB", whole >> 20),
        whole if whole.is_multiple_of(1 << 10) => format!("{} KiB", whole >> 10),
        other => bytes(other),
    }
}

fn break_even(plan: &KvPlan) -> Option<PlanTable> {
    let tokens =
        |from: Option<u64>| from.map_or("never".to_owned(), |tokens| format!("{} tokens", count(tokens)));
    let row = |even: &KvBreakEven| {
        vec![piece(&even.pieces), tokens(even.reload_from_tokens), tokens(even.swap_from_tokens)]
    };
    let rows: Vec<Vec<String>> = plan.break_even.iter().map(row).collect();
    let titles = ["pieces of", "reload beats recompute from", "write and reload from"];
    (!rows.is_empty()).then(|| PlanTable::new(&titles, rows))
}

fn notes(plan: &KvPlan) -> Vec<String> {
    let mut notes = vec![format!(
        "`bench` measures {FEWEST_BLOCKS} to {} pieces of 4 KiB to 4 MiB; times of fewer, more or larger pieces are extrapolated.",
        count(u64::from(MOST_BLOCKS))
    )];
    let h2d = plan.thresholds.iter().find(|one| one.direction == Direction::H2d);
    if let Some(one) = h2d.filter(|_| !plan.inputs.pageable) {
        notes.push(vllm(one));
        notes.push(sglang(plan));
    }
    notes.push(format!(
        "LMCache and other engines that gather chunks on the GPU: chunks of at least {} reach 90% of the link's rate.",
        plural(plan.contiguous_tokens, "token", "tokens")
    ));
    notes.push(
        "The kernel takes multiprocessors from the model while it runs, and the copy engine takes none; neither is part of these times. Loops are in C: in Python each copy takes 15 to 25 µs.".to_owned(),
    );
    if plan.inputs.prefill_tokens_per_s.is_some() {
        notes.push(
            "Recomputing is taken at the prefill rate whatever the number of tokens: few tokens take longer than that (a pass reads all weights), and long contexts too (attention).".to_owned(),
        );
    }
    notes
}

fn vllm(one: &KvThresholds) -> String {
    let engine = one.copy_engine_from_bytes.map_or("above every size".to_owned(), size);
    let kernel = one.kernel_from_pieces.map_or("this kernel is never faster".to_owned(), |pieces| {
        format!("this kernel is faster from {} pieces on", pieces_from(pieces))
    });
    format!(
        "vLLM's offloading connector takes a kernel for H2D pieces below `THRESHOLD_BYTES` (28 KiB) if there are at least `MIN_N` (16), tuned on an H100 (vllm#57555). With the kernel of `bench`, which is not vLLM's, the size is {engine}; for pieces of {} {kernel}.",
        size(one.piece_bytes)
    )
}

fn sglang(plan: &KvPlan) -> String {
    let is_kernel = headline(plan).is_some_and(|one| one.choice.best().method == ScatterMethod::Kernel);
    format!(
        "SGLang's hierarchical cache takes `--hicache-io-backend kernel` or `direct`. Here: {}.",
        if is_kernel { "kernel" } else { "direct" }
    )
}
