//! Settings as arguments of `vllm serve`.

use busbound_diagnosis::{Advice, Setting, SettingValue, Target};

use super::common::{Tool, advice, flag, lines};
use crate::Format;
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "vllm",
    suffixes: &["args"],
    about: "Arguments of vllm serve",
    scope: Scope::Only(AnswerKind::Advice),
    render: Render::Text(|answer, _| Ok(arguments(advice(answer, Format::Vllm)?))),
};

const TOOL: Tool = Tool {
    name: "vLLM",
    target: Target::Vllm,
    usage: "Use: vllm serve MODEL $(grep -v '^#' THIS_FILE)",
    covers: "it chooses which layers are streamed, how far ahead, and whether CUDA graphs are used. Its host buffers are always \
             pinned and its copies have their own stream; it does not train and has no data loader.",
    notes: &[
        (
            "offload_prefetch_step",
            "offload_prefetch_step is the number of buffers: 1 overlaps nothing. The number of streamed layers must be a \
             multiple of it: at the end of a pass vLLM would otherwise overwrite a layer that has yet to run.",
        ),
        ("cpu_offload_gb", "cpu_offload_gb reads weights over the bus inside of kernels; no copy shows it."),
    ],
};

fn arguments(advice: &Advice) -> String {
    let mut out = TOOL.commented_head(advice);
    lines(&mut out, advice.of(Target::Vllm), "#", argument);
    out
}

fn argument(setting: &Setting) -> String {
    match setting.value {
        SettingValue::Flag(true) => flag(&setting.key),
        SettingValue::Flag(false) => format!("--no-{}", flag(&setting.key).trim_start_matches('-')),
        _ => format!("{} {}", flag(&setting.key), setting.value),
    }
}
