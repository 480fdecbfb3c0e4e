//! Settings as a call of diffusers' `apply_group_offloading`.

use busbound_diagnosis::{Advice, Target};

use super::common::{Tool, advice, lines};
use crate::Format;
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "diffusers",
    suffixes: &["py"],
    about: "Python for diffusers' group offloading",
    scope: Scope::Only(AnswerKind::Advice),
    render: Render::Text(|answer, _| Ok(snippet(advice(answer, Format::Diffusers)?))),
};

const TOOL: Tool = Tool {
    name: "diffusers",
    target: Target::Diffusers,
    usage: "Use: call this once after the model is loaded, and do not move the model to the GPU afterwards.",
    covers: "group offloading chooses what is moved together, and whether a stream and pinned memory are used. To keep \
             everything on the GPU, do not call it.",
    notes: &[
        ("offload_type", "Everything is offloaded: no setting keeps a share of the layers on the GPU."),
        ("use_stream", "use_stream pins the weights in host memory: they take that much of it."),
        ("record_stream", "Without record_stream the host waits at the end of every group."),
    ],
};

fn snippet(advice: &Advice) -> String {
    let mut out = TOOL.commented_head(advice);
    let mut settings = advice.of(Target::Diffusers).peekable();
    if settings.peek().is_none() {
        return out;
    }
    out.push_str("import torch\nfrom diffusers.hooks import apply_group_offloading\n\n\n");
    out.push_str("def offload(model):\n    apply_group_offloading(\n        model,\n");
    out.push_str(
        "        onload_device=torch.device(\"cuda\"),\n        offload_device=torch.device(\"cpu\"),\n",
    );
    lines(&mut out, settings, "        #", |setting| {
        format!("        {}={},", setting.key, setting.value.as_python())
    });
    out.push_str("    )\n");
    out
}
