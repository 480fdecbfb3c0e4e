//! The sentences and tables of plans, one file per plan.

mod allreduce;
mod budget;
mod ddp;
mod offload;
mod parallel;

use busbound_diagnosis::quantity::{milliseconds, milliseconds_range};
use busbound_whatif::Range;
use busbound_whatif::plan::allreduce::{AllReduce, Cluster};
use busbound_whatif::plan::budget::Budget;
use busbound_whatif::plan::ddp::Ddp;
use busbound_whatif::plan::offload::Offload;
use busbound_whatif::plan::parallel::Parallel;
use serde::Serialize;

/// A plan of any kind.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Plan {
    /// For one link, or for several to compare.
    AllReduce(Vec<AllReduce>),
    Ddp(Box<Ddp>),
    Offload(Box<Offload>),
    Parallel(Box<Parallel>),
    Budget(Budget),
}

/// The text of a plan: statement, inputs, tables, notes, and the formulas behind it.
pub(crate) struct PlanText {
    pub(crate) kind: &'static str,
    pub(crate) statement: String,
    pub(crate) inputs: Vec<(&'static str, String)>,
    pub(crate) tables: Vec<PlanTable>,
    pub(crate) notes: Vec<String>,
    pub(crate) formulas: &'static [&'static str],
}

pub(crate) struct PlanTable {
    pub(crate) titles: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

pub(crate) fn plan(plan: &Plan) -> PlanText {
    match plan {
        Plan::AllReduce(links) => allreduce::text(links),
        Plan::Ddp(plan) => ddp::text(plan),
        Plan::Offload(plan) => offload::text(plan),
        Plan::Parallel(plan) => parallel::text(plan),
        Plan::Budget(plan) => budget::text(plan),
    }
}

/// The result of a plan in one sentence.
pub fn plan_statement(answer: &Plan) -> String {
    plan(answer).statement
}

/// `81.2 ms`, or `78.0–81.2 ms`.
fn ms(range: Range) -> String {
    if range.is_one() {
        return milliseconds(range.low);
    }
    milliseconds_range(range.low, range.high)
}

fn percent(range: Range) -> String {
    if range.is_one() {
        return format!("{:.0}%", 100.0 * range.low);
    }
    format!("{:.0}–{:.0}%", 100.0 * range.low, 100.0 * range.high)
}

fn number(range: Range) -> String {
    let one = |value: f64| if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    if range.is_one() { one(range.low) } else { format!("{}–{}", one(range.low), one(range.high)) }
}

/// `8 ranks on 1 node over NVLink 4`.
fn cluster(cluster: &Cluster) -> String {
    let nodes = if cluster.nodes == 1 { "1 node".to_owned() } else { format!("{} nodes", cluster.nodes) };
    let mut text = format!("{} ranks on {nodes} over {}", cluster.ranks, cluster.link.name);
    if let Some(net) = cluster.net.as_ref().filter(|_| cluster.nodes > 1) {
        text.push_str(&format!(", {} × {} between nodes", cluster.ports, net.name));
    }
    text
}
