//! Which settings of `DistributedDataParallel` does a trace support?

use busbound_trace::Trace;

use super::{Proposal, Target};

/// What a trace shows of `DistributedDataParallel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SeenDdp {
    /// It walks the autograd graph in each step (`find_unused_parameters=True`).
    pub(crate) searches_unused: bool,
}

/// torch's own range around the search.
const SEARCH: &str = "reducer::search_unused_parameters";

impl SeenDdp {
    /// `None` if the trace shows no `DistributedDataParallel`.
    pub(crate) fn of(trace: &Trace) -> Option<Self> {
        let has = |part: &str| trace.names().iter().any(|name| name.contains(part));
        let searches_unused = has(SEARCH);
        (searches_unused || has("DistributedDataParallel.forward") || has("ddp.reducer::"))
            .then_some(Self { searches_unused })
    }

    /// In words, after the evidence of a finding; empty without a search.
    pub(crate) fn clause(self) -> &'static str {
        if self.searches_unused {
            " DDP also searches for unused parameters in every step (find_unused_parameters=True)."
        } else {
            ""
        }
    }

    /// The search is only turned off where it is seen.
    pub(crate) fn proposals(self) -> Vec<Proposal> {
        let mut list = constant_graph();
        if !self.searches_unused {
            list.retain(|proposal| proposal.key != FIND_UNUSED);
        }
        list
    }
}

const FIND_UNUSED: &str = "find_unused_parameters";

/// Every step uses the same parameters.
pub(crate) fn constant_graph() -> Vec<Proposal> {
    vec![
        Proposal::new(Target::Ddp, "static_graph", true),
        Proposal::new(Target::Ddp, FIND_UNUSED, false),
        Proposal::new(Target::Ddp, "gradient_as_bucket_view", true),
    ]
}

#[cfg(test)]
mod tests {
    use busbound_trace::TraceBuilder;

    use super::SeenDdp;

    fn seen(operators: &[&str]) -> Option<SeenDdp> {
        let mut trace = TraceBuilder::default();
        let thread = trace.thread(1, 1);
        for (i, &name) in (0..).zip(operators) {
            trace.operator(thread, name, i * 1000..i * 1000 + 500);
        }
        SeenDdp::of(&trace.finish())
    }

    #[test]
    fn the_search_is_turned_off_only_where_it_runs() {
        assert_eq!(seen(&["aten::mm", "c10d::allreduce_"]), None);
        let keys = |seen: SeenDdp| -> Vec<String> {
            seen.proposals().into_iter().map(|proposal| proposal.key).collect()
        };
        let plain = seen(&["DistributedDataParallel.forward"]).unwrap();
        assert_eq!(keys(plain), ["static_graph", "gradient_as_bucket_view"]);
        let searching = seen(&["torch.distributed.ddp.reducer::search_unused_parameters"]).unwrap();
        assert_eq!(keys(searching), ["static_graph", "find_unused_parameters", "gradient_as_bucket_view"]);
        assert!(searching.clause().contains("find_unused_parameters=True"));
    }
}
