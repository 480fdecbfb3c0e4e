//! The sentences and tables of plans, one file per plan.

pub(crate) mod allreduce;
mod budget;
mod contention;
mod ddp;
mod kv;
mod memory;
mod offload;
mod parallel;
mod stream;
mod traffic;

use busbound_diagnosis::quantity::{count, milliseconds, milliseconds_range};
use busbound_diagnosis::{MemoryPlan, ParallelAnswer};
use busbound_machine::topology::TrafficPlan;
use busbound_whatif::Range;
use busbound_whatif::plan::allreduce::AllReduce;
use busbound_whatif::plan::budget::Budget;
use busbound_whatif::plan::cluster::Cluster;
use busbound_whatif::plan::contention::ContentionPlan;
use busbound_whatif::plan::ddp::Ddp;
use busbound_whatif::plan::kv::KvPlan;
use busbound_whatif::plan::offload::Offload;
use busbound_whatif::plan::stream::Placement;
use serde::Serialize;

/// A plan of any kind.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Plan {
    /// For one size, number of ranks and link, or for several to compare.
    AllReduce(Vec<AllReduce>),
    Contention(Box<ContentionPlan>),
    Ddp(Box<Ddp>),
    /// For several sizes, numbers of ranks or links.
    DdpMatrix(Vec<Ddp>),
    Kv(Box<KvPlan>),
    Offload(Box<Offload>),
    /// Which layers stay on the GPU within its memory.
    Stream(Box<Placement>),
    Parallel(Box<ParallelAnswer>),
    Memory(Box<MemoryPlan>),
    Budget(Budget),
    /// What copies and collectives share on a machine.
    Traffic(Box<TrafficPlan>),
    /// A plan for a machine whose topology is known.
    On(Box<OnTopology>),
}

/// A plan, and the machine that it is for.
#[derive(Debug, Clone, Serialize)]
pub struct OnTopology {
    pub plan: Plan,
    pub topology: TrafficPlan,
}

impl Plan {
    /// Of one machine.
    pub fn on(self, topology: Option<TrafficPlan>) -> Self {
        match topology {
            Some(topology) => Self::On(Box::new(OnTopology { plan: self, topology })),
            None => self,
        }
    }

    /// The plan itself, without its machine.
    pub fn alone(&self) -> &Self {
        match self {
            Self::On(on) => &on.plan,
            plan => plan,
        }
    }
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
    pub(crate) titles: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl PlanTable {
    pub(crate) fn new(titles: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self { titles: titles.iter().map(|&title| title.to_owned()).collect(), rows }
    }
}

pub(crate) fn plan(plan: &Plan) -> PlanText {
    match plan {
        Plan::AllReduce(links) => allreduce::text(links),
        Plan::Contention(plan) => contention::text(plan),
        Plan::Ddp(plan) => ddp::text(plan),
        Plan::DdpMatrix(plans) => ddp::matrix(plans),
        Plan::Kv(plan) => kv::text(plan),
        Plan::Offload(plan) => offload::text(plan),
        Plan::Stream(plan) => stream::text(plan),
        Plan::Parallel(answer) => parallel::text(answer),
        Plan::Memory(plan) => memory::text(plan),
        Plan::Budget(plan) => budget::text(plan),
        Plan::Traffic(plan) => traffic::text(plan),
        Plan::On(on) => on_topology(on),
    }
}

fn on_topology(on: &OnTopology) -> PlanText {
    let mut text = plan(&on.plan);
    text.inputs.extend(traffic::inputs(&on.topology));
    text.notes.extend(traffic::notes(&on.topology));
    text.notes.push("What the GPUs of this machine share: `busbound plan contention --topology`.".to_owned());
    text
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
    let (low, high) = (format!("{:.0}", 100.0 * range.low), format!("{:.0}", 100.0 * range.high));
    if low == high { format!("{low}%") } else { format!("{low}–{high}%") }
}

/// With one decimal below 100, and two significant digits below 1: a slow run has 0.019 samples/s and not 0.0.
fn number(range: Range) -> String {
    let one = |value: f64| match value.abs() {
        size if size >= 100.0 => count(value.round() as u64),
        size if size >= 0.95 || size == 0.0 => format!("{value:.1}"),
        size => format!("{value:.*}", (1.0 - size.log10().floor()) as usize),
    };
    let (low, high) = (one(range.low), one(range.high));
    if low == high { low } else { format!("{low}–{high}") }
}

/// Most machines have up to eight GPUs: more in one node are rarely what was meant.
fn large_node<'a>(clusters: impl IntoIterator<Item = &'a Cluster>) -> Option<String> {
    let is_large = |cluster: &&Cluster| cluster.nodes == 1 && cluster.ranks > 8;
    let most = clusters.into_iter().filter(is_large).map(|cluster| cluster.ranks).max()?;
    Some(format!(
        "All {most} GPUs are in one node here, as in an NVL72. For several nodes, pass --nodes and --net."
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate of a slow run was printed as "0.0", and equal ends as "100 to 100%".
    #[test]
    fn small_numbers_keep_their_digits_and_equal_ends_are_one_figure() {
        assert_eq!(number(Range::one(0.0194)), "0.019");
        assert_eq!(number(Range::one(0.4)), "0.40");
        assert_eq!(number(Range { low: 2.04, high: 2.01 }), "2.0");
        assert_eq!(number(Range::one(12_345.6)), "12,346");
        assert_eq!(percent(Range { low: 0.9961, high: 0.9989 }), "100%");
    }
}
