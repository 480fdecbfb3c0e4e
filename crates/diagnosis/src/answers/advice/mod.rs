//! Which launch settings does a diagnosis or a plan argue for?
//!
//! Each has its reason and the condition under which it holds. What the evidence does not support is not
//! there.

mod of_diagnosis;
mod of_plan;
mod of_topology;
mod offload;

use serde::Serialize;

pub use of_diagnosis::advice_of_diagnosis;
pub use of_plan::{advice_of_ddp, advice_of_offload};
pub use of_topology::advice_of_topology;

/// Where a setting goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// An environment variable.
    Environment,
    /// What stands before the command of a rank.
    Launch,
    /// An argument of `torch.utils.data.DataLoader`.
    DataLoader,
    /// An argument of `DistributedDataParallel`, or the training loop's own.
    Ddp,
    /// `torch.compile`.
    Compile,
    Sglang,
    SglangDiffusion,
    Vllm,
    Diffusers,
    DeepSpeed,
    Fsdp2,
}

impl Target {
    /// The key of its section.
    pub fn key(self) -> &'static str {
        match self {
            Self::Environment => "env",
            Self::Launch => "launch",
            Self::DataLoader => "dataloader",
            Self::Ddp => "ddp",
            Self::Compile => "torch_compile",
            Self::Sglang => "sglang",
            Self::SglangDiffusion => "sglang_diffusion",
            Self::Vllm => "vllm",
            Self::Diffusers => "diffusers_group_offloading",
            Self::DeepSpeed => "deepspeed",
            Self::Fsdp2 => "fsdp2",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    pub target: Target,
    pub key: String,
    pub value: String,
    /// What was seen or reckoned that argues for it.
    pub why: String,
    /// When it holds.
    pub when: String,
}

/// Settings, and what they come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    pub from: String,
    /// The verdict, or the plan's answer.
    pub statement: String,
    pub settings: Vec<Setting>,
}

/// Collects settings of one reason.
struct Because<'a> {
    settings: &'a mut Vec<Setting>,
    why: String,
    when: String,
}

impl Because<'_> {
    fn set(&mut self, target: Target, key: &str, value: impl ToString) -> &mut Self {
        let known = self.settings.iter().any(|setting| setting.target == target && setting.key == key);
        // The first reason is the weightier one: findings come most saving first.
        if !known {
            self.settings.push(Setting {
                target,
                key: key.to_owned(),
                value: value.to_string(),
                why: self.why.clone(),
                when: self.when.clone(),
            });
        }
        self
    }
}
