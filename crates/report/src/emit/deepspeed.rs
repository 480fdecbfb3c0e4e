//! Settings as a configuration file of DeepSpeed.

use busbound_diagnosis::{Advice, Setting, SettingValue, Target};
use serde_json::{Map, Value, json};

use super::common::{Tool, advice, reason};
use crate::Format;
use crate::format::{FormatSpec, Render, Scope};
use crate::kind::AnswerKind;

pub(crate) const FORMAT: FormatSpec = FormatSpec {
    name: "deepspeed",
    suffixes: &["json"],
    about: "Configuration file of DeepSpeed",
    scope: Scope::Only(AnswerKind::Advice),
    render: Render::Text(|answer, _| Ok(configuration(advice(answer, Format::Deepspeed)?))),
};

const TOOL: Tool = Tool {
    name: "DeepSpeed",
    target: Target::DeepSpeed,
    usage: "Use: deepspeed train.py --deepspeed_config THIS_FILE, or add these entries to your own file. DeepSpeed needs a batch \
            size: replace train_micro_batch_size_per_gpu with yours. It ignores _busbound.",
    covers: "its file chooses what is in host memory, what is prefetched, and when gradients are reduced.",
    notes: &[
        (
            "zero_optimization.stage3_prefetch_bucket_size",
            "stage3_prefetch_bucket_size counts weights: 2 bytes each are assumed.",
        ),
        (
            "zero_optimization.offload_param.device",
            "No setting keeps a share of the layers on the GPU and spreads it.",
        ),
    ],
};

/// JSON has no comments: the reasons are in an entry that DeepSpeed ignores.
fn configuration(advice: &Advice) -> String {
    let mut reasons = TOOL.head(advice);
    let mut file = Map::new();
    let mut before: Option<&Setting> = None;
    for setting in advice.of(Target::DeepSpeed) {
        let mut text = String::new();
        reason(&mut text, setting, before, "");
        reasons.extend(text.lines().map(|line| line.trim().to_owned()));
        reasons.push(format!("{}: {}", setting.key, setting.value));
        insert(&mut file, &setting.key, as_json(&setting.value));
        before = Some(setting);
    }
    let mut whole = Map::new();
    whole.insert("_busbound".to_owned(), json!(reasons));
    whole.insert("train_micro_batch_size_per_gpu".to_owned(), json!(1));
    whole.extend(file);
    let text = serde_json::to_string_pretty(&Value::Object(whole)).unwrap_or_default();
    format!("{text}\n")
}

/// `a.b.c` becomes nested objects.
fn insert(object: &mut Map<String, Value>, key: &str, value: Value) {
    match key.split_once('.') {
        None => {
            object.insert(key.to_owned(), value);
        }
        Some((section, rest)) => {
            let inner = object.entry(section).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

fn as_json(value: &SettingValue) -> Value {
    match value {
        SettingValue::Flag(flag) => json!(flag),
        SettingValue::Count(count) => json!(count),
        SettingValue::Share(share) => json!(share),
        SettingValue::Text(text) => json!(text),
        SettingValue::Code(code) => json!(code),
    }
}
