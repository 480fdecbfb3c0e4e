//! Which launch settings exist, and where does each go?
//!
//! Findings and plans propose them; `advice` collects the proposals with their reasons.

pub(crate) mod ddp;
pub(crate) mod offload;
mod value;

use serde::Serialize;

pub use value::Value;

/// Where a setting goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// An environment variable.
    Environment,
    /// A prefix of the rank's command line.
    Launch,
    /// An argument of `torch.utils.data.DataLoader`.
    DataLoader,
    /// An argument of `DistributedDataParallel`, or a setting of the training loop.
    Ddp,
    /// `torch.compile`.
    Compile,
    Sglang,
    SglangDiffusion,
    Vllm,
    Diffusers,
    /// A configuration file of `accelerate launch`.
    Accelerate,
    /// A configuration file in JSON.
    DeepSpeed,
    Fsdp2,
}

impl Target {
    /// Whether its settings here are those of weights that stay on the host.
    pub(crate) fn offloads(self) -> bool {
        match self {
            Self::Sglang
            | Self::SglangDiffusion
            | Self::Vllm
            | Self::Diffusers
            | Self::Accelerate
            | Self::DeepSpeed
            | Self::Fsdp2 => true,
            Self::Environment | Self::Launch | Self::DataLoader | Self::Ddp | Self::Compile => false,
        }
    }

    /// The key of its section in the output.
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
            Self::Accelerate => "accelerate",
            Self::DeepSpeed => "deepspeed",
            Self::Fsdp2 => "fsdp2",
        }
    }
}

/// A setting without its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub target: Target,
    pub key: String,
    pub value: Value,
}

impl Proposal {
    pub(crate) fn new(target: Target, key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { target, key: key.into(), value: value.into() }
    }
}
