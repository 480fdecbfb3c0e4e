//! Settings as a configuration file of `accelerate launch`.

use std::fmt::Write;

use busbound_diagnosis::{Advice, Setting, Target};

use super::common::{Tool, advice, reason};
use crate::Format;
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "accelerate",
    suffixes: &["yaml"],
    about: "Configuration file of accelerate launch",
    scope: Scope::Only(AnswerKind::Advice),
    render: Render::Text(|answer, _| Ok(configuration(advice(answer, Format::Accelerate)?))),
};

const TOOL: Tool = Tool {
    name: "accelerate",
    target: Target::Accelerate,
    usage: "Use: accelerate launch --config_file THIS_FILE --num_processes RANKS train.py",
    covers: "its configuration file chooses how training is distributed, offloaded and compiled.",
    notes: &[
        (
            "fsdp_config.fsdp_offload_params",
            "With fsdp_version 2, offloaded parameters are in pinned memory. The file has no setting for prefetching, or for a share \
             that stays on the GPU; `--emit fsdp` has the calls.",
        ),
        ("dynamo_config.dynamo_mode", "CUDA graphs (reduce-overhead) need inputs of constant shape."),
    ],
};

fn configuration(advice: &Advice) -> String {
    let mut out = TOOL.commented_head(advice);
    in_script(&mut out, advice);
    let settings: Vec<&Setting> = advice.of(Target::Accelerate).collect();
    if !settings.iter().any(|setting| setting.key == "distributed_type") {
        out.push_str(
            "# The file needs this entry. NO is one GPU; MULTI_GPU is DDP.\ndistributed_type: \"NO\"\n",
        );
    }
    let mut section = "";
    let mut before: Option<&Setting> = None;
    for setting in settings {
        let (of, key) = setting.key.split_once('.').unwrap_or(("", &setting.key));
        if of != section {
            let _ = writeln!(out, "{of}:");
            (section, before) = (of, None);
        }
        let indent = if of.is_empty() { "" } else { "  " };
        reason(&mut out, setting, before, &format!("{indent}#"));
        let _ = writeln!(out, "{indent}{key}: {}", setting.value.as_yaml());
        before = Some(setting);
    }
    out
}

/// What accelerate takes only as arguments of `Accelerator`.
fn in_script(out: &mut String, advice: &Advice) {
    let (mut accelerator, mut ddp) = (Vec::new(), Vec::new());
    for setting in advice.of(Target::Ddp) {
        let text = format!("{}={}", setting.key, setting.value.as_python());
        match setting.key.as_str() {
            "gradient_accumulation_steps" => accelerator.push(text),
            // Accelerator.accumulate does it.
            "no_sync" => {}
            _ => ddp.push(text),
        }
    }
    if !ddp.is_empty() {
        accelerator.push(format!("kwargs_handlers=[DistributedDataParallelKwargs({})]", ddp.join(", ")));
    }
    if !accelerator.is_empty() {
        let _ = writeln!(out, "# In the script: Accelerator({})\n", accelerator.join(", "));
    }
}
