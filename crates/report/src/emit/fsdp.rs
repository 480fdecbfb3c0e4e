//! Settings as Python that calls FSDP2's `fully_shard`.

use std::fmt::Write;

use busbound_diagnosis::{Advice, SettingValue, Target};

use super::common::{Tool, advice, reason};
use crate::Format;
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "fsdp",
    suffixes: &["py"],
    about: "Python for FSDP2 (fully_shard)",
    scope: Scope::Only(AnswerKind::Advice),
    render: Render::Text(|answer, _| Ok(snippet(advice(answer, Format::Fsdp)?))),
};

const TOOL: Tool = Tool {
    name: "FSDP2",
    target: Target::Fsdp2,
    usage: "Use: shard(model, blocks), with the list of the model's blocks in the order in which they run.",
    covers: "fully_shard chooses what is gathered together, whether parameters stay in host memory, and what is prefetched.",
    notes: &[
        (
            "offload_policy",
            "Every block gets the same policy; one that is sharded without it stays on the GPU.",
        ),
        (
            "set_modules_to_forward_prefetch",
            "With one rank, FSDP2 does not prefetch by itself: there is no all-gather to start early. The explicit prefetch below is \
         needed, and where the version ignores it at one rank, copies do not overlap.",
        ),
    ],
};

fn snippet(advice: &Advice) -> String {
    let mut out = TOOL.commented_head(advice);
    let find = |key: &str| advice.of(Target::Fsdp2).find(|setting| setting.key == key);
    let Some(policy) = find("offload_policy") else { return out };
    let SettingValue::Code(code) = policy.value else { return out };
    let class = code.split('(').next().unwrap_or(code);
    let _ = writeln!(out, "from torch.distributed.fsdp import {class}, fully_shard\n\n");
    out.push_str("def shard(model, blocks):\n");
    reason(&mut out, policy, None, "    #");
    let _ = writeln!(out, "    policy = {code}");
    out.push_str("    for block in blocks:\n        fully_shard(block, offload_policy=policy)\n");
    out.push_str("    fully_shard(model, offload_policy=policy)\n");
    if let Some(ahead) = find("set_modules_to_forward_prefetch") {
        reason(&mut out, ahead, Some(policy), "    #");
        out.push_str("    for i, block in enumerate(blocks):\n");
        let _ = writeln!(
            out,
            "        block.set_modules_to_forward_prefetch(blocks[i + 1 : i + 1 + {}])",
            ahead.value
        );
    }
    out.push_str("    return model\n");
    out
}
