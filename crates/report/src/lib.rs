//! Renders busbound's results: one folder or file per output format. All formats for people contain the same text.
//!
//! Every answer implements [`Report`]; [`Format`] lists the formats. To add one, write the file that declares its
//! `FormatSpec` and add its two lines below: `mod` and the registry.

mod answer;
mod emit;
mod error;
mod format;
mod github;
mod html;
mod json;
mod junit;
mod kind;
mod markdown;
mod metrics;
mod nvbandwidth;
mod otlp;
mod perfetto;
mod prometheus;
mod report;
mod runs;
mod tensorboard;
mod terminal;
mod text;

format::formats! {
    /// For a person at a terminal.
    Terminal = terminal::FORMAT,
    /// For tickets and pull requests.
    Markdown = markdown::FORMAT,
    /// For programs.
    Json = json::FORMAT,
    /// One page that opens offline from disk.
    Html = html::FORMAT,
    /// A gate as test results for CI servers.
    Junit = junit::FORMAT,
    /// A gate as annotations on a GitHub workflow run.
    Github = github::FORMAT,
    /// A benchmark in the shape of nvbandwidth's JSON.
    Nvbandwidth = nvbandwidth::FORMAT,
    /// A snapshot as metrics.
    Prometheus = prometheus::FORMAT,
    /// Launch settings as an env file.
    Env = emit::ENV,
    /// Launch settings as YAML.
    Yaml = emit::YAML,
    /// Launch settings as a shell script to source.
    Sh = emit::SH,
    /// Launch settings as a configuration file of accelerate.
    Accelerate = emit::accelerate::FORMAT,
    /// Launch settings as a configuration file of DeepSpeed.
    Deepspeed = emit::deepspeed::FORMAT,
    /// Launch settings as Python for FSDP2.
    Fsdp = emit::fsdp::FORMAT,
    /// Launch settings as arguments of vLLM.
    Vllm = emit::vllm::FORMAT,
    /// Launch settings as arguments of SGLang.
    Sglang = emit::sglang::FORMAT,
    /// Launch settings as Python for diffusers.
    Diffusers = emit::diffusers::FORMAT,
    /// A timeline with the analysis results, for ui.perfetto.dev.
    Perfetto = perfetto::PERFETTO,
    /// Only the timeline, in the layout of torch.profiler's files.
    Chrome = perfetto::CHROME,
}

pub use answer::{Answer, DrawnComparison, Predictions, Timeline};
pub use error::RenderError;
pub use format::Style;
pub use html::card::card;
pub use html::run::Lead;
pub use html::section::RunSection;
pub use kind::AnswerKind;
pub use otlp::{OtlpTimes, top_as_otlp};
pub use report::Report;
pub use runs::Runs;
pub use tensorboard::{PointAt, tensorboard_events};
#[cfg(feature = "dashboard")]
pub use terminal::dashboard::{Dashboard, draw_dashboard};
#[cfg(feature = "dashboard")]
pub use terminal::overlay::Help;
pub use terminal::top::top_as_lines;
pub use terminal::watch::{watched_as_json_line, watched_as_terminal};
pub use text::plan::{OnTopology, Plan, plan_statement};
