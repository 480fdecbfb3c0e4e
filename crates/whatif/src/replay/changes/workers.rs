//! `workers=N`: N worker processes make the batches that the training process makes now.

use std::fmt;

use busbound_cause::{HostUse, Model, Time};

use super::{About, Declared, Made, Terms};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers(pub u32);

impl Declared for Workers {
    const ABOUT: About = About {
        name: "workers",
        spelling: "workers=N",
        help: "make batches in N worker processes instead of the training process",
        doing: "loading batches in worker processes",
        effort: "`DataLoader(num_workers=N, persistent_workers=True)`",
        precondition: "the loader runs in the training process now (`num_workers=0`), and the host has a free core per worker",
        depends_on_data: false,
    };

    fn parse(value: Option<&str>) -> Result<Self, &'static str> {
        match value.map(str::parse) {
            Some(Ok(workers @ 1..=256)) => Ok(Self(workers)),
            _ => Err("workers takes a number from 1 to 256"),
        }
    }

    fn apply(&self, graph: &mut Model, terms: &Terms<'_>) -> Made {
        let steps = graph.steps.max(1) as f64;
        let inputs =
            || graph.calls.iter().flat_map(|call| &call.since.uses).filter(|(what, _)| is_input(*what));
        let fetching = inputs().map(|(_, time)| *time as f64).sum::<f64>() / steps;
        if fetching <= 0.0 {
            return Made::default();
        }
        // Each worker takes as long for a batch as the training process did, and sends it through shared memory. The steps use
        // one batch each: they wait only if the workers together are slower than the rest of a step.
        let rest = (graph.end as f64 / steps - fetching).max(0.0);
        let every = fetching * terms.assumed.worker / f64::from(self.0);
        let receiving = fetching * terms.assumed.receiving;
        let kept = (((every - rest).max(0.0) + receiving) / fetching).min(1.0);
        let mut changed = 0;
        for (_, time) in graph
            .calls
            .iter_mut()
            .flat_map(|call| &mut call.since.uses)
            .filter(|(what, time)| is_input(*what) && *time > 0)
        {
            *time = (*time as f64 * kept) as Time;
            changed += 1;
        }
        Made { changed, extra_bytes: 0 }
    }
}

fn is_input(what: HostUse) -> bool {
    what == HostUse::Input
}

impl fmt::Display for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", Self::ABOUT.name, self.0)
    }
}
