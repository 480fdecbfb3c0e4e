//! Settings as arguments of SGLang's server.

use busbound_diagnosis::{Advice, Setting, SettingValue, Target};

use super::common::{Tool, advice, flag, lines};
use crate::Format;
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "sglang",
    suffixes: &["args"],
    about: "Arguments of SGLang's server",
    scope: Scope::Only(AnswerKind::Advice),
    render: Render::Text(|answer, _| Ok(arguments(advice(answer, Format::Sglang)?))),
};

const TOOL: Tool = Tool {
    name: "SGLang",
    target: Target::Sglang,
    usage: "Use: python -m sglang.launch_server --model-path MODEL $(grep -v '^#' THIS_FILE)",
    covers: "it chooses which layers are streamed, how far ahead, and whether CUDA graphs are used. Its host buffers are always \
             pinned and its copies have their own stream; it does not train and has no data loader.",
    notes: &[(
        "offload_group_size",
        "Only models whose code passes its layers to SGLang's offloader stream them; its log names each streamed layer \
         at the start. While a CUDA graph is captured, its copies go to the compute stream and overlap nothing.",
    )],
};

fn arguments(advice: &Advice) -> String {
    let mut out = TOOL.commented_head(advice);
    lines(&mut out, advice.of(Target::Sglang), "#", argument);
    let mut diffusion = advice.of(Target::SglangDiffusion).peekable();
    if diffusion.peek().is_some() {
        out.push_str("# For a diffusion model (sglang serve or generate), these instead:\n");
        lines(&mut out, diffusion, "#", |setting| format!("# {} {}", flag(&setting.key), setting.value));
    }
    out
}

/// Its flags have no opposite.
fn argument(setting: &Setting) -> String {
    match setting.value {
        SettingValue::Flag(true) => flag(&setting.key),
        SettingValue::Flag(false) => format!("# Leave out {}.", flag(&setting.key)),
        _ => format!("{} {}", flag(&setting.key), setting.value),
    }
}
