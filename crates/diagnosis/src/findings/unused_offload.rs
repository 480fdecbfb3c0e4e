//! Does the program offload weights, by its own account, and move none?

use busbound_cause::Resource;
use busbound_trace::Direction;
use serde_json::json;

use super::common::copies::bytes_moved;
use super::common::frameworks::Hooks;
use super::common::{Candidate, Document, Draft, Effort, Fix, Rule};
use crate::activity::copies::Copy;
use crate::analysis::facts::Facts;
use crate::quantity::bytes;
use crate::saving::Saving;
use crate::unit::Unit;

pub(super) static RULE: Rule = Rule {
    title: "Offloading that moves nothing",
    doing: "turning offloading off",
    precondition: "No other phase of the program needs the offloading.",
    basis: "unknown: what the hooks cost beside launching",
    candidate: Candidate::None("Nothing is moved, so no change of copies shortens the step."),
    effort: Effort::Setting,
    unless: &[],
    relieves: &[Resource::Host, Resource::Launch],
    check,
    document: Document {
        meaning: "The program is set to keep weights in host memory, but no step moves any: everything is on the GPU, or the \
                  setting has no effect in this version. The memory that it should free is not free, and its hooks cost host time.",
        computed: "Evidence: a recording of `busbound record` whose command sets offloading of weights (`--cpu-offload-gb`, \
                   `--offload-group-size`, `--dit-layerwise-offload` and similar), or hooks of accelerate or of diffusers' group offloading in \
                   each step; and at most 1 MB copied to the GPU per step. For settings that let kernels read host memory, \
                   only if the link's counters were read and show none. Nothing is saved by a known amount.",
        fix: "If everything fits, turn offloading off. If it should free memory, check the program's log for why it has no effect.",
        code: &[],
        assumes: "Weights that are offloaded are needed in each step.",
    },
};

/// Options that keep weights in host memory; each takes an amount, or nothing.
const OPTIONS: [&str; 7] = [
    "--cpu-offload-gb",
    "--cpu_offload_gb",
    "--offload-group-size",
    "--offload_group_size",
    "--dit-layerwise-offload",
    "--dit-cpu-offload",
    "--text-encoder-cpu-offload",
];

/// Bytes per step. This much is input, not weights.
const MOST_INPUT: f64 = 1e6;

/// The option of the command, with its amount.
fn asked(command: &str) -> Option<String> {
    let mut words = command.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let (name, given) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        if !OPTIONS.contains(&name) {
            continue;
        }
        let value = given.or_else(|| words.peek().copied().filter(|next| !next.starts_with('-')));
        let is_off = value.is_some_and(|value| {
            value.parse::<f64>().is_ok_and(|amount| amount <= 0.0) || value.eq_ignore_ascii_case("false")
        });
        if !is_off {
            return Some(value.map_or(name.to_owned(), |value| format!("{name} {value}")));
        }
    }
    None
}

/// What asks for offloading, in words.
fn account(facts: &Facts<'_>) -> Option<String> {
    let by_command = facts.trace.origin().trace_name.as_deref().and_then(asked);
    if let Some(option) = by_command {
        // Kernels may read the weights from host memory: only counters show that they do not.
        let is_known = !facts.trace.link_traffic().is_empty() && facts.graph.host_memory.kernels.is_empty();
        return is_known.then(|| format!("The command has {option}"));
    }
    let hooks = Hooks::of(facts).filter(|hooks| hooks.are_for_offloading(facts))?;
    Some(format!("Hooks of {} run in each step", hooks.framework.name()))
}

fn check(facts: &Facts<'_>) -> Option<Draft> {
    if facts.unit() == Unit::Trace || facts.time.compute_ms <= 0.0 {
        return None;
    }
    let account = account(facts)?;
    let copies: Vec<&Copy<'_>> = facts.issued_copies().collect();
    let moved = bytes_moved(&copies, Direction::HostToDevice) as f64 / facts.steps();
    if moved > MOST_INPUT {
        return None;
    }
    let unit = facts.unit();
    Some(Draft {
        title: None,
        seen: format!(
            "{account}, but no weights move: {} per {unit} are copied to the GPU, and no kernel is known to read host memory.",
            bytes(moved as u64)
        ),
        evidence: json!({ "account": account, "bytes_per_step": moved }),
        saves: Saving::NONE,
        fix: Fix::new(
            "If everything fits on the GPU, turn offloading off: its hooks cost host time. If it should free memory, check the program's log for why it has no effect.",
        )
        .saving_known(false),
        at: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::asked;

    #[test]
    fn options_of_engines_say_what_is_offloaded() {
        let option = |command: &str| asked(command);
        assert_eq!(
            option("vllm serve m --cpu-offload-gb 10 --port 8000").as_deref(),
            Some("--cpu-offload-gb 10")
        );
        assert_eq!(option("vllm serve m --cpu-offload-gb=2.5").as_deref(), Some("--cpu-offload-gb 2.5"));
        assert_eq!(
            option("sglang --dit-layerwise-offload --port 1").as_deref(),
            Some("--dit-layerwise-offload")
        );
        for command in ["vllm serve m --cpu-offload-gb 0", "x --dit-cpu-offload=False", "python train.py"] {
            assert_eq!(option(command), None, "{command}");
        }
    }
}
