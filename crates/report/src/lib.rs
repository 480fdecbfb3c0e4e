//! Showing it: one folder or file per format. What a person reads in one format is in all of them.

mod emit;
mod github;
mod html;
mod json;
mod junit;
mod markdown;
mod nvbandwidth;
mod perfetto;
mod prometheus;
mod runs;
mod terminal;
mod text;

pub use emit::{advice_as_env, advice_as_sh, advice_as_yaml};
pub use github::gate_as_github;
pub use html::curves::bench_as_html;
pub use html::{Lead, RunSection, RunsPage, comparison_as_html, markdown_as_html};
pub use json::{
    bench_as_json, comparison_as_json, diagnoses_as_json, fleet_as_json, gate_as_json, plan_as_json,
    rank_as_json, runs_as_json, surveys_as_json, top_as_json_line, topology_as_json, whatif_as_json,
};
pub use junit::gate_as_junit;
pub use markdown::bench::bench_as_markdown;
pub use markdown::compare::comparison_as_markdown;
pub use markdown::diagnosis::diagnoses_as_markdown;
pub use markdown::fleet::{fleet_as_markdown, runs_as_markdown};
pub use markdown::gate::gate_as_markdown;
pub use markdown::plan::plan_as_markdown;
pub use markdown::survey::surveys_as_markdown;
pub use markdown::top::top_as_markdown;
pub use markdown::topology::topology_as_markdown;
pub use markdown::whatif::whatif_as_markdown;
pub use nvbandwidth::bench_as_nvbandwidth;
pub use perfetto::{Packing, write_chrome, write_perfetto};
pub use prometheus::top_as_prometheus;
pub use runs::Runs;
pub use terminal::bench::bench_as_terminal;
pub use terminal::compare::comparison_as_terminal;
pub use terminal::dashboard::{Dashboard, draw_dashboard};
pub use terminal::diagnosis::diagnoses_as_terminal;
pub use terminal::fleet::{fleet_as_terminal, runs_as_terminal};
pub use terminal::gate::gate_as_terminal;
pub use terminal::plan::plan_as_terminal;
pub use terminal::survey::surveys_as_terminal;
pub use terminal::top::{top_as_lines, top_as_terminal};
pub use terminal::topology::topology_as_terminal;
pub use terminal::whatif::whatif_as_terminal;
pub use text::plan::{Plan, plan_statement};
